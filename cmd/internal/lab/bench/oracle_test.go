package bench

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/algos/algotest/dataset"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
)

func benchOracle(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var c Command
	var out, errs bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}
	args = append([]string{"oracle", "--no-alarms", "--experts", "lean"}, args...)
	err = settings.Run(t.Context(), "bench", "", &c, args, stdio)
	return out.String(), err
}

// On 2,500 sms a machine that is wrong in a tenth is trusted and lowers the errors. One that is wrong in half
// raises them by a twentieth at most if it is held to account, and by far more if not.
func TestOracle(t *testing.T) {
	sms := filepath.Join(dataset.Path(t, "sms"), "SMSSpamCollection")
	out, err := benchOracle(t, "--limit", "2500", "--seeds", "2", "--wrong", "0.1,0.5", "--json", sms)
	if err != nil {
		t.Fatal(err)
	}
	var r oracleResult
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if len(r.Lines) != 5 || r.Events != 2500 {
		t.Fatalf("%+v", r)
	}
	people, good, bad, free := r.Lines[0], r.Lines[1], r.Lines[2], r.Lines[4]
	if people.Asked != 0 || people.Errors <= 0 || people.Errors > 0.2 {
		t.Errorf("people alone: %+v", people)
	}
	if good.Errors >= people.Errors || len(good.Trusted) != 2 || len(good.Stopped) != 0 || good.Taught == 0 {
		t.Errorf("wrong in a tenth: %+v; people alone make %v errors", good, people.Errors)
	}
	if bad.Errors > 1.05*people.Errors || len(bad.Stopped) != 2 {
		t.Errorf("wrong in half: %+v; people alone make %v errors", bad, people.Errors)
	}
	if free.Errors < 1.2*people.Errors || free.Asked < 2*good.Asked {
		t.Errorf("wrong in half, without account: %+v; people alone make %v errors", free, people.Errors)
	}
	table, err := benchOracle(t, "--limit", "600", "--from", "300", "--seeds", "1", sms)
	if err != nil || strings.Count(table, "\n") < 9 || strings.Contains(table, "NaN") {
		t.Errorf("%v, table\n%s", err, table)
	}
	for _, bad := range []string{"--wrong=2", "--share=-1", "--seeds=0"} {
		if _, err := benchOracle(t, bad, sms); cli.Status(err) != cli.StatusUsage {
			t.Errorf("%s: %v, want wrong usage", bad, err)
		}
	}
}
