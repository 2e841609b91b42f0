package blr

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/internal/triangle"
)

// Blocks change no semantics: every prediction, site and moment is that of events
// one by one to 1e−12, whatever the size of the block.
func TestBlockedEqualsSequential(t *testing.T) {
	for _, site := range sites {
		for _, dim := range []int{1, 4, 13, 58} {
			t.Run(fmt.Sprintf("%v/d=%d", site, dim), func(t *testing.T) {
				const n = 300
				type seen struct {
					m, a, evidence, logDet float64
					rec                    Site
				}
				run := func(block int) (all []seen, p *Posterior) {
					p, s := mustNew(t, Config{Dim: dim, Approximation: site, Block: block, Refactor: 130, Precision: flat(dim, 2)}), newStream(100, dim)
					for range n {
						x, y, phi := s.next()
						m, a := p.Moments(x)
						rec := p.Update(x, y, phi)
						all = append(all, seen{m, a, p.LogEvidence(), p.LogDetV(), rec})
					}
					return all, p
				}
				want, one := run(1)
				for _, block := range []int{2, 3, 16, 50, 64} {
					got, p := run(block)
					worst := 0.0
					for i := range got {
						worst = max(worst, relative(got[i].m, want[i].m), relative(got[i].a, want[i].a), relative(got[i].evidence, want[i].evidence),
							relative(got[i].logDet, want[i].logDet), relative(got[i].rec.H, want[i].rec.H), relative(got[i].rec.R, want[i].rec.R))
					}
					worst = max(worst, apart(p, one))
					if worst > 1e-12 {
						t.Errorf("block %d: largest difference %g", block, worst)
					}
					if r := residualOf(p); r > 1e-12 {
						t.Errorf("block %d: max |VΛ − I| = %g", block, r)
					}
				}
			})
		}
	}
}

// In the middle of a block every reader sees all events, and changes nothing.
func TestReadersInsideABlock(t *testing.T) {
	const dim = 9
	p, s := mustNew(t, Config{Dim: dim, Block: 32}), newStream(102, dim)
	for range 45 {
		p.Update(s.next())
	}
	if p.block.n != 13 {
		t.Fatalf("%d events in the block, so this tests nothing", p.block.n)
	}
	before := encode(t, p)
	q := p.Clone()
	q.write()
	near := func(what string, got, want float64) {
		t.Helper()
		if relative(got, want) > 1e-14 {
			t.Errorf("%s is %v, written %v", what, got, want)
		}
	}
	x, _, _ := s.next()
	m, a := p.Moments(x)
	m2, a2 := q.Moments(x)
	near("m", m, m2)
	near("a", a, a2)
	near("p", p.Prob(x), q.Prob(x))
	for j, c := range p.Contributions(nil, x) {
		near("sd", c.SD, q.Contributions(nil, x)[j].SD)
	}
	group, mean, cov, cov2 := []int{0, 1, 2, 0, 1, 2, 0, 1, 2}, make([]float64, 3), &mat.SymDense{}, &mat.SymDense{}
	p.GroupContributions(mean, cov, x, group)
	q.GroupContributions(mean, cov2, x, group)
	if !mat.Equal(cov, cov2) {
		t.Error("covariances of groups differ")
	}
	v, v2, l, l2, eta := &mat.SymDense{}, &mat.SymDense{}, &mat.SymDense{}, &mat.SymDense{}, make([]float64, dim)
	p.CovarianceTo(v)
	q.CovarianceTo(v2)
	p.NaturalTo(eta, l)
	q.NaturalTo(eta, l2)
	if !mat.Equal(v, v2) || !mat.Equal(l, l2) {
		t.Error("V or Λ differ from those written")
	}
	one, err := Merge(p)
	if err != nil {
		t.Fatal(err)
	}
	if d := apart(one, q); d != 0 {
		t.Errorf("merged alone it differs by %g", d)
	}
	rec := Site{X: slices.Repeat([]float64{1e4}, dim), Y: 1, Phi: 1, Step: Step{H: 0.25}}
	if _, err := p.Unlearn(rec); !errors.Is(err, ErrIndefinite) {
		t.Errorf("error %v", err)
	}
	if _, err := p.Refresh(&rec); !errors.Is(err, ErrIndefinite) {
		t.Errorf("error %v", err)
	}
	if !bytes.Equal(encode(t, p), before) {
		t.Error("reading, or a refusal, changed the posterior")
	}
	rec = p.Update(s.next())
	p.Update(s.next())
	q = p.Clone()
	if _, err := p.Unlearn(rec); err != nil {
		t.Fatal(err)
	}
	q.write()
	if _, err := q.Unlearn(rec); err != nil {
		t.Fatal(err)
	}
	if d := apart(p, q); d > 1e-15 {
		t.Errorf("withdrawn inside a block and after it, (Λ, η) differ by %g", d)
	}
}

