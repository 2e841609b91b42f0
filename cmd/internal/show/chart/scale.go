package chart

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// A scale maps an axis's values onto [0, 1], and has its ticks.
type scale struct {
	axis   *Axis
	lo, hi float64 // the ends, as values; lo < hi
	step   float64 // of a linear axis that fit has made; otherwise 0
}

// newScale makes an axis's scale long enough for values. Bars need zero on it.
func newScale(a *Axis, values []float64, bars bool) *scale {
	s := &scale{axis: a}
	if n := len(a.Categories); n > 0 {
		s.lo, s.hi = -0.5, float64(n)-0.5
	} else {
		s.fit(values, bars)
	}
	if a.Min != nil {
		s.lo = *a.Min
	}
	if a.Max != nil {
		s.hi = *a.Max
	}
	if !(s.across(s.hi)-s.across(s.lo) > 1e-9*max(math.Abs(s.across(s.lo)), math.Abs(s.across(s.hi)))) {
		s.widen()
	}
	return s
}

// fit sets the ends to ticks around the values.
func (s *scale) fit(values []float64, bars bool) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if s.holds(v) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	for _, t := range s.axis.Named {
		lo, hi = min(lo, t.At), max(hi, t.At)
	}
	// A given end may lie beyond all values.
	if s.axis.Min != nil {
		lo = *s.axis.Min
		hi = max(hi, lo)
	}
	if s.axis.Max != nil {
		hi = *s.axis.Max
		lo = min(lo, hi)
	}
	switch {
	case s.axis.Log:
		if lo > hi {
			lo, hi = 1, 10
		}
		s.lo, s.hi = nice125(lo, math.Floor), nice125(hi, math.Ceil)
	case s.axis.Logit:
		if lo > hi {
			lo, hi = 0.1, 0.9
		}
		s.lo, s.hi = lo, hi
	default:
		if lo > hi {
			lo, hi = 0, 1
		}
		if bars {
			lo, hi = min(lo, 0), max(hi, 0)
		}
		s.lo, s.hi = lo, hi
		if hi-lo <= 1e-9*max(math.Abs(lo), math.Abs(hi)) {
			s.widen()
		}
		step := step125((s.hi - s.lo) / 5)
		s.step = step
		s.lo, s.hi = math.Floor(s.lo/step+1e-9)*step, math.Ceil(s.hi/step-1e-9)*step
	}
}

// widen makes an axis of a single value longer.
func (s *scale) widen() {
	switch {
	case s.axis.Log:
		s.lo, s.hi = s.lo/2, s.lo*2
	case s.axis.Logit:
		s.lo, s.hi = s.lo/2, (1+s.lo)/2
	default:
		by := max(0.5, math.Abs(s.lo)/10)
		s.lo, s.hi = s.lo-by, s.lo+by
	}
}

// holds reports whether the scale has a place for v.
func (s *scale) holds(v float64) bool {
	switch {
	case s.axis.Log:
		return v >= 1/largest
	case s.axis.Logit:
		return v >= 1/largest && v < 1
	}
	return !math.IsNaN(v)
}

// across is v in the units that are drawn evenly.
func (s *scale) across(v float64) float64 {
	switch {
	case s.axis.Log:
		return math.Log10(v)
	case s.axis.Logit:
		return math.Log(v) - math.Log1p(-v)
	}
	return v
}

// at returns where v stands: 0 is the lower end and 1 the upper. NaN stays NaN.
func (s *scale) at(v float64) float64 {
	if math.IsNaN(v) {
		return v
	}
	v = min(max(v, s.lo), s.hi)
	lo, hi := s.across(s.lo), s.across(s.hi)
	return min(max((s.across(v)-lo)/(hi-lo), 0), 1)
}

// base is where bars start.
func (s *scale) base() float64 {
	if s.axis.Log || s.axis.Logit {
		return 0
	}
	return s.at(0)
}

// ticks returns at most about n ticks within the ends.
func (s *scale) ticks(n int) []Tick {
	var all []Tick
	switch {
	case len(s.axis.Categories) > 0:
		for i, name := range s.axis.Categories {
			all = append(all, Tick{float64(i), name})
		}
		return all
	case s.axis.Log:
		all = s.logTicks(n)
	case s.axis.Logit:
		all = s.logitTicks(n)
	default:
		all = s.linearTicks(n)
	}
	slack := 1e-9 * (s.across(s.hi) - s.across(s.lo))
	return slices.DeleteFunc(all, func(t Tick) bool {
		at := s.across(t.At)
		return !(at >= s.across(s.lo)-slack && at <= s.across(s.hi)+slack)
	})
}

