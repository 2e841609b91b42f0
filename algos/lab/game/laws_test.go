package game

import (
	"context"
	"errors"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawGame draws games that are hard on a simplex method: few distinct entries,
// duplicate rows and columns, magnitudes far apart.
func drawGame(t *rapid.T) [][]float64 {
	m, n := rapid.IntRange(1, 7).Draw(t, "m"), rapid.IntRange(1, 7).Draw(t, "n")
	entry := rapid.OneOf(
		rapid.Map(rapid.IntRange(-1, 1), func(v int) float64 { return float64(v) }),
		rapid.Map(rapid.IntRange(-9, 9), func(v int) float64 { return float64(v) / 4 }),
		rapid.Float64Range(-1, 1),
	)
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		entry = rapid.Map(rapid.IntRange(0, 1), func(v int) float64 { return float64(2*v - 1) })
	case 1:
		entry = rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64)
	case 2:
		entry = rapid.Map(rapid.IntRange(0, 3), func(v int) float64 { return 1 + float64(v)*0x1p-52 })
	}
	a := make([][]float64, m)
	for i := range a {
		if i > 0 && rapid.IntRange(0, 4).Draw(t, "duplicate") == 0 {
			a[i] = slices.Clone(a[i-1])
			continue
		}
		a[i] = rapid.SliceOfN(entry, n, n).Draw(t, "row")
	}
	return a
}

// Reference: slides, page 31, the minmax theorem, without rounding: p guarantees
// the value and q is exposed to no more.
func TestMinimax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawGame(t)
		e, err := SolveExact(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		if why := certificate(a, e); why != "" {
			t.Errorf("%v: %s", a, why)
		}
		// The way without a guess gives the same value.
		g := newIntegers(a)
		plain := g.solution(g.simplex(t.Context()))
		if why := certificate(a, plain); why != "" || plain.Value.Cmp(e.Value) != 0 {
			t.Errorf("%v: %s; in integers alone v = %s, with a guess %s", a, why, plain.Value, e.Value)
		}
		s, err := Solve(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		scale := 0.0
		for _, row := range a {
			for _, v := range row {
				scale = max(scale, math.Abs(v))
			}
		}
		if gap := Exposure(a, s.Q)/2 - Guarantee(a, s.P)/2; !(math.Abs(gap) <= 1e-14*scale) {
			t.Errorf("%v: half the gap of the rounded strategies is %v", a, gap)
		}
	})
}

// The other player's view, −Aᵀ, has the value −v; a power of two scales it, and
// A − Aᵀ is fair.
func TestSymmetries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "n")
		a := make([][]float64, n)
		for i := range a {
			a[i] = rapid.SliceOfN(rapid.Map(rapid.IntRange(-5, 5), func(v int) float64 { return float64(v) }), n, n).Draw(t, "row")
		}
		value := func(f func(i, j int) float64) *big.Rat {
			b := make([][]float64, n)
			for i := range b {
				for j := range n {
					b[i] = append(b[i], f(i, j))
				}
			}
			e, err := SolveExact(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			return e.Value
		}
		v := value(func(i, j int) float64 { return a[i][j] })
		if other := value(func(i, j int) float64 { return -a[j][i] }); other.Cmp(new(big.Rat).Neg(v)) != 0 {
			t.Errorf("v = %s, of −Aᵀ %s", v, other)
		}
		want := new(big.Rat).Add(new(big.Rat).Mul(v, big.NewRat(1, 1024)), big.NewRat(3, 1))
		if scaled := value(func(i, j int) float64 { return a[i][j]/1024 + 3 }); scaled.Cmp(want) != 0 {
			t.Errorf("v = %s, of A/1024 + 3 %s", v, scaled)
		}
		if fair := value(func(i, j int) float64 { return a[i][j] - a[j][i] }); fair.Sign() != 0 {
			t.Errorf("A − Aᵀ has the value %s", fair)
		}
	})
}

// A guess that is wrong is found out: no set of rows and columns but a kernel is
// accepted.
func TestOnlyKernelsAreAccepted(t *testing.T) {
	a := [][]float64{{-2, 3, 5}, {3, -4, 5}, {-9, -9, -9}}
	g := newIntegers(a)
	for _, c := range []struct {
		rows, columns []int
		want          bool
	}{
		{[]int{0, 1}, []int{0, 1}, true},
		{nil, nil, false}, {[]int{0}, []int{0}, false}, {[]int{0, 1}, []int{0}, false},
		{[]int{0, 1}, []int{1, 2}, false}, {[]int{1, 2}, []int{0, 1}, false}, {[]int{0, 1, 2}, []int{0, 1, 2}, false},
	} {
		if _, ok := g.kernel(t.Context(), c.rows, c.columns); ok != c.want {
			t.Errorf("rows %v, columns %v: accepted %v, want %v", c.rows, c.columns, ok, c.want)
		}
	}
}

// Entries 10³⁰⁸ and 10⁻³²³ in one game: the floating point guess sees only the
// large ones.
func TestExtremeMagnitudes(t *testing.T) {
	const tiny, huge = 5e-324, math.MaxFloat64
	for _, a := range [][][]float64{
		{{huge, -huge}, {-huge, huge}},
		{{tiny, 2 * tiny}, {2 * tiny, tiny}},
		{{huge, tiny}, {-tiny, -huge}},
		{{huge, 0, tiny}, {0, tiny, 0}, {tiny, 0, -tiny}, {-huge, 1, 1}},
		{{1, 1 + 0x1p-52}, {1 + 0x1p-52, 1}},
	} {
		e, err := SolveExact(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		if why := certificate(a, e); why != "" {
			t.Errorf("%v: %s", a, why)
		}
	}
}

func TestBadGames(t *testing.T) {
	for _, a := range [][][]float64{nil, {}, {{}}, {{1, 2}, {3}}, {{math.NaN()}}, {{math.Inf(1)}}} {
		if _, err := Solve(t.Context(), a); err == nil {
			t.Errorf("Solve(%v) has no error", a)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Guarantee of a strategy of the wrong length does not panic")
		}
	}()
	Guarantee([][]float64{{1}}, []float64{0.5, 0.5})
}

// A done context ends every step with its error.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := [][]float64{{-2, 3}, {3, -4}}
	if _, err := Solve(ctx, a); !errors.Is(err, context.Canceled) {
		t.Errorf("Solve: %v, want %v", err, context.Canceled)
	}
	if _, err := Play(ctx, a, []float64{1, 1}, 5, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Play: %v, want %v", err, context.Canceled)
	}
}

func FuzzSolve(f *testing.F) {
	f.Add([]byte{2, 254, 3, 3, 252})
	f.Add([]byte{3, 0, 255, 1, 1, 0, 255, 255, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 2 || len(b) > 50 {
			return
		}
		n := 1 + int(b[0])%7
		var a [][]float64
		for b = b[1:]; len(b) >= n; b = b[n:] {
			row := make([]float64, n)
			for j := range row {
				// Signed, with an exponent in the upper bits of every third entry.
				row[j] = float64(int8(b[j]))
				if j%3 == 2 {
					row[j] = math.Ldexp(float64(int8(b[j])%4), int(b[j])*7-1000)
				}
			}
			a = append(a, row)
		}
		if len(a) == 0 {
			return
		}
		e, err := SolveExact(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		if why := certificate(a, e); why != "" {
			t.Errorf("%v: %s", a, why)
		}
	})
}
