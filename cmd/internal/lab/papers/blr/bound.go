package blr

import (
	"context"
	"fmt"
	"math"
	"time"

	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// sigmoidBound is (8), on which all else rests.
var sigmoidBound = experiment.Experiment{
	Name: "blr/bound", Title: "The bound on the sigmoid", Where: "equations 8, 31, 57 and 61",
	Claim: "An exponential of a quadratic lies below σ(z) for every ξ and touches it at z = ±ξ. The best ξ² is the " +
		"mean of z². At ξ = 0 the curvature λ is 1/8 and the constant −ln 2.",
	Cost: 200 * time.Millisecond,
	Run: func(_ context.Context, r *experiment.Run, p *experiment.Report) error {
		picture := chart.Chart{Title: "The sigmoid and bounds from below", Caption: "Each bound touches at z = −ξ " +
			"and z = ξ.",
			X: chart.Axis{Label: "z"}, Y: chart.Axis{Label: "probability", Min: experiment.End(0),
				Max: experiment.End(1)}}
		curve := func(name string, f func(float64) float64, reference bool) {
			s := experiment.Curve(name, -8, 8, .1, f)
			s.Reference = reference
			picture.Series = append(picture.Series, s)
		}
		curve("σ(z)", sigma, true)
		for _, ξ := range []float64{0, 1, 3, 6} {
			curve(fmt.Sprintf("ξ = %g", ξ), func(z float64) float64 { return math.Exp(logBound(z, ξ)) }, false)
		}
		above, touches := math.Inf(-1), 0.0
		for ξ := 0.0; ξ <= 40; ξ += .25 {
			for z := -60.0; z <= 60; z += .1 {
				above = max(above, logBound(z, ξ)-logSigma(z))
			}
			touches = max(touches, math.Abs(logBound(ξ, ξ)-logSigma(ξ)), math.Abs(logBound(-ξ, ξ)-logSigma(-ξ)))
		}
		group := "ξ from 0 to 40, z from −60 to 60"
		atMostZero(p, group, "largest excess of the bound's logarithm over ln σ(z)", experiment.Exact(above), 1e-12)
		atMostZero(p, group, "largest distance of the logarithms at z = ±ξ", experiment.Exact(touches), 1e-12)
		// (31): the derivative by ξ vanishes at E z², and any other ξ has less.
		lost := math.Inf(1)
		rng := r.Rand("moments", 0)
		for range 500 {
			square := math.Exp(1.5 * rng.NormFloat64())
			best := meanBound(math.Sqrt(square), square)
			for _, factor := range []float64{.5, .9, 1.1, 2} {
				lost = min(lost, best-meanBound(factor*math.Sqrt(square), square))
			}
		}
		p.AtLeast("500 random E(z²)", "least loss of the mean bound by another ξ than (31)'s",
			experiment.Exact(lost), "0")
		// λ has its value at 0 written in; near 0 it is computed.
		const small = 1e-3
		group = "ξ = .001"
		p.Figure(group, "curvature λ", experiment.Exact(λ(small)), "0.125", experiment.Neither)
		atMostZero(p, group, "size of the constant's difference from −ln 2",
			experiment.Exact(math.Abs(logBound(0, small)+math.Ln2)), 1e-9)
		p.Chart(picture)
		return nil
	},
}

// logBound is the logarithm of (8)'s right side.
func logBound(z, ξ float64) float64 { return logSigma(ξ) + (z-ξ)/2 - λ(ξ)*(z*z-ξ*ξ) }

// meanBound is the part of E logBound(z, ξ) that depends on ξ, with square = E z².
func meanBound(ξ, square float64) float64 { return logSigma(ξ) - ξ/2 - λ(ξ)*(square-ξ*ξ) }