// logitTicks are ½ and powers of ten from either end. Where few are wanted, every second or
// third of them is there, counted from ½.
func (s *scale) logitTicks(n int) (all []Tick) {
	const usual = 5
	known := [...]float64{1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999}
	for i, p := range known {
		if (i-len(known)/2)%max(1, usual+1-n) == 0 {
			all = append(all, Tick{p, strconv.FormatFloat(p, 'f', -1, 64)})
		}
	}
	return all
}

// linearTicks are multiples of 1, 2 or 5 times a power of ten.
func (s *scale) linearTicks(n int) (all []Tick) {
	step := step125((s.hi - s.lo) / float64(max(n, 1)))
	if s.step > 0 && (s.hi-s.lo)/s.step <= float64(n)+2.5 {
		step = s.step
	}
	for i := math.Ceil(s.lo/step - 1e-9); i*step <= s.hi+1e-9*step && len(all) <= 4*n+4; i++ {
		all = append(all, Tick{i * step, number(i*step, step)})
	}
	return all
}

// logTicks are decades, every second or third of them if there are many. An axis of less
// than two decades also has their twofold and fivefold.
func (s *scale) logTicks(n int) (all []Tick) {
	first, last := math.Floor(math.Log10(s.lo)+1e-9), math.Ceil(math.Log10(s.hi)-1e-9)
	every := max(1, math.Ceil((last-first)/float64(max(n, 1))))
	within := []float64{1}
	span := math.Log10(s.hi / s.lo)
	switch {
	case span < 0.5 && n > 2:
		return s.linearTicks(n)
	case span < 2.1 && 3*(last-first) <= 2*float64(n):
		within = []float64{1, 2, 5}
	}
	for d := math.Ceil(first/every) * every; d <= last; d += every {
		for _, k := range within {
			v := k * math.Pow(10, d)
			all = append(all, Tick{v, power(k, d)})
		}
	}
	return all
}

// power writes k·10ᵈ: as a number if that is short.
func power(k, d float64) string {
	if d >= -4 && d <= 5 {
		v, _ := strconv.ParseFloat(strconv.FormatFloat(k, 'f', -1, 64)+"e"+strconv.FormatFloat(d, 'f', 0, 64), 64)
		return grouped(strconv.FormatFloat(v, 'f', -1, 64))
	}
	exponent := strings.Map(func(r rune) rune {
		if r == '-' {
			return '⁻'
		}
		return []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[r-'0']
	}, strconv.FormatFloat(d, 'f', 0, 64))
	if k == 1 {
		return "10" + exponent
	}
	return strconv.FormatFloat(k, 'f', -1, 64) + "×10" + exponent
}

// number writes a multiple of a step without superfluous digits.
func number(v, step float64) string {
	if math.Abs(v) < step/2 {
		return "0"
	}
	digits := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	sign := ""
	if v < 0 {
		sign, v = "−", -v
	}
	if v >= 1e6 || digits > 6 {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e',
			min(12, max(0, int(math.Log10(v)-math.Log10(step)+0.999))), 64), "e")
		if strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		k, _ := strconv.ParseFloat(mantissa, 64)
		d, _ := strconv.ParseFloat(exponent, 64)
		return sign + power(k, d)
	}
	return sign + grouped(strconv.FormatFloat(v, 'f', digits, 64))
}

// grouped puts commas between thousands from 10,000 on.
func grouped(v string) string {
	whole, rest, dot := strings.Cut(v, ".")
	if len(whole) > 4 {
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "," + whole[i:]
		}
	}
	if dot {
		return whole + "." + rest
	}
	return whole
}

// step125 is the least of 1, 2 and 5 times a power of ten that is at least v.
func step125(v float64) float64 {
	step := nice125(v, math.Ceil)
	if !(step > 0) || math.IsInf(step, 0) {
		return math.SmallestNonzeroFloat64 * 1e20
	}
	return step
}

// nice125 rounds v > 0 down or up to 1, 2 or 5 times a power of ten.
func nice125(v float64, round func(float64) float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)+1e-12))
	up := round(0.5) == 1
	choices := []float64{1, 2, 5, 10}
	if up {
		for _, k := range choices {
			if k*power >= v*(1-1e-9) {
				return k * power
			}
		}
		return 10 * power
	}
	for _, k := range slices.Backward(choices) {
		if k*power <= v*(1+1e-9) {
			return k * power
		}
	}
	return power
}
