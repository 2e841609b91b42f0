package boost

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawRows returns rows of values on levels different numbers (0: normals).
func drawRows(r *rand.Rand, rows, dim, levels int) [][]float64 {
	x := make([][]float64, rows)
	for i := range x {
		x[i] = make([]float64, dim)
		for j := range x[i] {
			x[i][j] = r.NormFloat64()
			if levels > 0 {
				x[i][j] = math.Floor(x[i][j]*float64(levels)/8) / 3
			}
		}
	}
	return x
}

// drawLabels returns labels with a noisy linear truth.
func drawLabels(r *rand.Rand, x [][]float64) []float64 {
	y := make([]float64, len(x))
	for i, row := range x {
		z := r.NormFloat64()
		for j, v := range row {
			z += v / float64(1+j)
		}
		y[i] = math.Copysign(1, z)
	}
	return y
}

func mustData(t testing.TB, x [][]float64) *Data {
	t.Helper()
	d, err := NewData(x)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustQuantise[T float32 | float64](t testing.TB, x [][]T, bins int) *Data {
	t.Helper()
	d, err := Quantise(x, bins)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// slowBest goes through every candidate and every row.
func slowBest(x [][]float64, w []int64) (Stump, int64) {
	best, edge := Stump{}, int64(-1-tie)
	for j := range x[0] {
		var values []float64
		for _, row := range x {
			values = append(values, row[j])
		}
		slices.Sort(values)
		values = slices.Compact(values)
		l := int64(-1 - tie)
		var of Stump
		for k := 1; k < len(values); k++ {
			threshold := (values[k-1] + values[k]) / 2
			e := int64(0)
			for i, row := range x {
				if row[j] > threshold {
					e += w[i]
				} else {
					e -= w[i]
				}
			}
			polarity := 1
			if e < 0 {
				e, polarity = -e, -1
			}
			if e > l+tie {
				of, l = Stump{Feature: j, Threshold: threshold, Polarity: polarity}, e
			}
		}
		if l > edge+tie {
			best, edge = of, l
		}
	}
	return best, edge
}

func TestBestIsTheBestOfAll(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		rows, dim := 2+r.IntN(60), 1+r.IntN(9)
		levels := []int{0, 2, 6, 20}[seed%4]
		x := drawRows(r, rows, dim, levels)
		if seed%5 == 0 { // columns of mostly zeros
			for i := range x {
				for j := range x[i] {
					if r.IntN(4) > 0 {
						x[i][j] = 0
					}
				}
			}
		}
		y := drawLabels(r, x)
		w := make([]float64, rows)
		for i := range w {
			w[i] = math.Abs(r.NormFloat64())
		}
		fixed := make([]int64, rows)
		Fix(fixed, w, y)
		want, edge := slowBest(x, fixed)
		for name, d := range map[string]*Data{"exact": mustData(t, x), "quantised": mustQuantise(t, x, 0)} {
			c, ok := d.NewSearch().Best(fixed)
			if ok != (edge >= 0) {
				t.Fatalf("seed %d, %s: candidate %v, want %v", seed, name, ok, edge >= 0)
			}
			if !ok {
				continue
			}
			if got := d.Stump(c); got != want || max(c.Edge, -c.Edge) != edge {
				t.Errorf("seed %d, %s: %v with edge %d, want %v with %d", seed, name, got, c.Edge, want, edge)
			}
			signs := make([]float64, rows)
			d.SignsTo(signs, c)
			for i := range x {
				h := d.Stump(c)
				h.Polarity = 1
				if h.Value(x[i]) != signs[i] {
					t.Errorf("seed %d, %s: row %d has sign %v", seed, name, i, signs[i])
				}
			}
			var below [2][]int64
			below[0] = slices.Clone(d.NewSearch().Below(c.Feature, fixed))
			if total := sum(fixed); total-2*below[0][c.Cut] != c.Edge {
				t.Errorf("seed %d, %s: below %d, edge %d", seed, name, below[0][c.Cut], c.Edge)
			}
		}
	}
}

// Equal candidates: a copy of a feature, its negative, and a permuted tie.
func TestFirstOfEqualCandidatesWins(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	x := drawRows(r, 250, 4, 0)
	for i := range x {
		x[i][0] = 0 // no candidate
		x[i][2], x[i][3] = x[i][1], -x[i][1]
	}
	y := drawLabels(r, x)
	w := make([]float64, len(x))
	for i := range w {
		w[i] = r.Float64()
	}
	fixed := make([]int64, len(x))
	Fix(fixed, w, y)
	for _, d := range []*Data{mustData(t, x), mustQuantise(t, x, 0)} {
		if c, _ := d.NewSearch().Best(fixed); c.Feature != 1 {
			t.Errorf("feature %d won, its copy 1 comes first", c.Feature)
		}
	}
}

func TestFixIsExactAndRefuses(t *testing.T) {
	w := []float64{0.5, 0.25, 0, 1e-30, 1}
	y := []float64{1, -1, 1, 1, -1}
	dst := make([]int64, 5)
	unit := Fix(dst, w, y)
	for i := range w {
		if got := float64(dst[i]) * unit; math.Abs(got-w[i]*y[i]) >= unit {
			t.Errorf("weight %v·%v in fixed point is %v", w[i], y[i], got)
		}
	}
	if unit > 0x1p-59*1.75 {
		t.Errorf("unit %v", unit)
	}
	for _, zero := range []float64{0, 1e-300} {
		if unit := Fix(dst[:2], []float64{zero, zero}, y[:2]); unit != 0 || dst[0] != 0 || dst[1] != 0 {
			t.Errorf("weights of %v: unit %v, %v", zero, unit, dst[:2])
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), -1, 1e300} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("weight %v: no panic", bad)
				}
			}()
			Fix(dst[:1], []float64{bad}, y[:1])
		}()
	}
}

