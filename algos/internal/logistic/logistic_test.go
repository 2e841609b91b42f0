package logistic

import (
	"hash/fnv"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

const prec = 200 // bits of the oracle

func bigFloat(x float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(x) }

// bigExp returns eˣ by halving x until it is small and squaring the Taylor sum.
func bigExp(x *big.Float) *big.Float {
	const halvings = 24
	r := new(big.Float).SetPrec(prec + 64).Set(x)
	r.SetMantExp(r, -halvings)
	sum := new(big.Float).SetPrec(prec + 64).SetInt64(1)
	term := new(big.Float).SetPrec(prec + 64).SetInt64(1)
	for j := int64(1); j < 40; j++ {
		term.Mul(term, r)
		term.Quo(term, new(big.Float).SetInt64(j))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigLog returns ln y by Newton's iteration on e^z = y from the double's log.
func bigLog(y *big.Float) *big.Float {
	m := new(big.Float)
	k := y.MantExp(m)
	f, _ := m.Float64()
	z := bigFloat(math.Log(f)) // m in [½, 1)
	for range 3 {              // 53, 106, 212 bits
		e := bigExp(new(big.Float).Neg(z))
		e.Mul(e, m)
		e.Sub(e, big.NewFloat(1))
		z.Add(z, e)
		// Second order of Newton's error, e²/2.
		e.Mul(e, e)
		e.SetMantExp(e, -1)
		z.Sub(z, e)
	}
	return z.Add(z, new(big.Float).SetPrec(prec).Mul(bigLn2, new(big.Float).SetInt64(int64(k))))
}

// bigLn2 is Σ 1/(j·2ʲ).
var bigLn2 = func() *big.Float {
	sum := new(big.Float).SetPrec(prec + 64)
	for j := 1; j < 280; j++ {
		t := new(big.Float).SetPrec(prec + 64).SetInt64(1)
		t.SetMantExp(t, -j)
		sum.Add(sum, t.Quo(t, new(big.Float).SetInt64(int64(j))))
	}
	return sum
}()

// ulps returns |got − want| in units of the last place of want.
func ulps(got float64, want *big.Float) float64 {
	w, _ := want.Float64()
	if got == w {
		return 0
	}
	ulp := math.Nextafter(math.Abs(w), math.Inf(1)) - math.Abs(w)
	d := new(big.Float).SetPrec(prec).Sub(bigFloat(got), want)
	d.Quo(d.Abs(d), bigFloat(ulp))
	f, _ := d.Float64()
	return f
}

func TestAccuracy(t *testing.T) {
	one := bigFloat(1)
	for _, fn := range []struct {
		name  string
		f     func(float64) float64
		truth func(x *big.Float) *big.Float
		draw  func(r *rand.Rand) float64
		max   float64 // ulp
	}{
		{"Exp", Exp, bigExp, func(r *rand.Rand) float64 { return 1417*r.Float64() - 708 }, 1},
		{"Exp small", Exp, bigExp, func(r *rand.Rand) float64 { return 2*r.Float64() - 1 }, 1},
		{"Exp subnormal", Exp, bigExp, func(r *rand.Rand) float64 { return -708 - 37*r.Float64() }, 1},
		{"Log", Log, bigLog, func(r *rand.Rand) float64 {
			return math.Float64frombits(1 + r.Uint64N(math.Float64bits(math.MaxFloat64)))
		}, 1},
		{"Log near 1", Log, bigLog, func(r *rand.Rand) float64 { return 1 + 0.5*(r.Float64()-0.5) }, 1},
		{"Log1p", Log1p, func(x *big.Float) *big.Float {
			return bigLog(new(big.Float).SetPrec(prec).Add(one, x))
		}, func(r *rand.Rand) float64 {
			return math.Exp(-40 + 45*r.Float64())
		}, 2},
		{"Log1p negative", Log1p, func(x *big.Float) *big.Float {
			return bigLog(new(big.Float).SetPrec(prec).Add(one, x))
		}, func(r *rand.Rand) float64 { return -math.Exp(-36*r.Float64()) * (1 - 0x1p-50) }, 2},
		{"Sigmoid", Sigmoid, func(z *big.Float) *big.Float {
			d := bigExp(new(big.Float).Neg(z))
			return d.Quo(one, d.Add(d, one))
		}, func(r *rand.Rand) float64 { return 80*r.Float64() - 40 }, 2},
		{"LogSigmoid", LogSigmoid, func(z *big.Float) *big.Float {
			d := bigExp(new(big.Float).Neg(z))
			d = bigLog(d.Add(d, one))
			return d.Neg(d)
		}, func(r *rand.Rand) float64 { return 80*r.Float64() - 40 }, 2},
		{"Logit", Logit, func(p *big.Float) *big.Float {
			q := new(big.Float).SetPrec(prec).Sub(one, p)
			return bigLog(q.Quo(p, q))
		}, func(r *rand.Rand) float64 { return r.Float64() }, 2},
	} {
		t.Run(fn.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			worst, at := 0.0, 0.0
			for range 4000 {
				x := fn.draw(r)
				if d := ulps(fn.f(x), fn.truth(bigFloat(x))); d > worst {
					worst, at = d, x
				}
			}
			t.Logf("largest error %.3f ulp at %v", worst, at)
			if worst > fn.max {
				t.Errorf("error %.3f ulp at %v (%x), want at most %v", worst, at, at, fn.max)
			}
		})
	}
}

func TestLn2Parts(t *testing.T) {
	sum := new(big.Float).SetPrec(prec).Add(bigFloat(ln2Hi), bigFloat(ln2Lo))
	d, _ := sum.Sub(sum, bigLn2).Float64()
	if math.Abs(d) > 0x1p-86 {
		t.Errorf("ln2Hi + ln2Lo − ln 2 = %g, want at most 2⁻⁸⁶", d)
	}
}

func TestSpecialValues(t *testing.T) {
	inf, nan, tiny := math.Inf(1), math.NaN(), math.SmallestNonzeroFloat64
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"Exp(0)", Exp(0), 1}, {"Exp(-0)", Exp(math.Copysign(0, -1)), 1},
		{"Exp(+Inf)", Exp(inf), inf}, {"Exp(-Inf)", Exp(-inf), 0}, {"Exp(NaN)", Exp(nan), nan},
		{"Exp(710)", Exp(710), inf}, {"Exp(-746)", Exp(-746), 0}, {"Exp(tiny)", Exp(tiny), 1},
		{"Exp(-745.13)", Exp(-745.13), tiny},
		{"Log(1)", Log(1), 0}, {"Log(0)", Log(0), -inf}, {"Log(-1)", Log(-1), nan},
		{"Log(+Inf)", Log(inf), inf}, {"Log(-Inf)", Log(-inf), nan}, {"Log(NaN)", Log(nan), nan},
		{"Log(2^-1074)", Log(tiny), -744.4400719213812}, {"Log(max)", Log(math.MaxFloat64), 709.782712893384},
		{"Log1p(0)", Log1p(0), 0}, {"Log1p(-1)", Log1p(-1), -inf}, {"Log1p(-2)", Log1p(-2), nan},
		{"Log1p(+Inf)", Log1p(inf), inf}, {"Log1p(-Inf)", Log1p(-inf), nan}, {"Log1p(NaN)", Log1p(nan), nan},
		{"Log1p(tiny)", Log1p(tiny), tiny}, {"Log1p(1e300)", Log1p(1e300), 690.7755278982137},
		{"Sigmoid(0)", Sigmoid(0), 0.5}, {"Sigmoid(800)", Sigmoid(800), 1}, {"Sigmoid(-800)", Sigmoid(-800), 0},
		{"Sigmoid(+Inf)", Sigmoid(inf), 1}, {"Sigmoid(-Inf)", Sigmoid(-inf), 0}, {"Sigmoid(NaN)", Sigmoid(nan), nan},
		{"LogSigmoid(800)", LogSigmoid(800), 0}, {"LogSigmoid(-800)", LogSigmoid(-800), -800},
		{"LogSigmoid(+Inf)", LogSigmoid(inf), 0}, {"LogSigmoid(-Inf)", LogSigmoid(-inf), -inf},
		{"LogSigmoid(NaN)", LogSigmoid(nan), nan},
		{"Logit(0)", Logit(0), -inf}, {"Logit(1)", Logit(1), inf}, {"Logit(1/2)", Logit(0.5), 0},
		{"Logit(-1)", Logit(-1), nan}, {"Logit(2)", Logit(2), nan}, {"Logit(NaN)", Logit(nan), nan},
	} {
		if c.got != c.want && !(math.IsNaN(c.got) && math.IsNaN(c.want)) {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
	if !math.Signbit(Log1p(math.Copysign(0, -1))) {
		t.Error("Log1p(-0) is not -0")
	}
}

// The ends of Exp's range: every result between the neighbours of the cut-offs
// is what math/big says, and the order is never broken.
func TestExpEnds(t *testing.T) {
	for _, cut := range []float64{expOverflow, -708.3964185322641, -693.5, 708.7, expUnderflow} {
		x := cut
		for range 20 {
			x = math.Nextafter(x, -1e4)
		}
		last := 0.0
		for range 40 {
			got := Exp(x)
			want, _ := bigExp(bigFloat(x)).Float64()
			if d := math.Abs(float64(int64(math.Float64bits(got)) - int64(math.Float64bits(want)))); d > 1 {
				t.Errorf("Exp(%v) = %g, want %g (%v steps apart)", x, got, want, d)
			}
			if got < last {
				t.Errorf("Exp falls at %v: %g after %g", x, got, last)
			}
			last, x = got, math.Nextafter(x, 1e4)
		}
	}
}

// The bits are the format: a hash over many results, the same on every CPU and
// architecture. A change of any coefficient changes models and is a new version
// of the numerics. Made by `go test -v -run TestBits ./algos/internal/logistic`.
func TestBits(t *testing.T) {
	const want = 0x209b2245078d1668
	h := fnv.New64a()
	r := rand.New(rand.NewPCG(3, 4))
	var b [8]byte
	for range 100_000 {
		z := 1500 * (r.Float64() - 0.5)
		if r.IntN(2) == 0 {
			z /= 100
		}
		e := Exp(z)
		for _, y := range [...]float64{e, Log(e), Log1p(e), Sigmoid(z), LogSigmoid(z), Logit(r.Float64())} {
			u := math.Float64bits(y)
			for i := range b {
				b[i] = byte(u >> (8 * i))
			}
			h.Write(b[:])
		}
	}
	if got := h.Sum64(); got != want {
		t.Errorf("hash of the results %#x, want %#x", got, uint64(want))
	}
}

func FuzzInverse(f *testing.F) {
	for _, z := range []float64{0, 1, -1, 36, -36, 700, -700, 1e-300, 800} {
		f.Add(z)
	}
	f.Fuzz(func(t *testing.T, z float64) {
		p := Sigmoid(z)
		if math.IsNaN(z) != math.IsNaN(p) || p < 0 || p > 1 {
			t.Fatalf("Sigmoid(%v) = %v", z, p)
		}
		if math.Abs(z) < 15 && math.Abs(Logit(p)-z) > 1e-15*math.Exp(math.Abs(z))+4e-16*math.Abs(z) {
			t.Errorf("Logit(Sigmoid(%v)) = %v", z, Logit(p))
		}
		if a, b := Exp(z), math.Exp(z); math.Abs(a-b) > 4e-16*b+5e-324 {
			t.Errorf("Exp(%v) = %v, math.Exp gives %v", z, a, b)
		}
		if a, b := Log(z), math.Log(z); math.Abs(a-b) > 4e-16*math.Abs(b)+1e-19 {
			t.Errorf("Log(%v) = %v, math.Log gives %v", z, a, b)
		}
	})
}

var sink float64

func bench(b *testing.B, f func(float64) float64, lo, hi float64) {
	var xs [1024]float64
	r := rand.New(rand.NewPCG(5, 6))
	for i := range xs {
		xs[i] = lo + (hi-lo)*r.Float64()
	}
	b.ReportAllocs()
	sum, i := 0.0, 0
	for b.Loop() {
		sum += f(xs[i&1023])
		i++
	}
	sink = sum
}

func BenchmarkExp(b *testing.B)        { bench(b, Exp, -30, 30) }
func BenchmarkMathExp(b *testing.B)    { bench(b, math.Exp, -30, 30) }
func BenchmarkLog(b *testing.B)        { bench(b, Log, 1e-3, 1e3) }
func BenchmarkMathLog(b *testing.B)    { bench(b, math.Log, 1e-3, 1e3) }
func BenchmarkLog1p(b *testing.B)      { bench(b, Log1p, 0, 1) }
func BenchmarkMathLog1p(b *testing.B)  { bench(b, math.Log1p, 0, 1) }
func BenchmarkSigmoid(b *testing.B)    { bench(b, Sigmoid, -30, 30) }
func BenchmarkLogSigmoid(b *testing.B) { bench(b, LogSigmoid, -30, 30) }
func BenchmarkLogit(b *testing.B)      { bench(b, Logit, 0, 1) }
