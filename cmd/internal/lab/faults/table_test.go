package faults

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hamlet/cmd/internal/process/cli"
)

func goodRound(faults ...fault) *round {
	return &round{Injected: faults, Died: map[string]int{}, Settled: true, Same: true, Sent: 100, Answers: 10}
}

// The rows and the sum of some rounds, worked out by hand.
func TestTally(t *testing.T) {
	killA, killB := fault{Action: kill, Target: learnerA}, fault{Action: kill, Target: learnerB}
	cutKafka, stopRedis := fault{Action: cut, Target: kafka}, fault{Action: stop, Target: redis}
	table := newTable(5)
	first := goodRound(killA, killB, cutKafka)
	first.Pauses = []pausedFor{{Took: 2 * time.Second, Kinds: []string{"kill learner"}},
		{Took: time.Second, Kinds: []string{"kill learner", "cut kafka"}},
		{Scoring: true, Took: 3 * time.Second}}
	table.add(first)
	second := goodRound(cutKafka, stopRedis)
	second.Died["cut kafka"], second.Same, second.Lost, second.Wrong = 1, false, 2, 3
	second.Problems, second.Named = []string{"scorer ended by itself"}, map[string]int{"cut kafka": 1}
	table.add(second)
	third := goodRound(killA)
	third.Settled, third.Same = false, false
	table.add(third)
	want := []Row{
		{Fault: "cut kafka", Injected: 2, Survived: 1, Rounds: 2, Same: 1, Lost: 2, Wrong: 3, Named: 1,
			LearningPause: seconds(time.Second)},
		{Fault: "kill learner", Injected: 3, Survived: 2, Rounds: 2, Same: 1, LearningPause: seconds(2 * time.Second)},
		{Fault: "stop redis", Injected: 1, Survived: 1, Rounds: 1, Lost: 2, Wrong: 3},
	}
	if d := cmp.Diff(want, table.Rows); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	total := Row{Fault: "all", Injected: 6, Survived: 4, Rounds: 3, Same: 1, Lost: 2, Wrong: 3, Named: 1,
		LearningPause: seconds(2 * time.Second), ScoringPause: seconds(3 * time.Second)}
	if d := cmp.Diff(total, table.Total); d != "" {
		t.Errorf("sum (-want +got):\n%s", d)
	}
	if table.Sent != 300 || table.Answers != 30 || len(table.Problems) != 1 {
		t.Errorf("%d events, %d answers, problems %q", table.Sent, table.Answers, table.Problems)
	}

	table.Left = append(table.Left, Left{Fault: "power", Why: "no root"})
	var text, object bytes.Buffer
	if err := table.section().Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"cut kafka         2         1      1 of 2     2      3      1            1.0 s           " +
		"0.0 s", "not injected: power: no root", "! scorer ended by itself", "seed 5"} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("the table has no %q:\n%s", line, &text)
		}
	}
	if err := cli.PrintJSON(&object, table); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Faults []map[string]any
		Total  map[string]any
	}
	if err := json.Unmarshal(object.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Faults) != 3 || back.Total["injected"] != 6.0 || back.Total["scoring_pause_seconds"] != 3.0 ||
		back.Faults[0]["same_bytes"] != 1.0 {
		t.Errorf("in JSON: %s", &object)
	}
}

// A campaign fails if any one thing is not as it should be, and passes otherwise.
func TestTableErr(t *testing.T) {
	f := fault{Action: kill, Target: redis}
	for _, c := range []struct {
		name  string
		spoil func(*round)
		fails bool
	}{
		{"all well", func(*round) {}, false},
		{"lost", func(r *round) { r.Lost = 1 }, true},
		{"wrong", func(r *round) { r.Wrong = 1 }, true},
		{"other bytes", func(r *round) { r.Same = false }, true},
		{"a process ended", func(r *round) { r.Died[f.kind()] = 1 }, true},
		{"not settled", func(r *round) { r.Settled = false }, true},
		{"a process ended, around no fault", func(r *round) {
			r.Problems = []string{"scorer ended by itself, around: " +
				""}
		}, true},
	} {
		r := goodRound(f)
		c.spoil(r)
		table := newTable(1)
		table.add(goodRound(f))
		table.add(r)
		if err := table.Err(false); (err != nil) != c.fails {
			t.Errorf("%s: %v", c.name, err)
		}
		table.Left = append(table.Left, Left{Fault: "power", Why: "no root"})
		if err := table.Err(false); (err != nil) != c.fails {
			t.Errorf("%s, and a fault that nobody asked for by name: %v", c.name, err)
		}
		if err := table.Err(true); err == nil || !strings.Contains(err.Error(), "not injected: power: no root") {
			t.Errorf("%s, and a fault that was asked for by name: %v", c.name, err)
		}
	}
}
