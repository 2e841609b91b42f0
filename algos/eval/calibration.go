package eval

import (
	"iter"
	"math"
)

// A Point counts the ham and spam with one value of the log-odds. Counts may be weights.
type Point struct{ LogOdds, Ham, Spam float64 }

// A Line recalibrates a filter's log-odds z: logit P(spam) = Intercept + Slope·z. A
// calibrated filter has 0 and 1. A slope below 1 means overconfidence, above 1
// underconfidence. An intercept above 0 means more spam than predicted. SlopeError is the
// standard error of Slope, 1/√Σπ(1−π)(z−z̄)² at the fit, by Fisher's information.
type Line struct{ Intercept, Slope, SlopeError Measure }

// Calibrate fits the line to points by maximum likelihood (Cox 1958, "Two further
// applications of a model for binary regression", Biometrika 45). With
// π = σ(a + bz), and z̄ the mean of z with weights π(1−π), a Newton step is
//
//	Δb = Σ(y−π)(z−z̄) / Σπ(1−π)(z−z̄)²,   Δa = Σ(y−π) / Σπ(1−π) − z̄·Δb,
//
// halved until the likelihood does not fall. The likelihood is strictly concave.
//
// All figures are NaN if a class is missing or a threshold separates the classes: the
// likelihood then has no maximum (Albert and Anderson 1984, "On the existence of maximum
// likelihood estimates in logistic regression models"). Infinite log-odds of the right
// sign are ignored; one of the wrong sign makes all figures NaN.
//
// Calibrate iterates over points some ten times. They must always have the same order.
func Calibrate(points iter.Seq[Point]) Line {
	nan := Measure(math.NaN())
	none := Line{nan, nan, nan}
	ham, spam := span{math.Inf(1), math.Inf(-1)}, span{math.Inf(1), math.Inf(-1)}
	var hams, spams float64
	for p := range points {
		if math.IsInf(p.LogOdds, 0) {
			if p.LogOdds > 0 && p.Ham > 0 || p.LogOdds < 0 && p.Spam > 0 {
				return none
			}
			continue
		}
		if p.Ham > 0 {
			ham.add(p.LogOdds)
			hams += p.Ham
		}
		if p.Spam > 0 {
			spam.add(p.LogOdds)
			spams += p.Spam
		}
	}
	if !(spam.lo < ham.hi && ham.lo < spam.hi) {
		return none
	}
	a, b := math.Log(spams/hams), 0.0
	at := fitOf(points, a, b)
	for range maxNewton {
		Δa, Δb := at.step()
		var next fit
		for halved := 0; ; halved++ {
			next = fitOf(points, a+Δa, b+Δb)
			if next.loss <= at.loss+rounding*at.loss || small(Δa, a) && small(Δb, b) {
				break
			}
			if halved == maxHalvings {
				return none
			}
			Δa, Δb = Δa/2, Δb/2
		}
		a, b, at = a+Δa, b+Δb, next
		if small(Δa, a) && small(Δb, b) {
			return Line{Measure(a), Measure(b), Measure(1 / math.Sqrt(at.dispersion))}
		}
	}
	return none
}

// A Tail is the calibration where p is small or large: the Slope of the line fitted to
// the events of the tail alone, with its standard error. Both are NaN, null in JSON,
// if either class has fewer than 5 events there, or Calibrate finds no line.
type Tail struct {
	Events int     `json:"events"`
	Spam   int     `json:"spam"`
	Slope  Measure `json:"slope"`
	Error  Measure `json:"slope_error"`
}

// A tail begins where p < .05 or 1−p < .05: beyond log-odds of ∓ln 19.
var tailLogit = math.Log(19)

// fewestInTail is how many events of each class a slope takes. With fewer, its standard
// error is rarely below ½.
const fewestInTail = 5

// Below returns the tail p < .05 of points, which it iterates over like [Calibrate].
func Below(points iter.Seq[Point]) Tail {
	return tailOf(points, func(z float64) bool { return z < -tailLogit })
}

