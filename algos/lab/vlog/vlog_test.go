package vlog

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// What p says of itself must fit together, whatever its parameters.
func checkConsistent(t *testing.T, p *Distribution) {
	t.Helper()
	d := p.anchor.d
	sd := math.Sqrt(p.Variance())
	for what, v := range map[string]float64{"mode": p.Mode(), "mean": p.Mean(), "log norm": p.LogNorm(), "sd": sd} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("%s of %v is %v", what, d, v)
		}
	}
	if !(sd > 0) {
		t.Fatalf("variance of %v is %v", d, p.Variance())
	}
	// A unimodal density has its mean within √3 standard deviations of its mode.
	if math.Abs(p.Mean()-p.Mode()) > math.Sqrt(3)*sd*(1+1e-9)+1e-12*math.Abs(p.Mode()) {
		t.Errorf("mean %v and mode %v of %v are more than √3·%v apart", p.Mean(), p.Mode(), d, sd)
	}
	last := 0.0
	for i := -200; i <= 200; i++ {
		z := p.Mode() + float64(i)*sd/10
		c := p.CDF(z)
		if !(c >= last-1e-14 && c <= 1) {
			t.Fatalf("CDF(%v) = %v after %v for %v", z, c, last, d)
		}
		last = c
		if v := p.LogPDF(z); math.IsNaN(v) || v > p.LogPDF(p.Mode())+1e-9*(1+math.Abs(v)) {
			t.Fatalf("log density %v at %v, %v at the mode of %v", v, z, p.LogPDF(p.Mode()), d)
		}
	}
	// Chebyshev: 20 standard deviations hold all but 1/400.
	if low, high := p.CDF(p.Mean()-20*sd), p.CDF(p.Mean()+20*sd); low > 1./400 || high < 1-1./400 {
		t.Errorf("CDF is %v and %v at 20 standard deviations of %v", low, high, d)
	}
}

func TestExtremeParameters(t *testing.T) {
	for _, d := range []Density{
		{Beta: []float64{1, -1}, Gamma: []float64{0, 0}, Mu: []float64{1e-90, 1e-90}},
		{Beta: []float64{1, -1}, Gamma: []float64{0, 0}, Mu: []float64{1e90, 1e90}},
		{Beta: []float64{1e90, -1e-90}, Gamma: []float64{0, 0}, Mu: []float64{1, 1}},
		{Beta: []float64{1, -1}, Gamma: []float64{1e90, -1e90}, Mu: []float64{1, 1}},
		{Beta: []float64{1, -1}, Gamma: []float64{-1e15, 1e15}, Mu: []float64{1, 1}},
		{Beta: []float64{1, -1}, Gamma: []float64{0, 0}, Mu: []float64{1e-60, 1e60}},
		{Beta: []float64{1e6, -1e-6, 1, -1}, Gamma: []float64{0, 0, 5, 800}, Mu: []float64{1e-6, 1e6, 3, 3}},
	} {
		t.Run(fmt.Sprint(d), func(t *testing.T) { checkConsistent(t, mustNew(t, d)) })
	}
}

// A distribution function is the integral of its density, tails included.
func TestCDFIntegratesTheDensity(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for range 30 {
		p := mustNew(t, ordinary(r))
		sd := math.Sqrt(p.Variance())
		for _, at := range []float64{-30, -9, -3, -1, 0, 0.5, 2, 6} {
			a, b := p.Mean()+at*sd, p.Mean()+(at+0.5)*sd
			// Simpson's rule with 2,000 intervals.
			const n = 2000
			h := (b - a) / n
			want := 0.0
			for i := range n + 1 {
				w := 2.0 + 2*float64(i%2)
				if i == 0 || i == n {
					w = 1
				}
				want += w * h / 3 * math.Exp(p.LogPDF(a+float64(i)*h))
			}
			got := p.CDF(b) - p.CDF(a)
			scale := want
			if at > -3 {
				scale = 1 // what is left of 1 has no relative precision
			}
			tolerance := 1e-9
			if want < 1e-18 {
				tolerance = 0.02 // beyond the cut (see tail)
			}
			near(t, fmt.Sprintf("mass at %v sd of %v", at, p.anchor.d), got, want, tolerance, scale)
		}
		if p.CDF(-math.MaxFloat64) != 0 || p.CDF(math.MaxFloat64) != 1 || !(p.LogPDF(math.MaxFloat64) < -1e300) {
			t.Error("CDF or density at ±MaxFloat64")
		}
		if p.CDF(math.Inf(-1)) != 0 || p.CDF(math.Inf(1)) != 1 || !math.IsNaN(p.CDF(math.NaN())) {
			t.Error("CDF at ±Inf or NaN")
		}
	}
}

