package drift

import (
	"fmt"
	"slices"
	"testing"
)

var alarmNames = []string{"noise", "covariate", "concept"}

// A tally says how alarms fared on some streams with a fault at faultAt.
type tally struct {
	streams int
	before  map[string]int      // streams in which it was raised before the fault
	delays  map[string][]uint64 // of the first raise after it, ascending
}

// measure runs seeds shuffles of spambase with a fault.
func measure(tb testing.TB, f fault, seeds uint64) tally {
	t := tally{before: map[string]int{}, delays: map[string][]uint64{}}
	for seed := range seeds {
		stream := spambaseStream(tb, seed, f)
		r := newRig(len(stream[0].x))
		for _, it := range stream {
			r.event(it)
		}
		t.streams++
		for _, alarm := range alarmNames {
			if at, ok := r.first(alarm, 0); ok && at <= faultAt {
				t.before[alarm]++
			}
			if at, ok := r.first(alarm, faultAt); ok {
				t.delays[alarm] = append(t.delays[alarm], at-faultAt)
			}
		}
	}
	for _, d := range t.delays {
		slices.Sort(d)
	}
	return t
}

func (t tally) String() (s string) {
	for _, alarm := range alarmNames {
		s += fmt.Sprintf("  %s %2d", alarm, len(t.delays[alarm]))
		if d := t.delays[alarm]; len(d) > 0 {
			s += fmt.Sprintf(" (median delay %d, last %d)", d[len(d)/2], d[len(d)-1])
		}
		if n := t.before[alarm]; n > 0 {
			s += fmt.Sprintf(" before: %d", n)
		}
	}
	return s
}

// MEASURED.md, on shuffles of spambase changed at event 2,600:
// label noise is raised by flips and by nothing else, concept by mirrored features,
// covariate by inputs of another scale. BenchmarkSpambaseTable has 20 shuffles.
func TestSpambaseTable(t *testing.T) {
	const seeds = 3
	for _, row := range spambaseTable {
		got := measure(t, row.f, seeds)
		t.Logf("%-24s%v", row.name, got)
		want := map[string]int{"noise": 0}
		switch row.name {
		case "clean":
			want["concept"], want["covariate"] = 0, 0
		case "10 % flips", "20 % flips":
			want = map[string]int{"noise": seeds, "covariate": 0}
		case "5 % flips":
			want = nil
		case "20 mirrored columns":
			if n := len(got.delays["concept"]); n < seeds-1 { // it is 18 of 20
				t.Errorf("%s: concept raised in %d of %d", row.name, n, seeds)
			}
		case "inputs × 3":
			want["covariate"] = seeds
		}
		for _, alarm := range alarmNames {
			if n, ok := want[alarm]; ok && len(got.delays[alarm]) != n {
				t.Errorf("%s: %s raised in %d of %d, want %d", row.name, alarm, len(got.delays[alarm]), seeds, n)
			}
			if got.before[alarm] > 0 {
				t.Errorf("%s: %s raised before the fault in %d", row.name, alarm, got.before[alarm])
			}
		}
	}
}

// The first table of MEASURED.md:
//
//	go test -run - -bench SpambaseTable -benchtime 1x ./algos/drift
func BenchmarkSpambaseTable(b *testing.B) {
	for _, row := range spambaseTable {
		b.Run(row.name, func(b *testing.B) {
			for b.Loop() {
				got := measure(b, row.f, 20)
				b.Logf("of 20:%v", got)
				for _, alarm := range alarmNames {
					b.ReportMetric(float64(len(got.delays[alarm])), alarm+"/20")
				}
			}
		})
	}
}

// When only one label is flipped, the rates by true label name it; noise that one
// source makes, here a tenth of the events of which .3 are flipped, names it first.
func TestReportNamesTheForger(t *testing.T) {
	for _, label := range []float64{1, -1} {
		for seed := range uint64(3) {
			r := newRig(57)
			raised := false
			for _, it := range spambaseStream(t, seed, flips(.2, label)) {
				r.event(it)
				if now := r.noise.raised; now != raised {
					raised = now
					rep := r.noise.Report()
					if up := rep.HamCalledSpam.Rate > rep.SpamCalledHam.Rate; raised && up != (label < 0) {
						t.Errorf("label %v flipped, seed %d: at %d ham called spam %.3f, spam called ham %.3f",
							label, seed, r.count, rep.HamCalledSpam.Rate, rep.SpamCalledHam.Rate)
					}
				}
			}
			if len(r.changes) == 0 {
				t.Errorf("label %v flipped, seed %d: nothing raised", label, seed)
			}
		}
	}
	first := 0
	const seeds = 10
	for seed := range uint64(seeds) {
		r := newRig(57)
		for i, it := range spambaseStream(t, seed, none)[:faultAt+600] {
			it.source = "good"
			if i%10 == 0 {
				it.source = "bad"
				if i > faultAt && (i/10)%10 < 3 {
					it.label = -it.label
				}
			}
			r.event(it)
		}
		if rep := r.noise.Report(); rep.Sources[0].Source == "bad" {
			first++
		} else {
			t.Logf("seed %d: %+v", seed, rep.Sources)
		}
	}
	if first < seeds-1 {
		t.Errorf("the bad source first in %d of %d", first, seeds)
	}
}
