// Package slides computes the tables, figures and claims of
// the lecture on boosting
// again. Laboratory: no service contains it.
package slides

import "hamlet/cmd/internal/lab/experiment"

// Experiments returns all of them, in the order of the source.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{}
}
