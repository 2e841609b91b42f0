// Package poe has what the paper of package poeboost compares and checks (N. U. Edakunni,
// G. Brown and T. Kovacs, Boosting as a product of experts, UAI 2011): formulas that the
// boosters use in another form, with the arguments of poeboost.Constraint, and Real AdaBoost
// over the hypotheses of POEBoost.CS, its rival in table 2.
package poe
