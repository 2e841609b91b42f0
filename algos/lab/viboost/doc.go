// Package viboost is the inference of package algos/viboost, whose doc has the model, with
// all that the paper describes: any prior, τ and end of the passes, the exact mode and the
// exact E_c ([New]), one stage to convergence ([Infer]), and a sampler ([Gibbs]).
//
// With the exact E_c every update within a round is coordinate ascent, so the evidence
// lower bound (91) never falls there; at the mode it may. From one round to the next it may
// fall by the weight of (17), and not by the exact mode's in our runs. (91) is computed
// after φ and η.
//
// A round with the approximate mode is 2N exponentials, or N where τ = 1. The exact modes
// add a Newton's method a pass; the exact E_c and the bound add a normalised v-Log, which
// costs some hundred passes (MEASURED.md).
//
// Source: A. Lorbert, D. Blei, R. Schapire, P. Ramadge, A Bayesian boosting model
// (2012), algorithm 1, S.4 and S.5; algorithm 2 and S.3 for Gibbs.
package viboost
