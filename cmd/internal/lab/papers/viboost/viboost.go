// Laboratory: the experiments of one source.

// Package viboost computes the figures and claims of VIBoost again: A Bayesian Boosting
// Model, by Lorbert, Blei, Schapire and Ramadge.
//
// The paper's figures are pictures without numbers. What its text says of them is stated
// as bounds on what the run computes.
package viboost

import "hamlet/cmd/internal/lab/experiment"

// Experiments returns all of them, in the order of the source.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{figure5, figure6, figure7, figure8, figure9, figure10, stopping, elbo, channel}
}

// runs is how many runs the paper averages over (section 7).
const runs = 40
