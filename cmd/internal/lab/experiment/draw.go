package experiment

import (
	"math"
	"math/rand/v2"

	"hamlet/cmd/internal/show/chart"
)

// Column returns a number of each result.
func Column[T any](all []T, of func(T) float64) []float64 {
	v := make([]float64, len(all))
	for i, one := range all {
		v[i] = of(one)
	}
	return v
}

// Over returns the mean of a number over results that are independent.
func Over[T any](all []T, of func(T) float64) Statistic { return Mean(Column(all, of)) }

// Most returns the largest number of all results as an exact number: it is a property of the
// draws, and not an estimate of a mean.
func Most[T any](all []T, of func(T) float64) Statistic {
	top := math.Inf(-1)
	for _, v := range Column(all, of) {
		top = max(top, v)
	}
	return Exact(top)
}

// Shuffled returns the rows in a random order.
func Shuffled(x [][]float64, y []float64, r *rand.Rand) (px [][]float64, py []float64) {
	px, py = make([][]float64, len(x)), make([]float64, len(x))
	for i, k := range r.Perm(len(x)) {
		px[i], py[i] = x[k], y[k]
	}
	return px, py
}

// Line returns a line of y over 1, 2, … n.
func Line(name string, y []float64) chart.Series {
	s := chart.Series{Name: name, Kind: chart.Line, Y: y}
	for i := range y {
		s.X = append(s.X, float64(i+1))
	}
	return s
}

// Curve returns the line of a function, in steps from one end to the other.
func Curve(name string, from, to, step float64, f func(float64) float64) chart.Series {
	s := chart.Series{Name: name, Kind: chart.Line}
	for x := from; x <= to; x += step {
		s.X, s.Y = append(s.X, x), append(s.Y, f(x))
	}
	return s
}

// Point adds a statistic and its interval to a series.
func Point(s *chart.Series, x float64, e Statistic) {
	lo, hi := e.Interval()
	s.X, s.Y, s.Lo, s.Hi = append(s.X, x), append(s.Y, e.Value), append(s.Lo, lo), append(s.Hi, hi)
}

// End is an end of an axis.
func End(v float64) *float64 { return &v }
