package eval

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/optimize"
	"pgregory.net/rapid"
)

// absent says that a line has no value.
func absent(l Line) bool {
	return !l.Slope.Defined() && !l.Intercept.Defined() && !l.SlopeError.Defined()
}

// Where there are two scores, the line goes through the log-odds of the labels
// at both: with shares of spam of 1/4 at −1 and 4/5 at 2, a−b = −ln 3 and
// a+2b = ln 4.
func TestCalibrateThroughTwoPoints(t *testing.T) {
	m := New()
	add := func(z float64, ham, spam int) {
		for range ham {
			m.Add(false, z)
		}
		for range spam {
			m.Add(true, z)
		}
	}
	add(-1, 3, 1)
	add(2, 1, 4)
	s := m.Summary()
	near(t, "slope", s.CalibrationSlope, math.Log(12)/3, 1e-12)
	near(t, "intercept", s.CalibrationIntercept, math.Log(12)/3-math.Log(3), 1e-12)
}

// Where the shares of spam lie on a line, that is the line: its score equations
// hold term by term.
func TestCalibrateFindsTheLineOfTheShares(t *testing.T) {
	for _, want := range []Line{{0, 1, 0}, {0.5, 1, 0}, {0, 0.3, 0}, {-2, 4, 0}, {1, -0.7, 0}, {0.25, 0, 0}} {
		var points []Point
		for i := range 9 {
			z, n := float64(i-3)/2, float64(1+i*i)
			p := sigmoid(float64(want.Intercept) + float64(want.Slope)*z)
			points = append(points, Point{z, n * (1 - p), n * p})
		}
		got := Calibrate(slices.Values(points))
		if math.Abs(float64(got.Slope-want.Slope)) > 1e-12 || math.Abs(float64(got.Intercept-want.Intercept)) > 1e-12 {
			t.Errorf("line of %+v: got %+v", want, got)
		}
	}
}

// A filter whose log-odds are k times what they should be has the slope 1/k, and
// the same labels at scores that are moved by c move the intercept by −b·c.
func TestCalibrateScales(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var points []Point
	for range 400 {
		z := 3 * r.NormFloat64()
		if r.Float64() < sigmoid(z) {
			points = append(points, Point{z, 0, 1})
		} else {
			points = append(points, Point{z, 1, 0})
		}
	}
	base := Calibrate(slices.Values(points))
	for _, tt := range []struct{ k, c float64 }{{1, 0}, {3, 0}, {0.01, 0}, {1, 5}, {40, -100}} {
		moved := slices.Clone(points)
		for i := range moved {
			moved[i].LogOdds = tt.k*moved[i].LogOdds + tt.c
		}
		got := Calibrate(slices.Values(moved))
		slope := float64(base.Slope) / tt.k
		near(t, "slope", got.Slope, slope, 1e-9*slope)
		near(t, "intercept", got.Intercept, float64(base.Intercept)-slope*tt.c, 1e-9*(1+math.Abs(slope*tt.c)))
	}
}

func TestCalibrateHasNoLine(t *testing.T) {
	inf := math.Inf(1)
	for _, tt := range []struct {
		what   string
		points []Point
	}{
		{"nothing", nil},
		{"one class", []Point{{-1, 1, 0}, {2, 3, 0}}},
		{"one event of each, apart", []Point{{-1, 1, 0}, {2, 0, 1}}},
		{"one score", []Point{{1, 2, 3}}},
		{"separated", []Point{{-3, 1, 0}, {-1, 4, 0}, {1, 0, 1}, {2, 0, 2}}},
		{"separated the other way", []Point{{-3, 0, 1}, {-1, 0, 1}, {1, 2, 0}}},
		{"separated but for a tie", []Point{{-3, 1, 0}, {0, 5, 7}, {2, 0, 2}}},
		{"certain of spam that is ham", []Point{{-3, 1, 1}, {2, 1, 1}, {inf, 1, 0}}},
		{"certain of ham that is spam", []Point{{-inf, 0, 1}, {-3, 1, 1}, {2, 1, 1}}},
		{"certain alone", []Point{{-inf, 3, 0}, {inf, 0, 2}}},
		{"no weight where they overlap", []Point{{-1, 1, 0}, {0, 0, 0}, {2, 0, 1}, {3, 0, 2}}},
	} {
		if got := Calibrate(slices.Values(tt.points)); !absent(got) {
			t.Errorf("%s: got %+v, want no line", tt.what, got)
		}
	}
}

