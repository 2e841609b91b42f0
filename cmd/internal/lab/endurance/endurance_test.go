package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/algos/blr"
	"hamlet/algos/model"
)

const (
	testEvents = 10_000
	testWindow = 1000
)

// arguments of a run of 10⁴ events with four checks.
func arguments(folder string, more ...string) []string {
	return append([]string{"--events", fmt.Sprint(testEvents), "--every", "2500",
		"--duplicate-window", fmt.Sprint(testWindow), "--folder", folder}, more...)
}

// A run that goes on from its checkpoints ends with the bytes of a model that was never stored,
// and so does one that is stopped on the way.
func TestEndurance(t *testing.T) {
	var plain bytes.Buffer
	m, err := model.New(model.Config{Dense: names(), DuplicateWindow: testWindow})
	if err != nil {
		t.Fatal(err)
	}
	s := newSynthetic(1)
	for i := range uint64(testEvents) {
		ex := s.event(i)
		var refused *model.RefusedError
		if _, err := m.Apply(&ex); err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
	}
	image, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d %x ", testEvents, sha256.Sum256(image))

	folder := t.TempDir()
	if err := run(t.Context(), arguments(folder), &plain, t.Output()); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(plain.String(), want) {
		t.Errorf("the run ends with %swant %s", &plain, want)
	}
	checks(t, folder, 4)

	var pieces bytes.Buffer
	folder = t.TempDir()
	if err := run(t.Context(), arguments(folder, "--for", "1ns"), &pieces, t.Output()); !errors.Is(err, errTime) {
		t.Fatalf("without time: %v, want %v", err, errTime)
	}
	stopAt(t, folder, 3072) // within the cycle, with a restored model beside
	if err := run(t.Context(), arguments(folder), &pieces, t.Output()); err != nil {
		t.Fatal(err)
	}
	if pieces.String() != plain.String() {
		t.Errorf("stopped at event 3072 it ends with %swant %s", &pieces, &plain)
	}
	if err := run(t.Context(), arguments(folder, "--seed", "2"), io.Discard, t.Output()); err == nil {
		t.Error("another seed goes on from the checkpoint")
	}
}

// stopAt runs the run in folder until an event, and stops it there.
func stopAt(t *testing.T, folder string, at uint64) {
	t.Helper()
	r, err := open(Config{Events: testEvents, Every: 2500, Seed: 1}, folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for r.state.Position < at {
		if err := r.step(); err != nil {
			t.Fatal(err)
		}
		if r.state.Position == 2500 {
			if err := r.check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	cancel()
	if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped: %v", err)
	}
}

// checks looks at the lines of checks.jsonl.
func checks(t *testing.T, folder string, want int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "checks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) != want {
		t.Fatalf("%d checks, want %d", len(lines), want)
	}
	for _, line := range lines {
		var c Check
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"head", "stacker", "alarm's head", "credulous head"} {
			if b, a := c.Before[name], c.After[name]; !(b > 0 && b < 1e-12 && a > 0 && a < 1e-12) {
				t.Errorf("at %d: max|VΛ−I| of the %s is %g, then %g", c.Position, name, b, a)
			}
			if c.Factorings[name].Scheduled == 0 {
				t.Errorf("at %d: %s was never factored", c.Position, name)
			}
		}
		if c.Heap == 0 || c.Image == 0 || c.Rebuilds == 0 || c.Duplicates == 0 || !(c.LogLoss > 0.1 && c.LogLoss < 0.5) {
			t.Errorf("%+v", c)
		}
	}
}

