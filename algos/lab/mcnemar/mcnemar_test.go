package mcnemar

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// binomials returns C(n, k)/2ⁿ for k = 0 … n, exactly.
func binomials(n int) []*big.Rat {
	p := make([]*big.Rat, n+1)
	all := new(big.Int).Lsh(big.NewInt(1), uint(n))
	for k := range p {
		p[k] = new(big.Rat).SetFrac(new(big.Int).Binomial(int64(n), int64(k)), all)
	}
	return p
}

// Reference: both p-values by their definitions, as exact sums of binomials over the
// splits that are as likely as the observed one, or less.
func TestMcNemarAgainstBinomials(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 5, 10, 31, 100, 201} {
		p := binomials(n)
		for k := range p {
			exact, mid := new(big.Rat), new(big.Rat)
			for _, q := range p {
				switch q.Cmp(p[k]) {
				case -1:
					exact.Add(exact, q)
					mid.Add(mid, q)
				case 0:
					exact.Add(exact, q)
					mid.Add(mid, new(big.Rat).Mul(q, big.NewRat(1, 2)))
				}
			}
			m := Test{Only1: k, Only2: n - k}
			wantExact, _ := exact.Float64()
			wantMid, _ := mid.Float64()
			if got := m.Exact(); math.Abs(got-wantExact) > 1e-11*wantExact {
				t.Errorf("%+v: exact p %v, want %v", m, got, wantExact)
			}
			if got := m.MidP(); math.Abs(got-wantMid) > 1e-11*wantMid {
				t.Errorf("%+v: mid-p %v, want %v", m, got, wantMid)
			}
		}
	}
}

// z² is McNemar's χ², (b−c)²/(b+c). Swapping the classifiers turns z.
func TestMcNemarZ(t *testing.T) {
	m := Test{Only1: 121, Only2: 59}
	if z := m.Z(); math.Abs(z*z-62.0*62/180) > 1e-12 || z < 0 {
		t.Errorf("z is %v, want √(62²/180)", z)
	}
	if z := (Test{Only1: 59, Only2: 121}).Z(); z != -m.Z() {
		t.Errorf("z of the swapped classifiers is %v, want %v", z, -m.Z())
	}
	if z := (Test{}).Z(); z != 0 {
		t.Errorf("z of no difference is %v, want 0", z)
	}
}

// Under equal error rates the exact test rejects at most at its level, and the mid-p test
// about at it.
func TestMcNemarLevel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const runs, level = 20_000, 0.05
	var exact, mid int
	for range runs {
		var m Test
		for range 60 {
			m.Add(r.IntN(4) == 0, r.IntN(4) == 0)
		}
		if m.Exact() <= level {
			exact++
		}
		if m.MidP() <= level {
			mid++
		}
	}
	sd := math.Sqrt(runs * level * (1 - level))
	if float64(exact) > runs*level+4*sd {
		t.Errorf("the exact test rejects %d times in %d, want at most %.0f", exact, runs, runs*level)
	}
	if math.Abs(float64(mid)-runs*level) > 0.3*runs*level || mid < exact {
		t.Errorf("the mid-p test rejects %d times in %d, the exact one %d times, want about %.0f", mid, runs, exact, runs*level)
	}
}