// What is certain and true changes nothing.
func TestCalibrateLeavesOutTheCertain(t *testing.T) {
	points := []Point{{-3, 4, 1}, {0, 2, 2}, {2, 1, 3}}
	want := Calibrate(slices.Values(points))
	points = append(points, Point{math.Inf(1), 0, 100}, Point{math.Inf(-1), 100, 0})
	if got := Calibrate(slices.Values(points)); got != want || absent(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Classes that barely overlap have a steep line, far from b = 0, and scores that
// saturate have a flat one; both are found. By symmetry a = 0 for the first, whose
// slope solves 2000·σ(−b) = 2δ·σ(bδ): near ln(2000/δ) while bδ is small.
func TestCalibrateFarOut(t *testing.T) {
	for _, δ := range []float64{1e-3, 1e-6, 1e-9, 1e-12} {
		got := Calibrate(slices.Values([]Point{{-1, 1000, 0}, {-δ, 0, 1}, {δ, 1, 0}, {1, 0, 1000}}))
		near(t, "intercept", got.Intercept, 0, 1e-6)
		b := float64(got.Slope)
		balance := 1000*sigmoid(-b) - δ*sigmoid(b*δ)
		if !got.Slope.Defined() || math.Abs(balance) > 1e-6*δ {
			t.Errorf("overlap %g: slope %v leaves %g of the score equation", δ, b, balance)
		}
	}
	got := Calibrate(slices.Values([]Point{{-800, 999, 1}, {800, 1, 999}}))
	near(t, "slope", got.Slope, math.Log(999)/800, 1e-12)
}

// The oracle is gonum's BFGS on the likelihood as it is written. Scores are whole
// multiples of 2⁻¹⁰: classes that overlap by less have slopes for which the oracle
// has no digits (TestCalibrateFarOut).
func TestCalibrateAgainstOptimize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		for i := range events {
			events[i].z = math.Round(1024*events[i].z) / 1024
		}
		got := measure(events).Summary()
		negative := func(line []float64) (loss float64) {
			for _, e := range events {
				loss += softplus(line[0] + line[1]*e.z)
				if e.spam {
					loss -= line[0] + line[1]*e.z
				}
			}
			return loss
		}
		gradient := func(dst, line []float64) {
			dst[0], dst[1] = 0, 0
			for _, e := range events {
				g := sigmoid(line[0] + line[1]*e.z)
				if e.spam {
					g--
				}
				dst[0] += g
				dst[1] += g * e.z
			}
		}
		if !got.CalibrationSlope.Defined() {
			// Then some direction lowers the loss for ever, or z never changes.
			if found := falls(events); !found {
				t.Errorf("no line, but nothing separates %v", events)
			}
			return
		}
		want, err := optimize.Minimize(optimize.Problem{Func: negative, Grad: gradient}, []float64{0, 0},
			&optimize.Settings{GradientThreshold: 1e-10}, &optimize.BFGS{})
		if want == nil {
			t.Fatalf("oracle: %v", err)
		}
		line := []float64{float64(got.CalibrationIntercept), float64(got.CalibrationSlope)}
		// BFGS ends, at the latest, where the loss no longer falls in its digits, so
		// the loss is what can be compared; the gradient says that ours is the place.
		if loss := negative(line); loss > want.F+1e-9 {
			t.Errorf("loss %v at %v, oracle %v at %v", loss, line, want.F, want.X)
		}
		var g [2]float64
		gradient(g[:], line)
		if math.Abs(g[0]) > 1e-6 || math.Abs(g[1]) > 1e-6 {
			t.Errorf("gradient %v at %v, oracle %v", g, line, want.X)
		}
	})
}

// falls reports whether a threshold leaves no ham above and no spam below it, or
// the other way about.
func falls(events []scored) bool {
	for _, at := range events {
		up, down := true, true
		for _, e := range events {
			up = up && (e.spam && e.z >= at.z || !e.spam && e.z <= at.z)
			down = down && (e.spam && e.z <= at.z || !e.spam && e.z >= at.z)
		}
		if up || down {
			return true
		}
	}
	return false
}

