package information

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawDistribution draws n probabilities over many magnitudes, zeros among them.
func drawDistribution(t *rapid.T, name string, n int) []float64 {
	p := make([]float64, n)
	sum := 0.0
	for i := range p {
		if e := rapid.IntRange(-1, 40).Draw(t, name+" exponent"); e >= 0 {
			p[i] = math.Ldexp(rapid.Float64Range(0.5, 1).Draw(t, name), -e)
		}
		sum += p[i]
	}
	if sum == 0 {
		p[0], sum = 1, 1
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func drawJoint(t *rapid.T) *Joint {
	rows, columns := rapid.IntRange(1, 6).Draw(t, "rows"), rapid.IntRange(1, 6).Draw(t, "columns")
	flat := drawDistribution(t, "joint", rows*columns)
	p := make([][]float64, rows)
	for y := range p {
		p[y] = flat[y*columns : (y+1)*columns]
	}
	j, err := NewJoint(p)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

const near = 1e-13 // some 36 terms of at most 6 bits, each rounded thrice

// Reference: slides, pages 25 and 28: H(X,Y) = H(X) + H(Y|X) = H(Y) + H(X|Y) and
// I = H(X) − H(X|Y) = H(Y) − H(Y|X) = H(X) + H(Y) − H(X,Y).
func TestChainRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJoint(t)
		h, i := j.Entropy(), j.MutualInformation()
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"H(X) + H(Y|X)", j.EntropyX() + j.EntropyYGivenX(), h},
			{"H(Y) + H(X|Y)", j.EntropyY() + j.EntropyXGivenY(), h},
			{"H(X) − H(X|Y)", j.EntropyX() - j.EntropyXGivenY(), i},
			{"H(Y) − H(Y|X)", j.EntropyY() - j.EntropyYGivenX(), i},
			{"H(X) + H(Y) − H(X,Y)", j.EntropyX() + j.EntropyY() - h, i},
		} {
			if !(math.Abs(c.got-c.want) <= near) {
				t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
			}
		}
	})
}

// Conditioning never adds to an entropy, and none is negative or above log₂ of
// the number of symbols: without a tolerance at 0.
func TestEntropyBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJoint(t)
		n := math.Log2(float64(len(j.x)))
		hx, hxy, i := j.EntropyX(), j.EntropyXGivenY(), j.MutualInformation()
		if !(hxy >= 0 && hxy <= hx+near && hx <= n+near && i >= 0 && i <= hx+near) {
			t.Errorf("want 0 ≤ H(X|Y) = %v ≤ H(X) = %v ≤ %v and 0 ≤ I = %v ≤ H(X)", hxy, hx, n, i)
		}
	})
}

// Gibbs' inequality: D(p‖q) ≥ 0, without a tolerance, and 0 for p = q.
func TestGibbsInequality(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		p, q := drawDistribution(t, "p", n), drawDistribution(t, "q", n)
		if d := Divergence(p, q); !(d >= 0) {
			t.Errorf("D = %v, want at least 0", d)
		}
		if d := Divergence(p, p); d != 0 {
			t.Errorf("D(p‖p) = %v, want 0", d)
		}
		// q a rounding away from p, where a plain sum has either sign.
		for i := range q {
			q[i] = math.Nextafter(p[i], 2*float64(i%2))
		}
		if d := Divergence(p, q); !(d >= 0 && d < 1e-30) {
			t.Errorf("D of neighbours = %v, want about 10⁻³²", d)
		}
	})
}

// channel draws P(b | a), a row for each a.
func channel(t *rapid.T, from int) [][]float64 {
	to := rapid.IntRange(1, 5).Draw(t, "to")
	c := make([][]float64, from)
	for a := range c {
		c[a] = drawDistribution(t, "channel", to)
	}
	return c
}

// through sends a distribution through a channel.
func through(c [][]float64, p []float64) []float64 {
	out := make([]float64, len(c[0]))
	for a, v := range p {
		for b, w := range c[a] {
			out[b] += v * w
		}
	}
	return out
}

