package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/algos/algotest/dataset"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
)

func candidates(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var c Command
	var out, errs bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}
	err = settings.Run(t.Context(), "bench", "", &c, append([]string{"candidates", "--no-alarms"}, args...), stdio)
	return out.String(), err
}

// Over orders of spam-drift the better candidate is promoted, the equal one at most once in twenty
// orders, and the worse one never. HAMLET_NIGHTLY=1 takes twenty orders of all events.
func TestCandidates(t *testing.T) {
	stream := filepath.Join(dataset.Path(t, "spam-drift"), "spam-stream.svm.gz")
	args := []string{"--orders", "1", "--limit", "2500", "--burn-in", "500", "--champion", "9", "--better", "14",
		"--worse", "8"}
	orders := 1
	if os.Getenv("HAMLET_NIGHTLY") != "" {
		args, orders = nil, 20
	}
	out, err := candidates(t, append(args, "--json", stream)...)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Runs []candidateRun `json:"runs"`
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	promoted, seen := map[string]int{}, map[string]int{}
	for _, run := range r.Runs {
		seen[run.Candidate]++
		if run.Promoted > 0 {
			promoted[run.Candidate]++
		}
		if run.Low > run.Mean || run.High < run.Mean || run.Events == 0 {
			t.Errorf("%+v", run)
		}
	}
	if seen["better"] != orders || seen["equal"] != orders || seen["worse"] != orders {
		t.Fatalf("%v", seen)
	}
	if promoted["better"] != orders || promoted["equal"] > orders/20 || promoted["worse"] != 0 {
		t.Errorf("of %d orders promoted: %v", orders, promoted)
	}
}

func TestCandidatesUsage(t *testing.T) {
	for _, args := range [][]string{{"--orders", "0", "x"}, {"--burn-in", "0", "x"}} {
		if _, err := candidates(t, args...); cli.Status(err) != 2 {
			t.Errorf("%v: %v", args, err)
		}
	}
	var table strings.Builder
	if err := (&candidatesResult{Runs: []candidateRun{{Candidate: "better", Order: 1, Promoted: 7},
		{Candidate: "equal", Order: 1}, {Candidate: "worse", Order: 1, Worse: true}}}).section().Print(
		&table); err != nil || strings.Count(table.String(), "\n") != 4 {
		t.Errorf("%v\n%s", err, &table)
	}
}