// What breaks a bound is an error.
func TestHolds(t *testing.T) {
	sound := func() (*State, *Check) {
		return &State{FullHeap: 20 << 20, Worst: map[string]float64{"head": 1e-12}, Rebuilds: 100}, &Check{Heap: 21 << 20}
	}
	if s, c := sound(); s.holds(c) != nil {
		t.Error(s.holds(c))
	}
	for name, spoil := range map[string]func(*State, *Check){
		"max|VΛ−I|":                  func(s *State, _ *Check) { s.Worst["head"] = 2 * mostResidue },
		"max|VΛ−I| = NaN":            func(s *State, _ *Check) { s.Worst["head"] = math.NaN() },
		"when the windows were full": func(_ *State, c *Check) { c.Heap = 24 << 20 },
		"rebuilds failed":            func(s *State, _ *Check) { s.RebuildsFailed = 2 },
	} {
		s, c := sound()
		spoil(s, c)
		if err := s.holds(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A model that differs from the one that was saved is found.
func TestTwinDiffers(t *testing.T) {
	r, err := newRun(Config{Model: model.Config{Dense: names(), DuplicateWindow: testWindow}, Events: 10_000, Every: 2000})
	if err != nil {
		t.Fatal(err)
	}
	for r.state.Position < 500 {
		if err := r.step(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.check(); err != nil {
		t.Fatal(err)
	}
	other := r.stream.event(400)
	other.ID = "only the twin has it"
	if _, err := r.twin.model.Apply(&other); err != nil {
		t.Fatal(err)
	}
	for err == nil && r.twin != nil {
		err = r.step()
	}
	if err == nil {
		t.Error("a model with an event more has the same bytes")
	}
}

// The largest entry of VΛ − I is seen wherever it is, and rounding of the product is not.
func TestOffInverse(t *testing.T) {
	v, lambda := []float64{2, 0, 0, 4}, []float64{0.5, 0, 0, 0.25}
	if got := offInverse(v, lambda, 2); got != 0 {
		t.Errorf("of an inverse: %g", got)
	}
	v[1], v[2] = 1e-13, 1e-13
	if got := offInverse(v, lambda, 2); got != 0.5e-13 {
		t.Errorf("%g, want 5e−14", got)
	}
	// (1 + 2⁻³⁰)(1 − 2⁻³⁰) = 1 − 2⁻⁶⁰, which is 1 in a float64.
	if got := offInverse([]float64{1 + 0x1p-30}, []float64{1 - 0x1p-30}, 1); got != 0x1p-60 {
		t.Errorf("%g, want 2⁻⁶⁰", got)
	}
	p, err := blr.New(blr.Config{Dim: 3, Precision: []float64{1, 2, 4}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 999 {
		p.Update([]float64{1, float64(i%7) - 3, float64(i%5) - 2}, float64(i%2*2-1), 1)
	}
	if got := residue(p); !(got > 0 && got < 1e-12) {
		t.Errorf("after 999 updates: %g", got)
	}
}

// The stream is made of (seed, number) alone, and it has Spambase's shape.
func TestSynthetic(t *testing.T) {
	s, again := newSynthetic(1), newSynthetic(1)
	again.event(7)
	spam, words := 0, 0
	actions := map[model.Action]int{}
	ids := map[string]int{}
	for i := range uint64(20_000) {
		ex := s.event(i)
		if i%997 == 0 {
			other := again.event(i)
			if fmt.Sprint(ex) != fmt.Sprint(other) {
				t.Fatalf("event %d is %v and %v", i, ex, other)
			}
		}
		if fmt.Sprint(ex.Body.Vector) == fmt.Sprint(newSynthetic(2).event(i).Body.Vector) {
			t.Fatalf("event %d of another seed is equal", i)
		}
		actions[ex.Action]++
		ids[ex.ID]++
		if ex.Spam {
			spam++
		}
		for j, n := range ex.Body.Vector {
			if n.Name != s.names[j] || !(n.Value >= 0 && n.Value < 20_000) {
				t.Fatalf("event %d: %+v", i, n)
			}
			if n.Value > 0 {
				words++
			}
		}
	}
	if share := float64(spam) / 20_000; math.Abs(share-0.394) > 0.02 {
		t.Errorf("%.3f are spam", share)
	}
	if share := float64(words) / 20_000 / 57; math.Abs(share-0.23) > 0.05 { // Spambase: 0.23
		t.Errorf("%.3f of the numbers are not 0", share)
	}
	copies := actions[model.Learn] - len(ids) + actions[model.Correct] + actions[model.Unlearn]
	if copies < 100 || actions[model.Correct] < 20 || actions[model.Unlearn] < 10 {
		t.Errorf("%d copies, %v", copies, actions)
	}
}