// Above returns the tail p > .95.
func Above(points iter.Seq[Point]) Tail {
	return tailOf(points, func(z float64) bool { return z > tailLogit })
}

func tailOf(points iter.Seq[Point], in func(z float64) bool) Tail {
	var ham, spam float64
	kept := func(yield func(Point) bool) {
		for p := range points {
			if in(p.LogOdds) && !yield(p) {
				return
			}
		}
	}
	for p := range kept {
		ham += p.Ham
		spam += p.Spam
	}
	t := Tail{Events: int(ham + spam), Spam: int(spam), Slope: Measure(math.NaN()), Error: Measure(math.NaN())}
	if min(ham, spam) >= fewestInTail {
		line := Calibrate(kept)
		t.Slope, t.Error = line.Slope, line.SlopeError
	}
	return t
}

const (
	// A Newton step doubles the correct digits. After a step of 10⁻⁹ only rounding is left.
	smallStep = 1e-9

	// If the classes barely overlap, a step divides 1−π by about e. ln 2¹⁰²⁴ = 710 of
	// these exhaust a float64.
	maxNewton   = 710
	maxHalvings = 64

	rounding = 1e-12 // relative error of a sum of a million losses
)

func small(Δ, v float64) bool { return math.Abs(Δ) <= smallStep*(1+math.Abs(v)) }

type span struct{ lo, hi float64 }

func (s *span) add(z float64) { s.lo, s.hi = min(s.lo, z), max(s.hi, z) }

// A fit holds the sums of a Newton step from the line (a, b).
type fit struct {
	loss       float64 // −ln of the likelihood
	residual   float64 // Σ(y−π)
	moment     float64 // Σ(y−π)z
	curvature  float64 // Σπ(1−π)
	centre     float64 // z̄, the mean of z with weights π(1−π)
	dispersion float64 // Σπ(1−π)(z−z̄)²
}

func fitOf(points iter.Seq[Point], a, b float64) (f fit) {
	for p := range points {
		z := p.LogOdds
		if math.IsInf(z, 0) {
			continue
		}
		t, n := a+b*z, p.Ham+p.Spam
		e := math.Exp(-math.Abs(t))
		near, far := 1/(1+e), e/(1+e) // σ(|t|) and σ(−|t|)
		l := math.Log1p(e)
		right, wrong := p.Spam, p.Ham // counts of the label that t predicts, and of the other
		if t < 0 {
			right, wrong = wrong, right
		}
		f.loss += n*l + wrong*math.Abs(t)
		r := right*far - wrong*near // for the predicted label
		if t < 0 {
			r = -r
		}
		f.residual += r
		f.moment += r * z
		w := n * near * far
		if w == 0 {
			continue
		}
		f.curvature += w // a running mean and variance with weights (West 1979)
		d := z - f.centre
		f.centre += d * w / f.curvature
		f.dispersion += w * d * (z - f.centre)
	}
	return f
}

func (f *fit) step() (Δa, Δb float64) {
	Δb = (f.moment - f.centre*f.residual) / f.dispersion
	return f.residual/f.curvature - f.centre*Δb, Δb
}

// points yields the scores, ham first.
func (r *ranking) points(yield func(Point) bool) {
	for _, z := range r.ham {
		if !yield(Point{LogOdds: z, Ham: 1}) {
			return
		}
	}
	for _, z := range r.spam {
		if !yield(Point{LogOdds: z, Spam: 1}) {
			return
		}
	}
}

// points yields the middles of the bins that are not empty; ±64 for the two outermost.
func (h *histogram) points(yield func(Point) bool) {
	for i, b := range h.bins {
		if b.ham+b.spam == 0 {
			continue
		}
		z := -binnedLimit + (float64(i)-0.5)/binsPerUnit
		if !yield(Point{min(max(z, -binnedLimit), binnedLimit), float64(b.ham), float64(b.spam)}) {
			return
		}
	}
}
