package game

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

// Reference: slides, page 32, Odd or Even: p = (7/12, 5/12), v = 1/12.
func TestOddOrEven(t *testing.T) {
	e, err := SolveExact(t.Context(), [][]float64{{-2, 3}, {3, -4}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		got  *big.Rat
		want string
	}{
		{"v", e.Value, "1/12"}, {"p₁", e.P[0], "7/12"}, {"p₂", e.P[1], "5/12"}, {"q₁", e.Q[0], "7/12"}, {"q₂", e.Q[1], "5/12"},
	} {
		if c.got.RatString() != c.want {
			t.Errorf("%s = %v, want %s", c.name, c.got.RatString(), c.want)
		}
	}
}

// Games whose values are known in closed form.
func TestKnownValues(t *testing.T) {
	for _, c := range []struct {
		name  string
		a     [][]float64
		value string
	}{
		{"one entry", [][]float64{{-3}}, "-3"},
		{"one row", [][]float64{{4, -1, 7, -1}}, "-1"},
		{"one column", [][]float64{{4}, {-1}, {7}}, "7"},
		{"constant", [][]float64{{2, 2, 2}, {2, 2, 2}}, "2"},
		{"zeros", [][]float64{{0, 0}, {0, 0}, {0, 0}}, "0"},
		{"saddle point", [][]float64{{4, 1, 2}, {6, 3, 7}, {1, 2, 9}}, "3"},
		{"rock, paper, scissors", [][]float64{{0, -1, 1}, {1, 0, -1}, {-1, 1, 0}}, "0"},
		{"diagonal: 1/Σ(1/d)", [][]float64{{1, 0, 0}, {0, 2, 0}, {0, 0, 4}}, "4/7"},
		{"a dominated row and column", [][]float64{{2, 0, 4}, {1, 2, 3}, {4, 1, 2}}, "7/4"},
		{"duplicate rows and columns", [][]float64{{-2, 3, -2}, {3, -4, 3}, {-2, 3, -2}}, "1/12"},
		{"binary fractions", [][]float64{{0.5, -0.25}, {-0.75, 1}}, "1/8"},
	} {
		e, err := SolveExact(t.Context(), c.a)
		if err != nil {
			t.Fatal(err)
		}
		if e.Value.RatString() != c.value {
			t.Errorf("%s: v = %s, want %s", c.name, e.Value.RatString(), c.value)
		}
		if why := certificate(c.a, e); why != "" {
			t.Errorf("%s: %s", c.name, why)
		}
	}
}

// certificate says why e is not the solution of a. By weak duality strategies
// that guarantee v and are exposed to no more than v prove both optimal.
func certificate(a [][]float64, e Exact) string {
	one := new(big.Rat).SetInt64(1)
	for _, s := range [][]*big.Rat{e.P, e.Q} {
		sum := new(big.Rat)
		for _, v := range s {
			if v.Sign() < 0 {
				return "a negative probability"
			}
			sum.Add(sum, v)
		}
		if sum.Cmp(one) != 0 {
			return "probabilities sum to " + sum.RatString()
		}
	}
	entry := func(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }
	for j := range a[0] {
		gain := new(big.Rat)
		for i := range a {
			gain.Add(gain, new(big.Rat).Mul(e.P[i], entry(a[i][j])))
		}
		if gain.Cmp(e.Value) < 0 {
			return "a column where p gains less than the value"
		}
	}
	for i := range a {
		loss := new(big.Rat)
		for j := range a[i] {
			loss.Add(loss, new(big.Rat).Mul(e.Q[j], entry(a[i][j])))
		}
		if loss.Cmp(e.Value) > 0 {
			return "a row where q loses more than the value"
		}
	}
	return ""
}

// gonumValue solves the same linear program, in standard form with slacks, with
// gonum's simplex method.
func gonumValue(a [][]float64) (float64, error) {
	m, n := len(a), len(a[0])
	lo := math.Inf(1)
	for _, row := range a {
		for _, v := range row {
			lo = min(lo, v)
		}
	}
	s, b, c, basic := mat.NewDense(m, n+m, nil), make([]float64, m), make([]float64, n+m), make([]int, m)
	for i, row := range a {
		for j, v := range row {
			s.Set(i, j, v-lo+1)
			c[j] = -1
		}
		s.Set(i, n+i, 1)
		b[i], basic[i] = 1, n+i
	}
	f, _, err := lp.Simplex(c, s, b, 1e-12, basic)
	return -1/f + lo - 1, err
}

// gonum's lp.Simplex, given a feasible basis, comes to the same value in floating
// point.
func TestValueAgainstGonum(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	for range 300 {
		a := make([][]float64, 1+r.IntN(12))
		n := 1 + r.IntN(12)
		for i := range a {
			if i > 0 && r.IntN(4) == 0 {
				a[i] = a[r.IntN(i)]
				continue
			}
			for range n {
				a[i] = append(a[i], float64(r.IntN(4)-1))
			}
		}
		s, err := Solve(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		want, err := gonumValue(a)
		if err != nil {
			t.Fatalf("%v: gonum: %v", a, err)
		}
		if math.Abs(s.Value-want) > 1e-9 {
			t.Errorf("%v: value %v, gonum's %v", a, s.Value, want)
		}
	}
}

// What a tolerance cannot see: the entries differ by less than gonum's, and a
// pure strategy, which it takes, is worth half of what the mixed one is.
func TestDifferencesBelowAnyTolerance(t *testing.T) {
	const δ = 0x1p-50
	a := [][]float64{{δ, 0}, {0, δ}}
	s, err := Solve(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if s.Value != δ/2 || s.P[0] != 0.5 || s.Q[0] != 0.5 {
		t.Errorf("v = %v, p = %v, q = %v; want 2⁻⁵¹ and halves", s.Value, s.P, s.Q)
	}
	if v, err := gonumValue(a); err == nil && v == δ/2 {
		t.Errorf("gonum finds %v as well, so this tests nothing", v)
	}
}