func TestCutsAreMidpoints(t *testing.T) {
	next := math.Nextafter(1, 2)
	huge := math.MaxFloat64
	for _, c := range []struct{ a, b, want float64 }{
		{1, 2, 1.5}, {-1, 1, 0}, {1, next, 1}, {next, math.Nextafter(next, 2), next},
		{huge / 2, huge, 0.75 * huge}, {-huge, huge, 0}, {0, 5e-324, 0},
	} {
		d := mustData(t, [][]float64{{c.b}, {c.a}, {c.b}})
		if got := d.Cuts(0); len(got) != 1 || got[0] != c.want || !(c.a <= got[0] && got[0] < c.b) {
			t.Errorf("between %v and %v: cuts %v, want %v", c.a, c.b, got, c.want)
		}
	}
	if d := mustData(t, [][]float64{{0}, {math.Copysign(0, -1)}}); d.Candidates() != 0 {
		t.Error("a cut between 0 and −0")
	}
}

func TestQuantileBins(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, rows := range []int{1, 2, 10, 1000, 5000} {
		for _, bins := range []int{2, 3, 16, 64, 255} {
			x := make([][]float64, rows)
			for i := range x {
				heavy := 0.0
				if r.IntN(3) == 0 {
					heavy = r.NormFloat64()
				}
				x[i] = []float64{r.NormFloat64(), heavy, float64(r.IntN(40)), 7}
			}
			d := mustQuantise(t, x, bins)
			exact := mustData(t, x)
			for j := range 4 {
				cuts := d.Cuts(j)
				if len(cuts) >= bins {
					t.Fatalf("%d rows: %d cuts for %d bins", rows, len(cuts), bins)
				}
				if all := exact.Cuts(j); len(all) < bins && !slices.Equal(all, cuts) {
					t.Errorf("%d rows, %d bins: feature %d has %d cuts, want all %d", rows, bins, j, len(cuts), len(all))
				}
				size := make([]int, len(cuts)+1)
				for i, b := range d.binned.column(j) {
					size[b]++
					above := 0
					for _, c := range cuts {
						if x[i][j] > c {
							above++
						}
					}
					if above != int(b) {
						t.Fatalf("value %v is in bin %d, above %d cuts", x[i][j], b, above)
					}
				}
				if slices.Min(size) == 0 {
					t.Errorf("%d rows, %d bins: an empty bin in feature %d: %v", rows, bins, j, size)
				}
				if j == 0 && slices.Max(size) > rows/bins+2 {
					t.Errorf("%d rows of distinct values in %d bins: the largest holds %d", rows, bins, slices.Max(size))
				}
				if share := rows / bins; j == 1 && rows >= 1000 && bins >= 16 && len(cuts) < bins*9/10 {
					t.Errorf("%d rows, one value in two thirds: %d bins of %d, share %d", rows, len(cuts)+1, bins, share)
				}
			}
		}
	}
}

func TestDataRefusesWhatItCannotHold(t *testing.T) {
	for _, c := range []struct {
		x    [][]float64
		want string
	}{
		{nil, "boost: no data: want at least one row with at least one value"},
		{[][]float64{{}}, "boost: no data: want at least one row with at least one value"},
		{[][]float64{{1, 2}, {3}}, "boost: row 1 has 1 values, the first has 2"},
		{[][]float64{{1, math.NaN()}, {math.Inf(-1), 0}}, "boost: value 1 of row 0 is NaN\nboost: value 0 of row 1 is -Inf"},
	} {
		for _, f := range []func([][]float64) (*Data, error){NewData, func(x [][]float64) (*Data, error) { return Quantise(x, 4) }} {
			if _, err := f(c.x); fmt.Sprint(err) != c.want {
				t.Errorf("%v: error %q, want %q", c.x, err, c.want)
			}
		}
	}
	for _, bins := range []int{-1, 1, 256} {
		if _, err := Quantise([][]float64{{1}}, bins); err == nil {
			t.Errorf("%d bins: no error", bins)
		}
	}
}

func TestSearchAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	x := drawRows(r, 500, 7, 0)
	for i := range x {
		if i%4 > 0 {
			x[i][3] = 0
		}
	}
	y := drawLabels(r, x)
	w := make([]float64, len(x))
	for i := range w {
		w[i] = 1
	}
	fixed := make([]int64, len(x))
	for _, d := range []*Data{mustData(t, x), mustQuantise(t, x, 16)} {
		s := d.NewSearch()
		if n := testing.AllocsPerRun(20, func() {
			Fix(fixed, w, y)
			s.Best(fixed)
			s.Below(3, fixed)
		}); n != 0 {
			t.Errorf("quantised %v: %v allocations", d.Quantised(), n)
		}
	}
}
