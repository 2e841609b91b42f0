package vblr

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/algotest/dataset"
	"hamlet/algos/blr"
)

// readSet returns rows [1, features…] and labels of a data set.
func readSet(t testing.TB, table dataset.Table) (x [][]float64, y []float64) {
	t.Helper()
	x, y = table.Read(t)
	for i := range x {
		x[i] = append([]float64{1}, x[i]...)
	}
	return x, y
}

// spambase has sign(v)·ln(1+|v|) of its 57 features.
func spambase(t testing.TB) (x [][]float64, y []float64) {
	t.Helper()
	x, y = readSet(t, dataset.Table{File: "spambase/spambase.data", Positive: dataset.Is("1")})
	for _, row := range x {
		dataset.SignedLog([][]float64{row[1:]})
	}
	return x, y
}

func letterAB(t testing.TB) (x [][]float64, y []float64) {
	t.Helper()
	return readSet(t, dataset.Table{File: "letter-ab/letter-ab.data", Label: 1, Positive: dataset.Is("A")})
}

// A split is a seeded 75/25 split, standardised by its training part.
type split struct {
	x, xTest [][]float64
	y, yTest []float64
}

func splitOf(x [][]float64, y []float64, seed uint64) (s split) {
	r := rand.New(rand.NewPCG(seed, 1))
	perm := r.Perm(len(x))
	cut := len(x) * 3 / 4
	d := len(x[0])
	mean, sd := make([]float64, d), make([]float64, d)
	for _, n := range perm[:cut] {
		for j, v := range x[n] {
			mean[j] += v / float64(cut)
		}
	}
	for _, n := range perm[:cut] {
		for j, v := range x[n] {
			sd[j] += (v - mean[j]) * (v - mean[j]) / float64(cut)
		}
	}
	for i, n := range perm {
		row := []float64{1}
		for j, v := range x[n][1:] {
			row = append(row, (v-mean[1+j])/math.Sqrt(max(sd[1+j], 1e-12)))
		}
		if i < cut {
			s.x, s.y = append(s.x, row), append(s.y, y[n])
		} else {
			s.xTest, s.yTest = append(s.xTest, row), append(s.yTest, y[n])
		}
	}
	return s
}

// loss returns the mean log loss of prob on the test part.
func (s *split) loss(prob func(x []float64) float64) float64 {
	sum := 0.0
	for n, x := range s.xTest {
		p := prob(x)
		if s.yTest[n] < 0 {
			p = 1 - p
		}
		sum -= math.Log(max(p, 1e-15))
	}
	return sum / float64(len(s.xTest))
}

// flat returns a prior with equal precisions.
func same(dim int, precision float64) []float64 {
	all := make([]float64, dim)
	for j := range all {
		all[j] = precision
	}
	return all
}

// fits returns the log loss of the incremental fit and after three sweeps.
func (s *split) fits(t testing.TB, site blr.Approximation, precision float64) (incremental, swept float64) {
	t.Helper()
	dim := len(s.x[0])
	p := mustNew(t, blr.Config{Dim: dim, Approximation: site, Precision: same(dim, precision)})
	recs := make([]blr.Site, len(s.x))
	for n, x := range s.x {
		recs[n] = p.Update(x, s.y[n], 1)
	}
	incremental = s.loss(p.Prob)
	for range 3 {
		if _, err := p.Sweep(recs); err != nil {
			t.Fatal(err)
		}
	}
	return incremental, s.loss(p.Prob)
}

// Reference: ERRATA "frozen ξ" and "prior N(0, I/D)". Log loss on held-out
// quarters, the mean of five splits (seeds 1 to 5): event by event, after three
// sweeps and of the batch fit. One set of five splits of spambase differs from
// another by .006: over 20 of them Jaakkola–Jordan has .189 as learnt, .180 swept
// and .177 in batch, so the limits say as much about the splits as about the fits.
func TestLogLoss(t *testing.T) {
	if raced {
		t.Skip("a measurement in one goroutine, thirty times slower under the race detector")
	}
	const splits = 5
	for _, set := range []struct {
		name                      string
		read                      func(testing.TB) ([][]float64, []float64)
		incremental, swept, batch float64
	}{
		{"spambase", spambase, 0.19, 0.18, 0.175},
		{"letter-ab", letterAB, 0.06, 0.045, 0.045},
	} {
		t.Run(set.name, func(t *testing.T) {
			t.Parallel()
			x, y := set.read(t)
			d := float64(len(x[0]))
			var parts [splits]split
			batch := 0.0
			for i := range parts {
				parts[i] = splitOf(x, y, uint64(1+i))
				// The loss no longer moves in the fourth digit.
				b := mustFit(t, parts[i].x, parts[i].y, Config{Tolerance: 1e-2})
				batch += parts[i].loss(b.Prob) / splits
			}
			t.Logf("batch %.4f", batch)
			if !(batch <= set.batch) {
				t.Errorf("batch: log loss %.4f, want at most %v", batch, set.batch)
			}
			for _, site := range sites {
				for _, precision := range []float64{1, d} {
					incremental, swept := 0.0, 0.0
					for i := range parts {
						a, b := parts[i].fits(t, site, precision)
						incremental, swept = incremental+a/splits, swept+b/splits
					}
					t.Logf("%v, prior precision %v: as learnt %.4f, swept %.4f", site, precision, incremental, swept)
					if precision == 1 && !(incremental <= set.incremental && swept <= set.swept) {
						t.Errorf("%v: log loss %.4f as learnt and %.4f swept, want at most %v and %v", site, incremental, swept, set.incremental, set.swept)
					}
				}
			}
		})
	}
}
