package bblr

import (
	"errors"
	"fmt"
	"math"

	"hamlet/algos/internal/sla"
)

// A Schedule holds the constants of SLA, algorithms 1 and 2. The first seven
// defaults are those of Nguyen and Sanner, which the paper's appendix A repeats.
// For the others, except r_G, appendix A gives no values.
type Schedule struct {
	Radius        float64 // R₀, how far from a coordinate the first level probes; 0 is 8
	Spacing       float64 // ε_S₀, between the probes of the first level; 0 is 0.2
	GammaMin      float64 // γ_MIN, the first steepness; 0 is 2
	GammaMax      float64 // γ_MAX, the largest steepness allowed; 0 is 200
	GammaGrowth   float64 // r_γ > 1, γ's factor; 0 is 10. (The paper calls it a reduction.)
	RadiusShrink  float64 // r_R in (0, 1], the radius's factor; 0 is ½
	SpacingShrink float64 // r_ε in (0, 1], the spacing's factor; 0 is ½

	RateShrink        float64 // r_G in (0, 1), the learning rate's factor; 0 is 0.1
	RateMax           float64 // r_GMAX, the first learning rate, for the mean gradient; 0 is 0.1
	RateMin           float64 // r_GMIN, the least learning rate; 0 is 10⁻⁵
	LossTolerance     float64 // ε_L, the least improvement of a probe, in nats; 0 is 10⁻³
	GradientTolerance float64 // ε_G, the length of the mean gradient at a minimum; 0 is 10⁻⁴
}

// Bounds on how long a schedule runs. The default has 3 levels and 40 probes to
// either side.
const (
	maxLevels = 1000
	maxSteps  = 100_000
)

// A FieldError says what is wrong with a field of a configuration.
type FieldError struct {
	Field   string // its name in Go
	Problem string
}

func (e *FieldError) Error() string { return "field " + e.Field + ": " + e.Problem }

func badField(name, format string, args ...any) error {
	return &FieldError{Field: name, Problem: fmt.Sprintf(format, args...)}
}

// A constant is a field of a Schedule: its default, and the range (lo, hi] it must
// lie in.
type constant struct {
	name             string
	field            *float64
	fallback, lo, hi float64
}

func (s *Schedule) constants() []constant {
	const huge = math.MaxFloat64
	return []constant{
		{"Radius", &s.Radius, sla.FirstRadius, 0, huge},
		{"Spacing", &s.Spacing, sla.FirstSpacing, 0, huge},
		{"GammaMin", &s.GammaMin, 2, 0, huge},
		{"GammaMax", &s.GammaMax, 200, 0, huge},
		{"GammaGrowth", &s.GammaGrowth, 10, 1, huge},
		{"RadiusShrink", &s.RadiusShrink, 0.5, 0, 1},
		{"SpacingShrink", &s.SpacingShrink, 0.5, 0, 1},
		{"RateShrink", &s.RateShrink, sla.RateShrink, 0, 0.99},
		{"RateMax", &s.RateMax, sla.RateMax, 0, huge},
		{"RateMin", &s.RateMin, sla.RateMin, 0, huge},
		{"LossTolerance", &s.LossTolerance, 1e-3, 0, huge},
		{"GradientTolerance", &s.GradientTolerance, 1e-4, 0, huge},
	}
}

// withDefaults returns s with its zero fields filled in.
func (s Schedule) withDefaults() Schedule {
	for _, c := range s.constants() {
		if *c.field == 0 {
			*c.field = c.fallback
		}
	}
	return s
}

// Check fills in the defaults of s and joins a *[FieldError] for each bad field.
func (s Schedule) Check() error {
	s = s.withDefaults()
	var errs []error
	for _, c := range s.constants() {
		if v := *c.field; !(v > c.lo && v <= c.hi) {
			errs = append(errs, badField(c.name, "%v: want more than %v and at most %v", v, c.lo, c.hi))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if s.GammaMax < s.GammaMin {
		errs = append(errs, badField("GammaMax", "%v: want at least the first γ, %v", s.GammaMax, s.GammaMin))
	}
	if s.RateMin > s.RateMax {
		errs = append(errs, badField("RateMin", "%v: want at most the first rate, %v", s.RateMin, s.RateMax))
	}
	tried := 0
	for range s.rates(1).Factors(1) {
		tried++
	}
	if tried >= sla.MaxRates {
		errs = append(errs, badField("RateMin", "%v: it takes %d rates or more from %v by factors of %v",
			s.RateMin, sla.MaxRates, s.RateMax, s.RateShrink))
	}
	levels := 0
	for level := range s.levels {
		if levels++; levels > maxLevels {
			errs = append(errs, badField("GammaGrowth", "%v: it takes more than %d levels from γ = %v to %v",
				s.GammaGrowth, maxLevels, s.GammaMin, s.GammaMax))
			break
		}
		if !(level.Radius/level.Spacing <= maxSteps) {
			errs = append(errs, badField("Spacing", "%v is too small for a radius of %v at γ = %v: want at most %d steps",
				level.Spacing, level.Radius, level.Gamma, maxSteps))
			break
		}
	}
	return errors.Join(errs...)
}

// levels yields the levels from γ_MIN up.
func (s Schedule) levels(yield func(sla.Level) bool) {
	l := sla.Level{Gamma: s.GammaMin, Radius: s.Radius, Spacing: s.Spacing}
	for l.Gamma <= s.GammaMax && yield(l) {
		l.Gamma *= s.GammaGrowth
		l.Radius *= s.RadiusShrink
		l.Spacing *= s.SpacingShrink
	}
}

// last returns the steepness of the last level.
func (s Schedule) last() (γ float64) {
	for l := range s.levels {
		γ = l.Gamma
	}
	return γ
}

// Rates returns the descent's constants for an objective of the given total weight.
func (s Schedule) rates(total float64) sla.Rates {
	return sla.Rates{
		Max: s.RateMax / total, Min: s.RateMin / total, Shrink: s.RateShrink,
		Tolerance: s.GradientTolerance * total, Most: sla.MaxDescent,
	}
}

// quick returns the constants of a descent that ends when two steps in a row have
// gained less than the given nats each. On a plateau only the penalty has a slope,
// and its minimum is far beyond the next rise. So the search for a rate begins at
// four times the last rate, not at the largest.
func (s Schedule) quick(total, gain float64) sla.Rates {
	r := s.rates(total)
	r.Shrink, r.Min, r.Gain = 0.25, r.Max*0x1p-24, gain
	return r
}
