package experiment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

type drawn struct{ Sum float64 }

// lottery is an experiment of n steps that counts how often a step was computed.
func lottery(name string, n int, calls *atomic.Int64, before func(i int) error) *Experiment {
	return &Experiment{Name: name, Title: "t", Where: "w", Claim: "c", Cost: time.Second,
		Run: func(ctx context.Context, r *Run, p *Report) error {
			all, err := Steps(ctx, r, "draw", n, func(ctx context.Context, i int) (drawn, error) {
				if before != nil {
					if err := before(i); err != nil {
						return drawn{}, err
					}
				}
				calls.Add(1)
				return drawn{r.Rand("draw", i).NormFloat64()}, nil
			})
			if err != nil {
				return err
			}
			var v []float64
			for _, d := range all {
				v = append(v, d.Sum)
			}
			p.Figure("", "mean", Mean(v), "0.0", Neither)
			return nil
		}}
}

func runner(folder string) *Runner {
	return &Runner{Data: NewData("nowhere"), Seed: 1, Cores: 2, Code: "code", Folder: folder}
}

// The numbers do not depend on the cores or on what else runs.
func TestNumbersDoNotDependOnCores(t *testing.T) {
	var calls atomic.Int64
	a, b := lottery("slides/a", 40, &calls, nil), lottery("slides/b", 40, &calls, nil)
	n := runner("")
	two, err := n.Run(t.Context(), []*Experiment{a, b})
	if err != nil {
		t.Fatal(err)
	}
	n.Cores = 1
	one, err := n.Run(t.Context(), []*Experiment{b})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(two[1].Report, one[0].Report) {
		t.Errorf("%+v beside another and on two cores, %+v alone and on one", two[1].Report, one[0].Report)
	}
	if two[0].Report.Rows[0].Ours == two[1].Report.Rows[0].Ours {
		t.Error("two experiments draw the same numbers")
	}
	n.Seed = 2
	other, err := n.Run(t.Context(), []*Experiment{b})
	if err != nil {
		t.Fatal(err)
	}
	if other[0].Report.Rows[0].Ours == one[0].Report.Rows[0].Ours {
		t.Error("another seed draws the same numbers")
	}
}

// A run that was interrupted goes on behind its last finished step, to the same numbers.
func TestInterruptedRunGoesOn(t *testing.T) {
	var calls atomic.Int64
	whole, err := runner("").Run(t.Context(), []*Experiment{lottery("slides/a", 20, &calls, nil)})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	n := runner(folder)
	n.Cores = 1
	ctx, cancel := context.WithCancel(t.Context())
	calls.Store(0)
	_, err = n.Run(ctx, []*Experiment{lottery("slides/a", 20, &calls, func(int) error {
		if calls.Load() == 7 {
			cancel()
			return ctx.Err()
		}
		return nil
	})})
	if !errors.Is(err, context.Canceled) || calls.Load() != 7 {
		t.Fatalf("interrupted after 7 steps: %v, %d steps", err, calls.Load())
	}
	// The last line of a process that was killed may be half.
	path := filepath.Join(folder, "steps", "slides-a.jsonl")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"step":"draw 19","sec`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	resumed, err := n.Run(t.Context(), []*Experiment{lottery("slides/a", 20, &calls, nil)})
	if err != nil || calls.Load() != 20 {
		t.Fatalf("%d steps in both runs, %v", calls.Load(), err)
	}
	if !reflect.DeepEqual(resumed[0].Report, whole[0].Report) {
		t.Errorf("%+v after an interruption, %+v without", resumed[0].Report, whole[0].Report)
	}
	again, err := n.Run(t.Context(), []*Experiment{lottery("slides/a", 20, &calls, nil)})
	if err != nil || calls.Load() != 20 || !reflect.DeepEqual(again[0].Report, whole[0].Report) {
		t.Errorf("a finished run computed again: %d steps, %v", calls.Load(), err)
	}
	if err := (&Experiment{Name: "slides/b"}).Forget(folder); err != nil {
		t.Errorf("forget what was never computed: %v", err)
	}
	if _, err := n.Run(t.Context(), []*Experiment{lottery("slides/a", 20, &calls, nil)}); err != nil ||
		calls.Load() != 20 {
		t.Errorf("forgetting another experiment: %d steps, %v", calls.Load(), err)
	}
	n.Code = "other code"
	if _, err := n.Run(t.Context(), []*Experiment{lottery("slides/a", 20, &calls, nil)}); err != nil ||
		calls.Load() != 40 {
		t.Errorf("another program took steps of this one: %d steps, %v", calls.Load(), err)
	}
}

