// Package ensemble builds ensembles from a window of the stream: all boosters of
// hamlet, and BBLR, behind one door, so that a model can rebuild, serve, save and
// restore any of them alike.
//
// # From a window to an ensemble
//
// A [Window] is the last n events: D inputs each in float32, labels ±1, weights ω
// (the label trust φ, so that a doubtful label counts little). [Build] leaves out
// the rows of weight 0, cuts each input into at most 64 quantile bins, once for all
// kinds, and trains T = min(100, n/10) rounds:
//
//	anyboost       the logistic cost over trees of depth 2: leaves G/(H+1), clipped at ±2, × .3
//	realadaboost   trees of depth 2 by Σ√(W⁺W⁻), leaves ½ ln((W⁺+s)/(W⁻+s)), × .3
//	poeboost.ds    a product of experts, each a stump, with Qᵢ and the minimising P_e
//	poeboost.cs    a product of logistic regressions on one input; T ≤ 50, rows pooled by bin
//	adaboost       stumps
//	bhboost        profiles over 16 quantile bins of their own, × .3
//	viboost        stumps, 5 passes a round, τ = 1
//	bblr           BBLR2 on standardised inputs, linear, at γ = 2 alone (bblr.RebuildConfig)
//
// The result is an [Ensemble], log-odds as a function of D inputs. Its scale is its
// own (VIBoost's is half of what it should be): a stacker weighs it beside the
// head. Nor does it know when it was built; that it answers only for events which
// its window did not hold is its owner's to see to.
//
// # Measured
//
// Three shuffles of spambase (seeds 1, 2, 3), each event predicted, then learnt, as
// it would be in the stream: a head A over the 57 signed logarithms (blr, standardised,
// prior variance .3, R-VGA), beside it one ensemble, rebuilt from the last 2,000 events
// at every 500th and before the 500th at every 50th, in effect from the next such count
// on; both joined by a stacker over [1, A's log-odds, the ensemble's clipped at ±6] with
// prior mean 0, ½, ½, variances .1, .25, .25 and forgetting at .995 an event. A and
// the stacker learn the likelihood raised to φ. 1-ROCA% / log loss / error % on the
// true labels; the cost is that of a full window's rebuild, spread over 500 events,
// the fastest of some fifty on a shared Xeon. November 2026, go test -run - -bench
// SpambaseTable -benchtime 1x ./algos/ensemble:
//
//	              clean                 5 % flipped           10 % flipped          µs/event
//	A alone       2.33 / .1902 / 6.80   2.56 / .2014 / 7.19   2.83 / .2136 / 7.63
//	anyboost      1.91 / .1666 / 5.99   2.19 / .1831 / 6.40   2.49 / .1992 / 6.94    35
//	realadaboost  1.90 / .1654 / 5.88   2.26 / .1857 / 6.55   2.55 / .2019 / 7.06    31
//	poeboost.ds   2.08 / .1739 / 5.99   2.22 / .1842 / 6.33   2.45 / .1976 / 6.80    27
//	poeboost.cs   2.19 / .1809 / 6.43   2.45 / .1951 / 6.95   2.67 / .2081 / 7.43    87
//	adaboost      2.05 / .1726 / 6.17   2.30 / .1879 / 6.65   2.53 / .2010 / 6.86    13
//	bhboost       2.08 / .1738 / 6.12   2.30 / .1879 / 6.74   2.55 / .2033 / 7.14    14
//	viboost       2.04 / .1738 / 6.19   2.30 / .1891 / 6.58   2.54 / .2028 / 7.01    30
//	bblr          2.37 / .1878 / 6.71   2.57 / .1987 / 7.06   2.82 / .2118 / 7.51    13
//
// Where labels are flipped it is φ in A and in the stacker that keeps the log loss
// down: at 10 % with φ in the boosters alone it is .27 with and without an ensemble,
// with φ in the stacker as well .24, because a head that takes every label as given
// learns to be as unsure as they are.
//
// Rounds: T = 50 costs AnyBoost and Real AdaBoost .003 and the stumps .003 of log loss,
// T = 200 gains .001 to .002 at twice the cost; n/5 in the place of n/10 costs .0005 to .001 with
// flips. POEBoost.CS gains .002 from 20 to 50 rounds, nothing from 50 to 100. Clipping
// Real AdaBoost's leaves changes nothing.
//
// An answer costs 1 to 2 µs, an ensemble of 100 trees 7 kB.
//
// # Invariants
//
//   - An ensemble is a function of the window's rows of weight above 0 and of its
//     kind, to the last bit on every CPU.
//   - But for equal candidates, of which the first input's is taken, the order of
//     rows and of inputs changes roundings alone.
//   - Thresholds are midpoints between numbers of float32: but for an input that
//     lies exactly between two of them, a value and its rounding to float32 get the
//     same answer from every booster that cuts.
//   - The scale of the weights matters to anyboost (a leaf's prior is worth one
//     example), viboost (phantom examples) and bblr (a penalty), not to the others.
package ensemble