// Mirrored parameters make the mirrored distribution, shifted knots a shifted one,
// a term split in two the same.
func TestSymmetries(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for range 50 {
		d := ordinary(r)
		mirror := Density{Beta: slices.Clone(d.Beta), Gamma: slices.Clone(d.Gamma), Mu: d.Mu}
		shift := Density{Beta: d.Beta, Gamma: slices.Clone(d.Gamma), Mu: d.Mu}
		for k := range d.Beta {
			mirror.Beta[k], mirror.Gamma[k] = -d.Beta[k], -d.Gamma[k]
			shift.Gamma[k] += 7
		}
		split := Density{Beta: append(slices.Clone(d.Beta), d.Beta[0]), Gamma: append(slices.Clone(d.Gamma), d.Gamma[0]), Mu: append(slices.Clone(d.Mu), d.Mu[0]/3)}
		split.Mu[0] *= 2. / 3
		p, m, s, h := mustNew(t, d), mustNew(t, mirror), mustNew(t, shift), mustNew(t, split)
		for _, c := range []struct {
			what      string
			got, want float64
		}{
			{"mirrored mode", m.Mode(), -p.Mode()}, {"mirrored mean", m.Mean(), -p.Mean()},
			{"mirrored variance", m.Variance(), p.Variance()}, {"mirrored log norm", m.LogNorm(), p.LogNorm()},
			{"shifted mode", s.Mode(), p.Mode() + 7}, {"shifted mean", s.Mean(), p.Mean() + 7},
			{"shifted log norm", s.LogNorm(), p.LogNorm()},
			{"mode of a split term", h.Mode(), p.Mode()}, {"log norm of a split term", h.LogNorm(), p.LogNorm()},
		} {
			near(t, c.what, c.got, c.want, 1e-11, 10+math.Abs(c.want))
		}
	}
}

// Between knots that lie far apart P and N agree in all their digits: the mode is
// then where what little is missing from either agrees.
func TestModeBetweenSaturatedTerms(t *testing.T) {
	for _, c := range []struct {
		d    Density
		want float64
	}{
		{Density{Beta: []float64{1, -1}, Gamma: []float64{-800, 700}, Mu: []float64{5e5, 5e5}}, -50},
		{Density{Beta: []float64{1, -1, 1, -1}, Gamma: []float64{-800, 700, 3, 3}, Mu: []float64{5e5, 5e5, 1e-3, 1e-3}}, 3},
		{Density{Beta: []float64{2, -1}, Gamma: []float64{-1000, 1000}, Mu: []float64{1, 2}}, -1000. / 3}, // e^(−2(z+1000)) = e^(z−1000)
		{Density{Beta: []float64{1, -1}, Gamma: []float64{-5000, 3000}, Mu: []float64{1, 1}}, -1000},
	} {
		near(t, fmt.Sprintf("mode of %v", c.d), c.d.Mode(), c.want, 1e-12, 1+math.Abs(c.want))
		checkConsistent(t, mustNew(t, c.d))
	}
}

// A guess for the mode saves steps and moves nothing.
func TestModeFromAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	for range 100 {
		d := ordinary(r)
		want := d.Mode()
		for _, guess := range []float64{-1e300, -50, want, 3, math.Inf(1)} {
			near(t, "mode", d.ModeFrom(guess), want, 1e-13, 1+math.Abs(want))
		}
	}
}

func TestCheckNamesEveryParameter(t *testing.T) {
	d := Density{Beta: []float64{math.NaN(), 1e100, -1}, Gamma: []float64{0, math.Inf(1), 0}, Mu: []float64{1, 1, -1}}
	_, err := New(d)
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"beta[0]", "beta[1]", "gamma[1]", "mu[2]"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not name %s", err, name)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("lengths that differ did not panic")
		}
	}()
	_, _ = New(Density{Beta: []float64{1, -1}, Gamma: []float64{0}, Mu: []float64{1, 1}})
}

// One object serves one density after another in the same memory.
func TestResetAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 28))
	a, b := random(r, 40, r.NormFloat64), random(r, 30, r.NormFloat64)
	p, s := mustNew(t, a), &Sampler{}
	src := rand.NewPCG(29, 30)
	stats := make([]float64, 40)
	turn := func() {
		for _, d := range []Density{a, b} {
			if err := p.Reset(d); err != nil {
				t.Fatal(err)
			}
			p.StatisticsTo(stats[:len(d.Beta)])
			if err := s.Reset(d); err != nil {
				t.Fatal(err)
			}
			s.Draw(src)
		}
	}
	turn()
	if n := testing.AllocsPerRun(20, turn); n != 0 {
		t.Errorf("%v allocations a turn", n)
	}
}

