// Package sla minimises a smooth 0-1 loss of a linear classifier over labelled,
// weighted rows,
//
//	L(w) = Σ weight_i·loss(y_i·γ·wᵀx_i) + λ/2·|w|²,
//
// which is not convex. A [Curve] has the loss, an [Objective] its sum over a
// [Problem]. [Search] descends to a local minimum (a [Descent]), then probes each
// coordinate at ±ε, ±2ε, … ±R (a [Prober]). From a point that is better by ε_L it
// descends again. algos/bblr fits windows with it, algos/lab/bblr the paper's variants.
//
// Sources: T. Nguyen and S. Sanner, Algorithms for direct 0–1 loss optimization in
// binary classification (2013), for SLA; M. K. Hasan and C. J. Pal (2015), of which
// equations, sections and algorithms have the numbers below. Departures: the descent is
// preconditioned by L-BFGS, and algorithm 2's "break" leaves both loops.
//
// # Invariants
//
// A search is a function of its arguments, to the last bit and on every CPU: exp and
// log come from package logistic, products are rounded before they are summed, and
// sums run in one order. Every loop has a limit.
package sla
