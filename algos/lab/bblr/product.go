package bblr

import "hamlet/algos/bblr"

// The product's classifier, its likelihood and its error, which the variants share.
type (
	Linear     = bblr.Linear
	Likelihood = bblr.Likelihood
)

var ErrOneClass = bblr.ErrOneClass

// Counts is bblr.Counts.
func Counts(α, β, n float64) Likelihood { return bblr.Counts(α, β, n) }
