package blr

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/internal/logistic"
)

// slowTail returns ln E[σ(±z)] for z ~ N(m, a) by the trapezoidal rule over ln N + ln σ
// around its mode, out to e^−40 of the mode, with a step far below both scales. NaN if
// that takes over a million nodes.
func slowTail(m, a, sign float64) float64 {
	f := func(z float64) float64 { return -(z-m)/a*(z-m)/2 + logistic.LogSigmoid(sign*z) }
	lo, hi := min(m, m+sign*a), max(m, m+sign*a) // f′ has its root here
	for range 200 {
		if mid := lo + (hi-lo)/2; -(mid-m)/a+sign*logistic.Sigmoid(-sign*mid) > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	step := min(0.15, 0.25*math.Sqrt(a))
	sum := 1.0
	for _, side := range []float64{-step, step} {
		for k := 1; ; k++ {
			if k > 1_000_000 {
				return math.NaN()
			}
			e := f(lo+float64(k)*side) - f(lo)
			if e < -40 {
				break
			}
			sum += math.Exp(e)
		}
	}
	return f(lo) + math.Log(sum*step) - math.Log(2*math.Pi*a)/2
}

func slowPredictive(m, a float64) float64 { return slowTail(m, a, 1) - slowTail(m, a, -1) }

// tolerance is 1e−9 for the log-odds, which bounds the relative errors of p and 1−p, and
// four roundings of the log-odds and of what it is a difference of.
func tolerance(f, m, a float64) float64 {
	return 1e-9 + 1e-15*(math.Abs(f)+math.Abs(m)+min(a, math.Abs(m)))
}

// The error of Predictive against the slow rule, for m and a of all sizes, both sides of
// every change of scheme.
func TestPredictiveAgainstFineQuadrature(t *testing.T) {
	worst := 0.0
	check := func(m, a float64) {
		t.Helper()
		want := slowPredictive(m, a)
		if math.IsNaN(want) {
			return
		}
		got := Predictive(m, a)
		d := math.Abs(got - want)
		if d < 1e-9 {
			worst = max(worst, d)
		}
		// The oracle's own rounding: a sum of thousands of terms, at exponents of size m.
		if !(d <= tolerance(want, m, a)+1e-13*math.Abs(m)) {
			t.Errorf("m=%v a=%v: %v, want %v, off by %.2g", m, a, got, want, d)
		}
	}
	for _, a := range []float64{
		1e-12, 1e-6, 1e-3, 0.03, 0.1, 0.159, 0.161, 0.2, 0.25, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 4.5, 5.99, 6.01, 7, 9, 13, 20, 30, 35.99, 36.01, 50, 100, 400, 2000, 1e4, 1e6,
	} {
		for _, m := range []float64{1e-9, 1e-7, 1e-6, 1e-3, 0.1, 0.5, 1, 2, 2.94, 3, 4, 6, 8, 12, 18, 23, 24, 25, 30, 35, 50, 70, 110, 200, 500, 999, 1000, 1e4} {
			check(m, a)
			check(-m, a)
		}
		for _, k := range []float64{0.5, 1, 1.5, 2, 3} { // about the changes at a/2, a, 3a/2 + 24
			for _, by := range []float64{-1e-9, 1e-9} {
				check(k*a*(1+by), a)
				check((k*a+24)*(1+by), a)
			}
		}
	}
	r := rand.New(rand.NewPCG(3, 5))
	for range 3000 {
		check(math.Exp(10*r.Float64()-4)*float64(1-2*r.IntN(2)), math.Exp(16*r.Float64()-8))
	}
	t.Logf("largest error %.2g", worst)
}

// Rows are m, a and the log-odds, made with mpmath 1.3 at 40 digits by the trapezoidal rule
// with step min(.11, .18√a) over ln N + ln σ, out to e^−70.
var predictiveRows = [][3]float64{
	{1e-9, 1e-12, 9.9999999999975e-10}, {0.3, 1e-12, 0.29999999999992555748}, {1, 1e-12, 0.99999999999976894142}, {2.9, 1e-12, 2.8999999999995521536},
	{7, 1e-12, 6.9999999999995009111}, {15, 1e-12, 14.9999999999995}, {33, 1e-12, 32.9999999999995}, {60, 1e-12, 59.9999999999995},
	{150, 1e-12, 149.9999999999995}, {1000, 1e-12, 999.9999999999995}, {1e5, 1e-12, 99999.9999999999995}, {1e-9, 1e-4, 9.9997500124991146641e-10},
	{0.3, 1e-4, 0.29999255611225590364}, {1, 1e-4, 0.99997689505067437376}, {2.9, 1e-4, 2.8999552157990938353}, {7, 1e-4, 6.9999500911142055547},
	{15, 1e-4, 14.999950000030593282}, {33, 1e-4, 32.99995}, {60, 1e-4, 59.99995}, {150, 1e-4, 149.99995},
	{1000, 1e-4, 999.99995}, {1e5, 1e-4, 99999.99995}, {1e-9, 0.02, 9.9504930430277848986e-10}, {0.3, 0.02, 0.29852551330374258064},
	{1, 0.02, 0.99541485308213589104}, {2.9, 0.02, 2.8910608859763351604}, {7, 0.02, 6.9900185883824418279}, {15, 0.02, 14.990000006241741147},
	{33, 0.02, 32.990000000000000095}, {60, 0.02, 59.99}, {150, 0.02, 149.99}, {1000, 0.02, 999.99},
	{1e5, 0.02, 99999.99}, {1e-9, 0.159, 9.6309821870480723779e-10}, {0.3, 0.159, 0.28899593790684515705}, {1, 0.159, 0.96540693105998687818},
	{2.9, 0.159, 2.8299618607467161972}, {7, 0.159, 6.9206699105653188665}, {15, 0.159, 14.920500057080778405}, {33, 0.159, 32.920500000000000869},
	{60, 0.159, 59.9205}, {150, 0.159, 149.9205}, {1000, 0.159, 999.9205}, {1e5, 0.159, 99999.9205},
	{1e-9, 0.161, 9.6266679104866453571e-10}, {0.3, 0.161, 0.28886712235190562745}, {1, 0.161, 0.96499728625687162522}, {2.9, 0.161, 2.8290963842368396726},
	{7, 0.161, 6.919672395457384914}, {15, 0.161, 14.919500057916032435}, {33, 0.161, 32.919500000000000882}, {60, 0.161, 59.9195},
	{150, 0.161, 149.9195}, {1000, 0.161, 999.9195}, {1e5, 0.161, 99999.9195}, {1e-9, 0.5, 8.9849347197455904673e-10},
	{0.3, 0.5, 0.26967563462521556801}, {1, 0.5, 0.90303680921631728459}, {2.9, 0.5, 2.6884992503838345804}, {7, 0.5, 6.7507568859908763586},
	{15, 0.5, 14.750000254808558513}, {33, 0.5, 32.750000000000003881}, {60, 0.5, 59.75}, {150, 0.5, 149.75},
	{1000, 0.5, 999.75}, {1e5, 0.5, 99999.75}, {1e-9, 1, 8.2648385656762814905e-10}, {0.3, 1, 0.24809192680592998389},
	{1, 1, 0.83179656575118622643}, {2.9, 1, 2.5046149760794406801}, {7, 1, 6.5025523575325281887}, {15, 1, 14.500000866607818792},
	{33, 1, 32.500000000000013198}, {60, 1, 59.5}, {150, 1, 149.5}, {1000, 1, 999.5},
	{1e5, 1, 99999.5}, {1e-9, 2.5, 6.8908282528164940147e-10}, {0.3, 2.5, 0.20684495892010854038}, {1, 2.5, 0.69349712569656040794},
	{2.9, 2.5, 2.0990515962953331872}, {7, 2.5, 5.7785892323144561233}, {15, 2.5, 13.75001193763427384}, {33, 2.5, 31.75000000000018184},
	{60, 2.5, 58.75}, {150, 2.5, 148.75}, {1000, 2.5, 998.75}, {1e5, 2.5, 99998.75},
	{1e-9, 5.99, 5.3201501936445659462e-10}, {0.3, 5.99, 0.15967015524901241241}, {1, 5.99, 0.5344421034570608822}, {2.9, 5.99, 1.6010972795196213022},
	{7, 5.99, 4.4526428032607595063}, {15, 5.99, 12.007051784935377806}, {33, 5.99, 30.005000000037096191}, {60, 5.99, 57.005},
	{150, 5.99, 147.005}, {1000, 5.99, 997.005}, {1e5, 5.99, 99997.005}, {1e-9, 6.01, 5.3140909298047636279e-10},
	{0.3, 6.01, 0.15948818125632462952}, {1, 6.01, 0.53382895530541719487}, {2.9, 6.01, 1.5991724997710449841}, {7, 6.01, 4.4467853324063643903},
	{15, 6.01, 11.99710572365419696}, {33, 6.01, 29.995000000038227838}, {60, 6.01, 56.995}, {150, 6.01, 146.995},
	{1000, 6.01, 996.995}, {1e5, 6.01, 99996.995}, {1e-9, 12, 4.1056091552186974816e-10}, {0.3, 12, 0.12320039132462620599},
	{1, 12, 0.41174989092471524147}, {2.9, 12, 1.2195072734478057334}, {7, 12, 3.2668827659929459334}, {15, 12, 9.2488104299715242998},
	{33, 12, 27.000000302544602579}, {60, 12, 54.000000000000000001}, {150, 12, 144.0}, {1000, 12, 994.0},
	{1e5, 12, 99994.0}, {1e-9, 40, 2.4273372307868163174e-10}, {0.3, 40, 0.072826983834870731007}, {1, 40, 0.24298804300569352681},
	{2.9, 40, 0.71012810252537251534}, {7, 40, 1.786036190214239555}, {15, 40, 4.4671399659201102189}, {33, 40, 14.941006165036552332},
	{60, 40, 40.001206384757264109}, {150, 40, 130.0}, {1000, 40, 980.0}, {1e5, 40, 99980.0},
	{1e-9, 300, 9.1632322426413212221e-11}, {0.3, 300, 0.027490068183524187439}, {1, 300, 0.091646079998280480592}, {2.9, 300, 0.26606925960366944866},
	{7, 300, 0.64614415561119405974}, {15, 300, 1.4208459555307118881}, {33, 300, 3.5091278835298739752}, {60, 300, 8.1611790670309294808},
	{150, 300, 40.142040623439452193}, {1000, 300, 850.0}, {1e5, 300, 99850.0}, {1e-9, 5000, 2.2560164028588875268e-11},
	{0.3, 5000, 0.0067680547528227356331}, {1, 5000, 0.022560369370998000389}, {2.9, 5000, 0.06542948377135457248}, {7, 5000, 0.15799157994901543291},
	{15, 5000, 0.3390954574724156198}, {33, 5000, 0.75186267396287578506}, {60, 5000, 1.3978996826857058867},
}

func TestPredictiveAgainstMpmath(t *testing.T) {
	for _, row := range predictiveRows {
		m, a, want := row[0], row[1], row[2]
		if got := Predictive(m, a); !(math.Abs(got-want) <= tolerance(want, m, a)) {
			t.Errorf("m=%v a=%v: %v, want %v, off by %.2g", m, a, got, want, got-want)
		}
	}
}

// The laws that no tolerance may break: odd to the last bit, m's sign, between m and 0,
// growing with m, and finite for all finite m and a.
func TestPredictiveLaws(t *testing.T) {
	sizes := []float64{0, 5e-324, 1e-300, 1e-30, 1e-9, 0.999e-6, 1e-6, 1.001e-6, 0.1, 0.5, 1, 3, 5.9, 9, 20, 24, 27, 33, 35.9, 36.1, 60, 745, 1000, 1e6, 1e16, 1e100, 1e308}
	for _, a := range sizes {
		last := 0.0
		for _, m := range sizes {
			f := Predictive(m, a)
			if g := Predictive(-m, a); math.Float64bits(g) != math.Float64bits(-f) {
				t.Errorf("m=%v a=%v: %v, but %v at −m", m, a, f, g)
			}
			if !(f >= last-1e-10 && f <= m*(1+1e-12)+1e-10) || math.IsInf(f, 0) {
				t.Errorf("m=%v a=%v: %v after %v, want between it and m", m, a, f, last)
			}
			if m > 1e-30 && a < 1e100 && f <= 0 {
				t.Errorf("m=%v a=%v: %v is not above 0", m, a, f)
			}
			last = f
		}
	}
	inf := math.Inf(1)
	for _, c := range [][3]float64{
		{3, 0, 3}, {-3, 0, -3}, {3, inf, 0}, {inf, inf, 0}, {inf, 4, inf}, {-inf, 4, -inf}, {1000, 1, 999.5}, {-1000, 400, -800}, {2e6, 1e6, 1.5e6},
	} {
		if got := Predictive(c[0], c[1]); got != c[2] {
			t.Errorf("m=%v a=%v: %v, want %v", c[0], c[1], got, c[2])
		}
	}
	if !math.IsNaN(Predictive(math.NaN(), 1)) || !math.IsNaN(Predictive(1, math.NaN())) {
		t.Error("NaN is lost")
	}
}

// Reference: (1) at m = a, where it gives Q(a, a) = e^{−a/2}/2, because Q(0, a) = ½.
func TestPredictiveAtMeanEqualVariance(t *testing.T) {
	for _, a := range []float64{1e-5, 0.1, 1, 3, 10, 35.9, 36.1, 100, 1000, 1e5} {
		q := math.Exp(-a/2) / 2
		want := math.Log1p(-q) - math.Log(0.5) + a/2
		if got := Predictive(a, a); math.Abs(got-want) > tolerance(want, a, a) {
			t.Errorf("a=%v: %v, want %v", a, got, want)
		}
	}
}

// Moderate is off by no more than it says.
func TestModerateAgainstPredictive(t *testing.T) {
	for m := 0.0; m <= 40; m += 0.25 {
		for _, a := range []float64{0, 0.1, 1, 3, 8, 20, 50} {
			if d := math.Abs(logistic.Sigmoid(Moderate(m, a)) - logistic.Sigmoid(Predictive(m, a))); d > 0.017 {
				t.Errorf("m=%v a=%v: off by %v", m, a, d)
			}
		}
	}
}

var sink float64

func BenchmarkPredictive(b *testing.B) {
	for _, c := range []struct {
		name string
		a    float64
	}{{"a=.01", 0.01}, {"a=.1", 0.1}, {"a=.3", 0.3}, {"a=1", 1}, {"a=3", 3}, {"a=6", 6}, {"a=35", 35}, {"a=37", 37}, {"a=1000", 1000}} {
		b.Run(c.name, func(b *testing.B) { benchmarkLogOdds(b, c.a, Predictive) })
	}
	b.Run("Moderate", func(b *testing.B) { benchmarkLogOdds(b, 1, Moderate) })
}

func benchmarkLogOdds(b *testing.B, a float64, f func(m, a float64) float64) {
	b.ReportAllocs()
	m := 0.0
	for b.Loop() {
		sink += f(m-9, a)
		if m += 0.37; m > 18 {
			m -= 18
		}
	}
}
