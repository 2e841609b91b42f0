// Package blr computes the tables, figures and claims of
// variational Bayesian logistic regression (Drugowitsch)
// again. Laboratory: no service contains it.
package blr

import "hamlet/cmd/internal/lab/experiment"

// Experiments returns all of them, in the order of the source.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{}
}
