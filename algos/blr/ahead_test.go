package blr

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
)

// events returns n events of a stream. Rows with an index in long are multiplied by its number.
func events(s *stream, n int, long map[int]float64) (xs [][]float64, ys, phis []float64) {
	for i := range n {
		x, y, phi := s.next()
		if by, ok := long[i]; ok {
			for j := range x {
				x[j] *= by
			}
		}
		xs, ys, phis = append(xs, x), append(ys, y), append(phis, phi)
	}
	return xs, ys, phis
}

// alikeInAll learns events one by one in one of two equal posteriors and all at once in the other. It compares
// every site and what the posterior says after each event, and the bytes at the end and in the middle.
func alikeInAll(t *testing.T, one, all *Posterior, xs [][]float64, ys, phis []float64) {
	t.Helper()
	n := 0
	for i, site := range all.UpdateAll(xs, ys, phis) {
		if i != n {
			t.Fatalf("event %d, want %d", i, n)
		}
		n++
		phi := 1.0
		if phis != nil {
			phi = phis[i]
		}
		if want := one.Update(xs[i], ys[i], phi); !reflect.DeepEqual(site, want) {
			t.Fatalf("event %d: site %+v, want %+v", i, site, want)
		}
		if all.logDetV != one.logDetV || all.logEvidence != one.logEvidence || !slices.Equal(all.mean, one.mean) {
			t.Fatalf("event %d: the mean, ln|V| or the evidence differ", i)
		}
		if i%37 == 0 && !bytes.Equal(encode(t, all), encode(t, one)) {
			t.Fatalf("event %d: the bytes differ", i)
		}
	}
	if n != len(xs) {
		t.Fatalf("%d events, want %d", n, len(xs))
	}
	if !bytes.Equal(encode(t, all), encode(t, one)) {
		t.Fatal("the bytes differ at the end")
	}
}

// UpdateAll gives the bits of Update for one event after the other: whatever the site, the block, the half-life and
// the schedule, in the middle of a block too, and where V is repaired among the events.
func TestUpdateAllGivesTheSameBits(t *testing.T) {
	var surprised, wrong uint64
	for _, site := range sites {
		for _, dim := range []int{1, 6, 37} {
			for _, block := range []int{1, 3, 7, 50, 64} {
				for _, halfLife := range []float64{0, 90} {
					for _, refactor := range []int{33, 1000} {
						t.Run(fmt.Sprintf("%v/d=%d/block=%d/half-life=%v/refactor=%d", site, dim, block, halfLife, refactor), func(t *testing.T) {
							cfg := Config{Dim: dim, Approximation: site, Block: block, HalfLife: halfLife, Refactor: refactor}
							one, all := mustNew(t, cfg), mustNew(t, cfg)
							s := newStream(200, dim)
							xs, ys, phis := events(s, 200, map[int]float64{0: 1e8, 20: 1e8, 41: 0, 76: 1e-8, 130: 1e9})
							ys[130] = -ys[130]
							for i := range 7 { // so that the others do not begin a block
								alikeInAll(t, one, all, xs[i:i+1], ys[i:i+1], nil)
							}
							alikeInAll(t, one, all, xs, ys, phis)
							surprised += one.repaired

							// Where a variance is below 0, V is repaired before the event; where the probe finds it wrong, after.
							xs, ys, _ = events(s, 150, nil)
							repaired := one.repaired
							for _, p := range []*Posterior{one, all} {
								for j := range dim {
									p.cov.Row(dim, j)[0] -= 0.5
								}
							}
							alikeInAll(t, one, all, xs, ys, nil)
							wrong += one.repaired - repaired
						})
					}
				}
			}
		}
	}
	if surprised < 10 || wrong < 10 {
		t.Errorf("%d and %d repairs, so this tests less than it says", surprised, wrong)
	}
}

