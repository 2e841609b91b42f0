// Package poeboost computes the tables, figures and claims of
// POEBoost: Boosting as a Product of Experts (Edakunni, Brown, Kovacs)
// again. Laboratory: no service contains it.
package poeboost

import "hamlet/cmd/internal/lab/experiment"

// Experiments returns all of them, in the order of the source.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{}
}
