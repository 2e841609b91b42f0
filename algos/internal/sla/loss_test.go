package sla

import (
	"math"
	"math/rand/v2"
	"testing"
)

// mixed returns the losses of p(+1) = wθ + (1−w)·σ(γz).
func mixed(w, θ, γ float64) Curve { return NewCurve(w*θ, 1-w, w*(1-θ), γ) }

// sample draws rows of normals and the labels of a linear truth with noise.
func sample(r *rand.Rand, n, d int) (x [][]float64, y []float64) {
	for range n {
		row, z := make([]float64, d), 0.5*r.NormFloat64()
		for j := range row {
			row[j] = r.NormFloat64()
			z += row[j]
		}
		x, y = append(x, row), append(y, math.Copysign(1, z))
	}
	return x, y
}

// Plateaus that are looked up are what would be computed, to the bit, and where
// derivatives are cut off they are below e⁻⁴⁰.
func TestPlateausAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	found := 0
	for range 500 {
		mix, θ := math.Pow(10, -20*r.Float64()), math.Pow(10, -5*r.Float64())
		c, cut := mixed(mix, θ, 1), mixed(mix, θ, 1)
		cut.Plus.Cut, cut.Minus.Cut = cut.Plus.Flat, cut.Minus.Flat
		for _, y := range []float64{1, -1} {
			plain := NewSide(c.Side(y).Lo, c.Side(y).B, c.Side(y).hi)
			far := c.Side(y).Flat
			if far <= 80 {
				found++
			} else {
				far = 80
			}
			for _, v := range []float64{-1e300, -746, -90, -far - 1, math.Nextafter(-far, -90), -far, -39, 0, 39, far, math.Nextafter(far, 90), far + 1, 90, 300, 1e300} {
				loss, slope := plain.At(v)
				if got, gotSlope := c.Side(y).At(v); got != loss || gotSlope != slope {
					t.Fatalf("mix %v, θ %v, y = %v at %v: %v, %v, computed %v, %v", mix, θ, y, v, got, gotSlope, loss, slope)
				}
				got, gotSlope := cut.Side(y).At(v)
				if got != loss || gotSlope != slope && (gotSlope != 0 || math.Abs(slope) > math.Exp(-40)*plain.B/plain.Lo) {
					t.Fatalf("mix %v, θ %v, y = %v at %v: cut off %v, %v, computed %v, %v", mix, θ, y, v, got, gotSlope, loss, slope)
				}
			}
		}
	}
	if found < 200 || found > 950 {
		t.Errorf("%d of 1000 sides have plateaus that are looked up", found)
	}
}

// No probe is dismissed whose value, as computed, reaches the goal: not when the goal
// is that very value, and not where margins are so large that a place in the table
// is off by many cells.
func TestScreenIsABound(t *testing.T) {
	for _, scale := range []float64{1, 1e3, 1e6, 1e9, 1e12, 1e15} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 5))
			x, y := sample(r, 40, 3)
			for _, row := range x { // two large columns, that a step of ½ makes cancel
				row[0] *= scale
				row[1] = row[0] + row[1]
			}
			w := []float64{1, -0.5, r.NormFloat64()}
			c := mixed(math.Floor(3*r.Float64())/2, 0.3, 1+20*r.Float64())
			if c.Plus.B == 0 {
				c = SigmoidCurve(c.Gamma)
			}
			o := NewObjective(NewProblem(x, y, nil), c, 1e-3)
			p := NewProber(o, 1e-3)
			size := math.Abs(o.Value(w))
			p.prepare(w)
			for j, was := range w {
				const radius = 5
				for k := 1; k <= 20; k++ {
					for _, step := range []float64{float64(k) * radius / 20, -float64(k) * radius / 20} {
						l := p.along(p.Column(p.col, j), was, radius, size)
						for i, v := range p.Column(p.col, j) {
							p.M[i] = p.straight[i] + p.Y[i]*step*v
						}
						l.goal = p.Sum() + p.penaltyOf(was+step)
						if l.goal <= size && !p.mayReach(&l, step, step) {
							t.Fatalf("scale %v, seed %d: the step %v along %d, which reaches %v, is dismissed", scale, seed, step, j, l.goal)
						}
					}
				}
			}
		}
	}
}

// The table of losses is off by no more than its bound allows for.
func TestTable(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, cells := range []int{32, 100, 353, 1024} {
		for range 20 {
			c := mixed(math.Pow(10, -6*r.Float64()), r.Float64(), 1)
			for _, s := range []Side{c.Plus, c.Minus, mixed(0, 0.5, 1).Plus, mixed(1, 0.3, 1).Plus, SigmoidCurve(1).Plus} {
				f := make([]float64, 2*reach*cells+2)
				s.tabulate(f, cells)
				for i, got := range f[:2*reach*cells] {
					if want, _ := s.At(float64(i-reach*cells) / float64(cells)); !(math.Abs(got-want) <= tableError) {
						t.Fatalf("%d cells, %+v: entry %d is %v, want %v", cells, s, i, got, want)
					}
				}
				if want, _ := s.At(math.Inf(1)); f[2*reach*cells] != want || f[2*reach*cells+1] != want {
					t.Errorf("%d cells, %+v: the table ends with %v, want %v", cells, s, f[2*reach*cells:], want)
				}
			}
		}
	}
}
