// Laboratory: the experiments of one source.

// Package bblr computes the tables, figures and claims of
// BBLR: A New Smooth Approximation to the Zero One Loss (Hasan, Pal)
// again.
package bblr

import "hamlet/cmd/internal/lab/experiment"

// Experiments returns all of them, in the order of the source.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{
		figure2, figure5, table3, table4, table5, table6, table7, table8, table10, table11, table12,
		table13, figure6, table14, table15, figure7,
	}
}
