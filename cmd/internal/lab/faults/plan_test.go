package faults

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Equal seeds give equal plans, however they are drawn; other seeds give others.
func TestPlanIsOfItsSeed(t *testing.T) {
	const n = 400
	one, parts := newPlan(7), newPlan(7)
	want := one.round(n)
	var got []fault
	for len(got) < n {
		got = append(got, parts.round(8)...)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("two plans of one seed differ:\n%s", d)
	}
	if cmp.Equal(want, newPlan(8).round(n)) {
		t.Error("plans of two seeds are equal")
	}
}

// A plan contains every kind of fault, within its bounds.
func TestPlanHasEveryFault(t *testing.T) {
	byChoice := map[[2]string]choice{}
	for _, c := range choices {
		byChoice[[2]string{string(c.action), string(c.target)}] = c
	}
	if len(byChoice) != len(choices) {
		t.Fatalf("%d choices, %d of them differ", len(choices), len(byChoice))
	}
	seen := map[[2]string]bool{}
	for _, f := range newPlan(1).round(3000) {
		key := [2]string{string(f.Action), string(f.Target)}
		c, ok := byChoice[key]
		if !ok || f.After < 0 || f.After > maxGap || f.Hold < c.minHold || f.Hold > c.hold || f.Rate < c.rates[0] ||
			f.Rate > c.rates[1] {
			t.Errorf("%v after %v is not of %+v", f, f.After, c)
		}
		seen[key] = true
	}
	for key := range byChoice {
		if !seen[key] {
			t.Errorf("3,000 faults contain no %v", key)
		}
	}
}