// The same parameters give the same bits on every CPU and with hardware FMA off:
// GODEBUG=cpu.fma=off go test ./algos/vlog.
func TestSameBits(t *testing.T) {
	d := Density{Beta: []float64{1, -1, 0.75, -2}, Gamma: []float64{0.1, -0.3, 2, 40}, Mu: []float64{1, 1.5, 300, 0.2}}
	p := mustNew(t, d)
	s, err := NewSampler(d)
	if err != nil {
		t.Fatal(err)
	}
	approx, _ := Density{Beta: []float64{1, -1, 1}, Gamma: []float64{0.1, -0.3, 2}, Mu: []float64{1, 1.5, 3}}.ApproxMode(1)
	got := fmt.Sprintf("%x %x %x %x %x", p.Mode(), p.Mean(), p.LogNorm(), s.Draw(rand.NewPCG(1, 2)), approx)
	const want = "-0x1.1854cf5513fap+02 -0x1.2a281f83d626dp+02 -0x1.9a0dbfc5629e3p+04 -0x1.f3bd3156c02b7p+01 -0x1.525747f14e651p-04"
	if got != want {
		t.Errorf("mode, mean, log norm, a draw and an approximate mode in bits\n got %s\nwant %s", got, want)
	}
}

func FuzzDistribution(f *testing.F) {
	f.Add(1.0, -1.0, 2.0, 0.0, 800.0, -800.0, 1.0, 1.0, 0.0)
	f.Add(1e6, -1e-6, 1.0, 0.0, 3.0, 0.1, 1e6, 1e-6, 5.0)
	f.Add(1000.0, -0.01, -1000.0, 3.0, 0.0, -2.0, 1.0, 1.0, 0.001)
	f.Fuzz(func(t *testing.T, b0, b1, b2, g0, g1, g2, m0, m1, m2 float64) {
		d := Density{Beta: []float64{b0, b1, b2}, Gamma: []float64{g0, g1, g2}, Mu: []float64{m0, m1, m2}}
		p, err := New(d)
		if err != nil {
			return
		}
		checkConsistent(t, p)
		s, err := NewSampler(d)
		if err != nil {
			t.Fatal(err)
		}
		if z := s.Draw(rand.NewPCG(1, 1)); math.IsNaN(z) || math.IsInf(z, 0) {
			t.Fatalf("drew %v from %v", z, d)
		}
	})
}

// What a stage of boosting asks for: 500 examples, slopes ±1.
func BenchmarkDensity(b *testing.B) {
	for _, n := range []int{10, 500} {
		r := rand.New(rand.NewPCG(31, 32))
		d := random(r, n+2, func() float64 { return math.Copysign(1, r.NormFloat64()) })
		p, s := mustNew(b, d), &Sampler{}
		stats := make([]float64, len(d.Mu))
		src := rand.NewPCG(33, 34)
		for _, c := range []struct {
			name string
			do   func()
		}{
			{"mode", func() { d.Mode() }},
			{"approx", func() { d.ApproxMode(1) }},
			{"normalise", func() { _ = p.Reset(d) }},
			{"statistics", func() { p.StatisticsTo(stats) }},
			{"reset and draw", func() { _ = s.Reset(d); s.Draw(src) }},
			{"draw", func() { s.Draw(src) }},
		} {
			b.Run(fmt.Sprintf("%s/n=%d", c.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c.do()
				}
			})
		}
	}
}

// Reference: the function itself by math/big: e₂ and D are what all integrals stand
// on.
func TestExp2nd(t *testing.T) {
	worst := 0.0
	for i := -1000; i <= 1000; i++ {
		x := float64(i) / 1000.5
		if i == 0 {
			continue
		}
		// Σ xʲ/j! with 200 bits.
		sum, term, bx := new(big.Float).SetPrec(200), new(big.Float).SetPrec(200).SetInt64(1), new(big.Float).SetPrec(200).SetFloat64(x)
		for j := 1; j < 60; j++ {
			term.Mul(term, bx)
			term.Quo(term, new(big.Float).SetPrec(200).SetInt64(int64(j)))
			if j > 1 {
				sum.Add(sum, term)
			}
		}
		want, _ := sum.Float64()
		worst = max(worst, math.Abs(exp2nd(x)-want)/want)
	}
	if exp2nd(0) != 0 || worst > 4*0x1p-52 {
		t.Errorf("e₂ is off by %g of it, e₂(0) = %v", worst, exp2nd(0))
	}
}
