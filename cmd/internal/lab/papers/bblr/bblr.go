// Package bblr computes the tables, figures and claims of
// BBLR: A New Smooth Approximation to the Zero One Loss (Hasan, Pal)
// again. Laboratory: no service contains it.
package bblr

import "hamlet/cmd/internal/lab/experiment"

// Experiments returns all of them, in the order of the source.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{figure6, table13}
}