// Data processing: X → Y → Z makes I(X;Z) ≤ I(X;Y), and no channel drives two
// distributions further apart.
func TestDataProcessing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJoint(t)
		c := channel(t, len(j.x)) // of X here, I is symmetric
		var p [][]float64
		for _, row := range j.p {
			p = append(p, through(c, row))
		}
		after, err := NewJoint(p)
		if err != nil {
			t.Fatal(err)
		}
		if i, k := j.MutualInformation(), after.MutualInformation(); !(k <= i+near) {
			t.Errorf("I = %v bits after a channel, %v before", k, i)
		}
		a, b := j.x, drawDistribution(t, "other", len(j.x))
		if d, e := Divergence(a, b), Divergence(through(c, a), through(c, b)); !(e <= d+near) {
			t.Errorf("D = %v bits after a channel, %v before", e, d)
		}
		if d, e := Bhattacharyya(a, b), Bhattacharyya(through(c, a), through(c, b)); !(e >= d-near) {
			t.Errorf("BC = %v after a channel, %v before", e, d)
		}
	})
}

// BC lies in [0, 1], is symmetric, and −2 log₂ BC ≤ D(p‖q) (Jensen).
func TestBhattacharyyaBelowDivergence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		p, q := drawDistribution(t, "p", n), drawDistribution(t, "q", n)
		bc, d := Bhattacharyya(p, q), Divergence(p, q)
		if !(bc >= 0 && bc <= 1+near) || bc != Bhattacharyya(q, p) {
			t.Errorf("BC = %v and %v the other way round", bc, Bhattacharyya(q, p))
		}
		if bc > 0 && !(-2*math.Log2(bc) <= d+near) {
			t.Errorf("−2 log₂ BC = %v, D = %v", -2*math.Log2(bc), d)
		}
	})
}

// Subnormal probabilities and products beyond the range get a finite answer.
func TestTinyProbabilities(t *testing.T) {
	const tiny = 0x1p-1040
	j, err := NewJoint([][]float64{{1, 0}, {0, tiny}})
	if err != nil {
		t.Fatal(err)
	}
	want := 1040 * tiny
	for name, got := range map[string]float64{"H(X)": j.EntropyX(), "H(X,Y)": j.Entropy(), "I": j.MutualInformation()} {
		if !(math.Abs(got/want-1) < 1e-2) { // 1 − 1/(1040 ln 2) for I, whose whole is not quite 1
			t.Errorf("%s = %v, want about %v", name, got, want)
		}
	}
	p, q := []float64{1, tiny}, []float64{tiny, 1}
	if d := Divergence(p, q); !(d > 1000 && d < 1100) {
		t.Errorf("D = %v, want about 1040 bits", d)
	}
	if bc, want := Bhattacharyya(p, q), 0x1p-519; bc != want {
		t.Errorf("BC = %v, want %v", bc, want)
	}
	if bc := Bhattacharyya([]float64{tiny}, []float64{tiny}); math.Abs(bc/tiny-1) > 1e-9 {
		t.Errorf("BC = %v, want %v", bc, tiny)
	}
}

func TestCheck(t *testing.T) {
	for _, p := range [][]float64{nil, {}, {0.5}, {0.5, 0.6}, {1.5, -0.5}, {math.NaN(), 1}, {math.Inf(1)}} {
		if Check(p) == nil {
			t.Errorf("Check(%v) = nil, want an error", p)
		}
	}
	for _, p := range [][]float64{{1}, {0, 1}, {0.1, 0.2, 0.3, 0.4}, {1. / 3, 1. / 3, 1. / 3}} {
		if err := Check(p); err != nil {
			t.Errorf("Check(%v) = %v", p, err)
		}
	}
	for _, p := range [][][]float64{nil, {{}}, {{0.5, 0.5}, {0}}, {{0.5}, {0.4}}, {{-1, 2}}, {{math.NaN()}}} {
		if _, err := NewJoint(p); err == nil {
			t.Errorf("NewJoint(%v) has no error", p)
		}
	}
}

func TestNewJointCopies(t *testing.T) {
	p := [][]float64{{0.5, 0}, {0, 0.5}}
	j, err := NewJoint(p)
	if err != nil {
		t.Fatal(err)
	}
	p[0][0], j.X()[0], j.Y()[0] = 9, 9, 9
	if h := j.Entropy(); h != 1 || j.EntropyX() != 1 || j.EntropyY() != 1 {
		t.Errorf("H = %v after the caller changed its slices, want 1 bit", h)
	}
}

func TestLengthsPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"Divergence":    func() { Divergence([]float64{1}, []float64{0.5, 0.5}) },
		"Bhattacharyya": func() { Bhattacharyya([]float64{1}, []float64{0.5, 0.5}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of different lengths does not panic", name)
				}
			}()
			f()
		}()
	}
}