// An experiment that fails says so; the others go on.
func TestFailuresStayApart(t *testing.T) {
	var calls atomic.Int64
	broken := errors.New("broken on purpose")
	bad := lottery("slides/bad", 3, &calls, func(i int) error { return broken })
	good := lottery("slides/good", 3, &calls, nil)
	missing := lottery("slides/missing", 3, &calls, nil)
	missing.Sets = []string{"pima"}
	nothing := &Experiment{Name: "slides/nothing", Run: func(context.Context, *Run, *Report) error { return nil }}
	twice := &Experiment{Name: "slides/twice", Run: func(ctx context.Context, r *Run, _ *Report) error {
		for range 2 {
			if _, err := Steps(ctx, r, "same", 1, func(context.Context, int) (int, error) {
				return 1, nil
			}); err != nil {
				return err
			}
		}
		return nil
	}}
	outcomes, err := runner("").Run(t.Context(), []*Experiment{bad, good, missing, nothing, twice})
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(outcomes[0].Err, broken) || outcomes[1].Err != nil {
		t.Errorf("the broken one: %v; the good one: %v", outcomes[0].Err, outcomes[1].Err)
	}
	var lacks *MissingError
	if !errors.As(outcomes[2].Err, &lacks) ||
		!strings.Contains(lacks.Error(), "pima-indians-diabetes.data is missing; it may be had from") {
		t.Errorf("without its data: %v", outcomes[2].Err)
	}
	if outcomes[3].Err == nil || outcomes[4].Err == nil || !strings.Contains(outcomes[4].Err.Error(), `"same"`) {
		t.Errorf("without a comparison: %v; two groups of one name: %v", outcomes[3].Err, outcomes[4].Err)
	}
}

// A set counts only if its file is the documented one.
func TestDataIsTheDocumented(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "liver", "bupa.data")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("1,2,3,4,5,6,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var lacks *MissingError
	if err := NewData(folder).Check("liver"); !errors.As(err, &lacks) || !lacks.Other {
		t.Errorf("another file: %v", err)
	}
}

func TestReadsTablesAndSparseRows(t *testing.T) {
	row, label, err := (&layout{label: 2, drop: []int{1}, positive: is("M")}).parse("17,M,1.5; 2 -3\r\n")
	if err != nil || !reflect.DeepEqual(row, []float64{1.5, 2, -3}) || label != 1 {
		t.Errorf("%v %v, %v", row, label, err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.svm"), []byte("+1 1:1 7:2.5\n\n-1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	x, y, width, err := NewData(folder).Sparse("a.svm")
	want := []SparseRow{{[]int{0, 6}, []float64{1, 2.5}}, {}}
	if err != nil || !reflect.DeepEqual(x, want) || !reflect.DeepEqual(y, []float64{1, -1}) || width != 7 {
		t.Errorf("%v %v %d, %v", x, y, width, err)
	}
	for _, line := range []string{"x 1:1", "1 0:1", "1 2:1 2:1", "1 3", "1 a:1", "1 1:b", "1 99999999:1"} {
		if _, _, err := parseSparse(strings.Fields(line)); err == nil {
			t.Errorf("%q is a row", line)
		}
	}
}

// The estimate of the remaining time is that of the stated costs, corrected by how fast
// this machine was.
func TestRemainingTime(t *testing.T) {
	all := []*Experiment{{Name: "slides/a", Cost: 10 * time.Second}, {Name: "slides/b", Cost: 20 * time.Second}}
	var last Progress
	c := newClock(all, 2, func(p Progress) { last = p })
	c.advance(advance{name: "slides/a", more: 2})
	if last.Left != 15*time.Second || last.Of != 2 || last.Known != 2 {
		t.Errorf("at first: %+v", last)
	}
	c.advance(advance{name: "slides/a", done: 2, spent: 30 * time.Second})
	c.ended(all[0])
	if last.Left != 30*time.Second || last.Ended != 1 {
		t.Errorf("on a machine that is three times slower: %+v", last)
	}
}
