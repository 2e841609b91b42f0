package faults

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Equal seeds give equal plans, however they are drawn; other seeds give others.
func TestPlanIsOfItsSeed(t *testing.T) {
	const n = 400
	one, parts := newPlan(7, choices), newPlan(7, choices)
	want := one.round(n)
	var got []fault
	for len(got) < n {
		got = append(got, parts.round(8)...)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("two plans of one seed differ:\n%s", d)
	}
	if cmp.Equal(want, newPlan(8, choices).round(n)) {
		t.Error("plans of two seeds are equal")
	}
}

// A plan contains every kind of fault, within its bounds.
func TestPlanHasEveryFault(t *testing.T) {
	all := slices.Concat(choices, machineChoices)
	byChoice := map[[2]string]choice{}
	for _, c := range all {
		byChoice[[2]string{string(c.action), string(c.target)}] = c
	}
	if len(byChoice) != len(all) {
		t.Fatalf("%d choices, %d of them differ", len(all), len(byChoice))
	}
	seen, files := map[[2]string]bool{}, map[string]bool{}
	for _, f := range newPlan(1, all).round(4000) {
		key := [2]string{string(f.Action), string(f.Target)}
		c, ok := byChoice[key]
		if !ok || f.After < 0 || f.After > maxGap || f.Hold < c.minHold || f.Hold > c.hold || f.Rate < c.rates[0] ||
			f.Rate > c.rates[1] || (f.Skew != 0) != (f.Action == setClock) {
			t.Errorf("%v after %v is not of %+v", f, f.After, c)
		}
		seen[key], files[f.File] = true, true
	}
	for key := range byChoice {
		if !seen[key] {
			t.Errorf("4,000 faults contain no %v", key)
		}
	}
	if len(files) != len(rots)+1 {
		t.Errorf("bits flip in %d kinds of file, want %d: %v", len(files)-1, len(rots), files)
	}
}

// A word chooses the faults that do it, or that it happens to.
func TestChosen(t *testing.T) {
	all := slices.Concat(choices, machineChoices)
	if n := len(chosen(all, nil)); n != len(all) {
		t.Errorf("without a word %d of %d faults are chosen", n, len(all))
	}
	var got []string
	for _, c := range chosen(all, []string{"set-back", "power", "scorer", "flip:redis"}) {
		got = append(got, fault{Action: c.action, Target: c.target}.kind())
	}
	want := []string{"kill scorer", "restart scorer", "stop scorer", "flip redis", "set back redis", "clock scorer", "power machine"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("chosen (-want +got):\n%s", d)
	}
	for _, word := range words() {
		if len(chosen(all, []string{word})) == 0 {
			t.Errorf("the word %q chooses nothing", word)
		}
	}
}