// gonumLoop is one event the plain way, on a full matrix: gonum's MulVec and
// SymRankOne.
type gonumLoop struct {
	v *mat.SymDense
	u *mat.VecDense
}

func newGonumLoop(dim int) *gonumLoop {
	g := &gonumLoop{mat.NewSymDense(dim, nil), mat.NewVecDense(dim, nil)}
	for j := range dim {
		g.v.SetSym(j, j, 1)
	}
	return g
}

func (g *gonumLoop) event(x *mat.VecDense) {
	g.u.MulVec(g.v, x)
	a := mat.Dot(x, g.u)
	g.v.SymRankOne(g.v, -0.2/(1+0.2*a), g.u)
}

// report writes the medians of two measurements taken in turns and of their ratio.
func report(b *testing.B, ours, theirs []float64) {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = theirs[i] / ours[i]
	}
	for _, v := range [][]float64{ours, theirs, ratios} {
		slices.Sort(v)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(1e6*ours[len(ours)/2], "µs/event")
	b.ReportMetric(1e6*theirs[len(theirs)/2], "gonum-µs/event")
	b.ReportMetric(ratios[len(ratios)/2], "gonum/event")
}

// BenchmarkBlocked compares, taking turns, events of many inputs in blocks of 64 with gonum's MulVec and
// SymRankOne: one after the other as they come, and known beforehand. The posterior is the same but for rounding.
func BenchmarkBlocked(b *testing.B) {
	for _, dim := range []int{1024, 4096} {
		s := newStream(105, dim)
		xs, ys := make([][]float64, MaxBlock), make([]float64, MaxBlock)
		for i := range xs {
			xs[i], ys[i], _ = s.next()
		}
		run := func(name string, learn func(p *Posterior)) {
			b.Run(fmt.Sprintf("%s/d=%d", name, dim), func(b *testing.B) {
				p, loop := mustNew(b, Config{Dim: dim, Block: MaxBlock, Refactor: 1 << 30}), newGonumLoop(dim)
				var ours, theirs []float64
				for b.Loop() {
					start := time.Now()
					learn(p)
					ours = append(ours, time.Since(start).Seconds()/MaxBlock)
					start = time.Now()
					const few = 8
					for i := range few {
						loop.event(mat.NewVecDense(dim, xs[i]))
					}
					theirs = append(theirs, time.Since(start).Seconds()/few)
				}
				report(b, ours, theirs)
			})
		}
		run("Update", func(p *Posterior) {
			for i := range MaxBlock {
				p.Update(xs[i], ys[i], 1)
			}
		})
		run("UpdateAll", func(p *Posterior) {
			for range p.UpdateAll(xs, ys, nil) {
			}
		})
	}
}

// BenchmarkAgainstGonum compares, at D = 57 and taking turns, the rank-1 kernel
// (Vx and V + g·uuᵀ) and the whole event with gonum's MulVec and SymRankOne on a
// SymDense of the same size.
func BenchmarkAgainstGonum(b *testing.B) {
	const dim, turn = 57, 500
	s := newStream(104, dim)
	var xs [][]float64
	var vs []*mat.VecDense
	var ys []float64
	for range turn {
		x, y, _ := s.next()
		xs, vs, ys = append(xs, x), append(vs, mat.NewVecDense(dim, x)), append(ys, y)
	}
	measure := func(b *testing.B, ours func(i int)) {
		loop := newGonumLoop(dim)
		var t1, t2 []float64
		for b.Loop() {
			start := time.Now()
			for i := range turn {
				ours(i)
			}
			t1 = append(t1, time.Since(start).Seconds()/turn)
			start = time.Now()
			for i := range turn {
				loop.event(vs[i])
			}
			t2 = append(t2, time.Since(start).Seconds()/turn)
		}
		report(b, t1, t2)
	}
	b.Run("kernel", func(b *testing.B) {
		p, u := mustNew(b, Config{Dim: dim}), make([]float64, dim)
		measure(b, func(i int) {
			p.cov.MulVec(u, xs[i])
			p.cov.AddOuter(-0.2/(1+0.2*triangle.Dot(xs[i], u)), u)
		})
	})
	for _, site := range sites {
		b.Run("event/"+site.String(), func(b *testing.B) {
			p := mustNew(b, Config{Dim: dim, Approximation: site})
			b.ReportAllocs()
			measure(b, func(i int) { p.Update(xs[i], ys[i], 1) })
		})
	}
}