// The histogram moves a score by 2⁻¹¹ at most; the line moves by less.
func TestCalibrationFromTheHistogram(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	m := New()
	for range 50_000 {
		z := 4*r.NormFloat64() - 2
		m.Add(r.Float64() < sigmoid(0.8*z+0.3), z)
	}
	exact := m.Summary()
	near(t, "slope", exact.CalibrationSlope, 0.8, 0.04) // its standard error is below .01
	near(t, "intercept", exact.CalibrationIntercept, 0.3, 0.08)
	m.toHistogram()
	approx := m.Summary()
	if !approx.Approximate {
		t.Fatal("not approximate")
	}
	near(t, "slope", approx.CalibrationSlope, float64(exact.CalibrationSlope), 1.0/2048)
	near(t, "intercept", approx.CalibrationIntercept, float64(exact.CalibrationIntercept), 1.0/2048)
}

func BenchmarkCalibrate(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var points []Point
	for range 200_000 {
		z := 4 * r.NormFloat64()
		p := Point{LogOdds: z, Ham: 1}
		if r.Float64() < sigmoid(z) {
			p = Point{LogOdds: z, Spam: 1}
		}
		points = append(points, p)
	}
	b.ReportAllocs()
	for b.Loop() {
		Calibrate(slices.Values(points))
	}
}

// SlopeError is the root of the slope's entry in the inverse of Fisher's information,
// written out.
func TestSlopeErrorIsFishers(t *testing.T) {
	points := []Point{{-3, 40, 3}, {-1, 20, 9}, {0, 12, 9}, {2, 8, 30}, {2.5, 1, 17}}
	line := Calibrate(slices.Values(points))
	var one, z1, z2 float64
	for _, p := range points {
		π := sigmoid(float64(line.Intercept) + float64(line.Slope)*p.LogOdds)
		w := (p.Ham + p.Spam) * π * (1 - π)
		one, z1, z2 = one+w, z1+w*p.LogOdds, z2+w*p.LogOdds*p.LogOdds
	}
	near(t, "standard error", line.SlopeError, math.Sqrt(one/(one*z2-z1*z1)), 1e-9)
}

// A filter that is right below ½, twice too sure above .95: each tail has the slope of its
// own events, to three standard errors, and does not see the others.
func TestTails(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	m := New()
	var below, above []Point
	for range 200_000 {
		z := 2.5 * r.NormFloat64()
		truth := z
		if z > math.Log(19) {
			truth = z / 2
		}
		y := r.Float64() < sigmoid(truth)
		m.Add(y, z)
		p := Point{LogOdds: z, Ham: 1}
		if y {
			p.Ham, p.Spam = 0, 1
		}
		switch q := 1 / (1 + math.Exp(-z)); {
		case q < 0.05:
			below = append(below, p)
		case q > 0.95:
			above = append(above, p)
		}
	}
	s := m.Summary()
	for _, c := range []struct {
		name   string
		got    Tail
		points []Point
		slope  float64
	}{{"p < .05", s.Below, below, 1}, {"p > .95", s.Above, above, 0.5}} {
		spam := 0
		for _, p := range c.points {
			spam += int(p.Spam)
		}
		if c.got.Events != len(c.points) || c.got.Spam != spam {
			t.Errorf("%s: %+v, want %d events, %d spam", c.name, c.got, len(c.points), spam)
		}
		want := Calibrate(slices.Values(c.points))
		near(t, c.name, c.got.Slope, float64(want.Slope), 1e-6)
		near(t, c.name, c.got.Error, float64(want.SlopeError), 1e-6)
		near(t, c.name, c.got.Slope, c.slope, 3*float64(c.got.Error))
		if c.got.Error > 0.1 {
			t.Errorf("%s: standard error %v shows nothing", c.name, c.got.Error)
		}
	}
}

// A tail with fewer than five events of a class is counted, and has no slope.
func TestTailOfFewEvents(t *testing.T) {
	points := []Point{{-6, 900, 1}, {-4, 100, 2}, {-3, 50, 1}, {0, 9, 9}, {3, 2, 40}, {4, 2, 90}, {5, 1, 200}}
	few, enough := Below(slices.Values(points)), Above(slices.Values(points))
	if few.Events != 1054 || few.Spam != 4 || few.Slope.Defined() || few.Error.Defined() {
		t.Errorf("four spam: %+v", few)
	}
	if enough.Events != 335 || enough.Spam != 330 || !enough.Slope.Defined() || !enough.Error.Defined() {
		t.Errorf("five ham: %+v", enough)
	}
}
