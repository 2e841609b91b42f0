package eval

import (
	"math"
	"math/rand/v2"
	"testing"
)

// pairs returns 1-ROCA% and the variance of DeLong, Biometrics 44, equations (3) to (6), by all pairs.
func pairs(spam, ham []float64) (roca, variance float64) {
	kernel := func(x, y float64) float64 {
		switch {
		case x > y:
			return 1
		case x == y:
			return 0.5
		}
		return 0
	}
	area := 0.0
	v10, v01 := make([]float64, len(spam)), make([]float64, len(ham))
	for i, x := range spam {
		for j, y := range ham {
			k := kernel(x, y)
			area += k / float64(len(spam)*len(ham))
			v10[i] += k / float64(len(ham))
			v01[j] += k / float64(len(spam))
		}
	}
	for _, v := range [][]float64{v10, v01} {
		s := 0.0
		for _, x := range v {
			s += (x - area) * (x - area)
		}
		variance += s / float64(len(v)-1) / float64(len(v))
	}
	return 100 * (1 - area), variance
}

func TestROCAIntervalIsDeLongs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		var points []Point
		var spam, ham []float64
		for range 40 {
			y := math.Round(4*(r.NormFloat64()+1)) / 4 // with ties
			spam, points = append(spam, y), append(points, Point{LogOdds: y, Spam: 1})
			y = math.Round(4*(r.NormFloat64()-1)) / 4
			ham, points = append(ham, y), append(points, Point{LogOdds: y, Ham: 1})
		}
		want, variance := pairs(spam, ham)
		roca, low, high := ROCAInterval(points, 1.645)
		a := want / 100
		spread := 1.645 * math.Sqrt(variance) / (a * (1 - a))
		wantLow := 100 / (1 + math.Exp(math.Log((1-a)/a)+spread))
		wantHigh := 100 / (1 + math.Exp(math.Log((1-a)/a)-spread))
		for name, v := range map[string][2]float64{"roca": {roca, want}, "low": {low, wantLow}, "high": {high, wantHigh}} {
			if math.Abs(v[0]-v[1]) > 1e-9 {
				t.Errorf("%s: %v, by pairs %v", name, v[0], v[1])
			}
		}
	}
}

// Of 600 samples, the interval contains the truth in about 90 %: Φ(√2) is the area of two
// normal distributions whose means are 2 apart.
func TestROCAIntervalCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	truth := 100 * (1 - 0.5*math.Erfc(-1))
	const samples = 600
	inside := 0
	for range samples {
		var points []Point
		for range 60 {
			points = append(points, Point{LogOdds: r.NormFloat64() + 1, Spam: 1}, Point{LogOdds: r.NormFloat64() - 1, Ham: 1})
		}
		if _, low, high := ROCAInterval(points, 1.645); low <= truth && truth <= high {
			inside++
		}
	}
	// The binomial spread of a coverage of .9 is .012; the interval is asymptotic.
	if c := float64(inside) / samples; c < 0.87 || c > 0.93 {
		t.Errorf("coverage %v, want about .9", c)
	}
}

func TestROCAIntervalAtTheEnds(t *testing.T) {
	apart := []Point{{1, 0, 10}, {-1, 20, 0}}
	if roca, low, high := ROCAInterval(apart, 1.645); roca != 0 || low != 0 || math.Abs(high-25.886) > 0.001 { // 1 − .05^(1/10)
		t.Errorf("without an error: %v, %v to %v", roca, low, high)
	}
	swapped := []Point{{-1, 0, 10}, {1, 20, 0}}
	if roca, low, high := ROCAInterval(swapped, 1.645); roca != 100 || low >= 100 || high != 100 {
		t.Errorf("all wrong: %v, %v to %v", roca, low, high)
	}
	if roca, _, _ := ROCAInterval([]Point{{1, 0, 3}}, 1.645); !math.IsNaN(roca) {
		t.Errorf("of one class: %v", roca)
	}
}

// Where the variance cannot be estimated, the interval says nothing.
func TestROCAIntervalWithoutAVariance(t *testing.T) {
	for name, c := range map[string]struct {
		points []Point
		roca   float64
	}{
		"one spam above half of the ham": {[]Point{{-1, 25, 0}, {0, 0, 1}, {1, 25, 0}}, 50},
		"one spam above all ham":         {[]Point{{-1, 50, 0}, {0, 0, 1}}, 0},
		"one spam below all ham":         {[]Point{{0, 0, 1}, {1, 50, 0}}, 100},
		"one ham below most spam":        {[]Point{{-1, 0, 5}, {0, 1, 0}, {1, 0, 45}}, 10},
		"one answer for all":             {[]Point{{3, 20, 0}, {3, 0, 30}}, 50},
	} {
		roca, low, high := ROCAInterval(c.points, 1.645)
		if math.Abs(roca-c.roca) > 1e-9 || low != 0 || high != 100 {
			t.Errorf("%s: %v, %v to %v", name, roca, low, high)
		}
	}
}

// With an error the interval reaches as far as without one, and mirrored it is the same.
func TestROCAIntervalIsNotShorterForAnError(t *testing.T) {
	perfect := []Point{{-1, 1000, 0}, {1, 0, 10}}
	_, _, least := ROCAInterval(perfect, 1.645)
	one := []Point{{-1, 999, 0}, {0.5, 0, 1}, {0.7, 1, 0}, {1, 0, 9}} // a pair of 10,000
	roca, low, high := ROCAInterval(one, 1.645)
	if math.Abs(roca-0.01) > 1e-9 || low > roca || high < least {
		t.Errorf("with one wrong pair: %v, %v to %v; without: to %v", roca, low, high, least)
	}
	for i := range one {
		one[i].LogOdds = -one[i].LogOdds
	}
	mirror, from, to := ROCAInterval(one, 1.645)
	if math.Abs(mirror+roca-100) > 1e-9 || math.Abs(from+high-100) > 1e-9 || math.Abs(to+low-100) > 1e-9 {
		t.Errorf("mirrored: %v, %v to %v; of %v, %v to %v", mirror, from, to, roca, low, high)
	}
}

// NaN is tied with NaN, in whatever order the points come.
func TestROCAIntervalTakesNaN(t *testing.T) {
	points := []Point{{math.NaN(), 0, 1}, {1, 0, 9}, {math.NaN(), 1, 0}, {-1, 9, 0}}
	roca, low, high := ROCAInterval(points, 1.645)
	for i := range points {
		if math.IsNaN(points[i].LogOdds) {
			points[i].LogOdds = math.Inf(-1)
		}
	}
	want, wantLow, wantHigh := ROCAInterval(points, 1.645)
	if roca != want || low != wantLow || high != wantHigh {
		t.Errorf("%v, %v to %v; with -Inf %v, %v to %v", roca, low, high, want, wantLow, wantHigh)
	}
}
