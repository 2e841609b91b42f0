package information

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// Reference: slides, page 24: H(p) of a coin; its maximum is 1 bit at p = ½.
func TestEntropyOfACoin(t *testing.T) {
	for _, c := range []struct{ p, want float64 }{
		{0, 0}, {1, 0}, {0.5, 1}, {0.25, 0.8112781244591328}, {0.11, 0.499915958164528},
		{0x1p-40, 40*0x1p-40 + 1.3121206e-12},
	} {
		if got := Entropy([]float64{c.p, 1 - c.p}); math.Abs(got-c.want) > 1e-15+1e-8*c.p {
			t.Errorf("H(%v) = %v, want %v", c.p, got, c.want)
		}
	}
}

// slideJoint is the table of page 26; its rows are the values of Y.
var slideJoint = [][]float64{
	{1. / 8, 1. / 16, 1. / 32, 1. / 32},
	{1. / 16, 1. / 8, 1. / 32, 1. / 32},
	{1. / 16, 1. / 16, 1. / 16, 1. / 16},
	{1. / 4, 0, 0, 0},
}

// Reference: slides, page 26: H(X) = 7/4, H(Y) = 2, H(X|Y) = 11/8, H(Y|X) = 13/8,
// H(X,Y) = 27/8 bits. All are dyadic, and so exact.
func TestSlideExample(t *testing.T) {
	j, err := NewJoint(slideJoint)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"H(X)", j.EntropyX(), 7. / 4}, {"H(Y)", j.EntropyY(), 2},
		{"H(X|Y)", j.EntropyXGivenY(), 11. / 8}, {"H(Y|X)", j.EntropyYGivenX(), 13. / 8},
		{"H(X,Y)", j.Entropy(), 27. / 8},
	} {
		if c.got != c.want {
			t.Errorf("%s = %v bits, want %v", c.name, c.got, c.want)
		}
	}
	// Reference: page 28: I = H(X) − H(X|Y).
	if got := j.MutualInformation(); got != 3./8 {
		t.Errorf("I(X;Y) = %v bits, want 3/8", got)
	}
}

// bigDivergence is Σ [p ln(p/q) − p + q]/ln 2 with 300 bits.
func bigDivergence(p, q []float64) float64 {
	const prec = 300
	sum := new(big.Float).SetPrec(prec)
	for i := range p {
		a, b := new(big.Float).SetPrec(prec).SetFloat64(p[i]), new(big.Float).SetPrec(prec).SetFloat64(q[i])
		sum.Add(sum, b)
		sum.Sub(sum, a)
		if p[i] > 0 {
			sum.Add(sum, a.Mul(a, bigLogRatio(a, b)))
		}
	}
	f, _ := sum.Float64()
	return f / math.Ln2
}

// bigLogRatio is ln(a/b) = 2 atanh((a−b)/(a+b)) by its series, for ratios within
// [1/9, 9].
func bigLogRatio(a, b *big.Float) *big.Float {
	z := new(big.Float).Sub(a, b)
	z.Quo(z, new(big.Float).Add(a, b))
	z2, term := new(big.Float).Mul(z, z), new(big.Float).Copy(z)
	sum := new(big.Float).SetPrec(300)
	for k := int64(1); k < 1200; k += 2 {
		sum.Add(sum, new(big.Float).Quo(term, new(big.Float).SetInt64(k)))
		term.Mul(term, z2)
	}
	return sum.Add(sum, sum)
}

// Reference: slides, page 27. Distributions that differ by one part in 10ᵏ have a
// divergence near 10⁻²ᵏ, which a difference of entropies would lose.
func TestDivergenceKeepsItsDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, size := range []float64{0.8, 0.1, 0.07, 0.06, 1e-2, 1e-4, 1e-6} {
		p, q := make([]float64, 9), make([]float64, 9)
		for i := range p {
			p[i] = 0.1 + r.Float64()
			q[i] = p[i] * (1 + size*(2*r.Float64()-1))
		}
		got, want := Divergence(p, q), bigDivergence(p, q)
		if !(math.Abs(got-want) <= 4e-14*want) {
			t.Errorf("size %v: D = %v, with 300 bits %v (relative %.2g)", size, got, want, (got-want)/want)
		}
	}
}

// Reference: slides, page 27: D is infinite where q has no mass and p has, and
// finite the other way round.
func TestDivergenceWithoutSupport(t *testing.T) {
	p, q := []float64{0.5, 0.5}, []float64{1, 0}
	if got := Divergence(p, q); !math.IsInf(got, 1) {
		t.Errorf("D(p‖q) = %v, want +Inf", got)
	}
	if got := Divergence(q, p); got != 1 {
		t.Errorf("D(q‖p) = %v, want 1 bit", got)
	}
	if got := Divergence(p, p); got != 0 {
		t.Errorf("D(p‖p) = %v, want 0", got)
	}
}

// Reference: slides, page 29: BC is 1 for equal and 0 for disjoint distributions.
func TestBhattacharyyaEnds(t *testing.T) {
	p := []float64{0.125, 0.5, 0.375, 0}
	if got := Bhattacharyya(p, p); got != 1 {
		t.Errorf("BC(p, p) = %v, want 1", got)
	}
	if got := Bhattacharyya([]float64{1, 0}, []float64{0, 1}); got != 0 {
		t.Errorf("BC of disjoint distributions = %v, want 0", got)
	}
	if got, want := Bhattacharyya([]float64{0.5, 0.5}, []float64{0.1, 0.9}), math.Sqrt(0.05)+math.Sqrt(0.45); math.Abs(got-want) > 2e-16 {
		t.Errorf("BC = %v, want %v", got, want)
	}
}