// UpdateAll learns the inputs that Shortened returns, as Update does.
func TestUpdateAllShortensInputs(t *testing.T) {
	cfg := Config{Dim: 4, Block: 8}
	one, all := mustNew(t, cfg), mustNew(t, cfg)
	xs, ys, phis := events(newStream(203, 4), 20, map[int]float64{3: 0x1p110, 12: 0x1p110})
	before := slices.Clone(xs[3])
	alikeInAll(t, one, all, xs, ys, phis)
	if !slices.Equal(xs[3], before) {
		t.Error("it changed an input")
	}
}

// A negative variance at the first event of a block makes V be computed again while no event waits.
func TestUpdateAllAfterARepairOfAnEmptyBlock(t *testing.T) {
	const dim = 9
	for at := range 8 {
		cfg := Config{Dim: dim, Block: 8}
		one, all := mustNew(t, cfg), mustNew(t, cfg)
		xs, ys, phis := events(newStream(201, dim), 40, nil)
		for _, p := range []*Posterior{one, all} {
			for i := range at {
				p.Update(xs[i], ys[i], 1)
			}
			for j := range p.cov {
				p.cov[j] = -p.cov[j]
			}
		}
		alikeInAll(t, one, all, xs, ys, phis)
		if one.repaired == 0 {
			t.Error("no repair, so this tests nothing")
		}
	}
}

// After a break the events that were not yielded are not learnt, and readers see no trace of them.
func TestUpdateAllEndsWithTheLoop(t *testing.T) {
	const dim = 9
	for _, block := range []int{1, 16} {
		cfg := Config{Dim: dim, Block: block}
		one, all := mustNew(t, cfg), mustNew(t, cfg)
		xs, ys, phis := events(newStream(202, dim), 60, nil)
		learnt := 0
		for learnt < len(xs) {
			for i, site := range all.UpdateAll(xs[learnt:], ys[learnt:], phis[learnt:]) {
				if want := one.Update(xs[learnt+i], ys[learnt+i], phis[learnt+i]); !reflect.DeepEqual(site, want) {
					t.Fatalf("event %d: site %+v, want %+v", learnt+i, site, want)
				}
				m, a := all.Moments(xs[0])
				if m2, a2 := one.Moments(xs[0]); m != m2 || a != a2 {
					t.Fatalf("moments %v and %v in the loop, want %v and %v", m, a, m2, a2)
				}
				if i == 10 {
					break
				}
			}
			learnt = int(one.Updates())
			alikeInAll(t, one.Clone(), all.Clone(), xs, ys, phis)
		}
		if !bytes.Equal(encode(t, all), encode(t, one)) {
			t.Error("the bytes differ")
		}
	}
}

// What Update panics at, UpdateAll refuses before any change.
func TestUpdateAllRefusesAtOnce(t *testing.T) {
	p := mustNew(t, Config{Dim: 2, Block: 4})
	p.Update([]float64{1, 2}, 1, 1)
	before := encode(t, p)
	good := []float64{1, 0}
	for _, c := range []struct {
		what     string
		xs       [][]float64
		ys, phis []float64
	}{
		{"labels", [][]float64{good, good}, []float64{1}, nil},
		{"powers", [][]float64{good, good}, []float64{1, 1}, []float64{1}},
		{"length", [][]float64{good, {1}}, []float64{1, 1}, nil},
		{"NaN", [][]float64{good, {1, math.NaN()}}, []float64{1, 1}, nil},
		{"label", [][]float64{good, good}, []float64{1, 0}, nil},
		{"power", [][]float64{good, good}, []float64{1, 1}, []float64{1, 3}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", c.what)
				}
			}()
			p.UpdateAll(c.xs, c.ys, c.phis)
		}()
	}
	if !bytes.Equal(encode(t, p), before) {
		t.Error("a refusal changed the posterior")
	}

	defer func() {
		if recover() == nil {
			t.Error("an update in the loop: no panic")
		}
	}()
	for range p.UpdateAll([][]float64{good, good}, []float64{1, 1}, nil) {
		p.Update(good, 1, 1)
	}
}
