// Package ensemble builds boosting ensembles from a window of the stream: all
// boosters of hamlet, and BBLR, behind one door, so that a model can rebuild,
// serve, save and restore any of them alike.
//
// A window is the last n events as rows of D inputs in float32, labels ±1 and
// weights ω (the label trust φ). [Build] cuts quantile bins from it and trains; the
// result is an [Ensemble], log-odds as a function of D inputs, which a stacker
// weighs beside the head's. An ensemble does not know when it was built: that it
// answers only for events which its window did not hold is its owner's to see to.
//
// # Invariants
//
//   - An ensemble is a function of the window's rows of weight above 0 and of its
//     kind, to the last bit on every CPU.
//   - Thresholds are midpoints between numbers of float32: but for an input that
//     lies exactly between two of them, a value and its rounding to float32 get the
//     same answer from every booster that cuts.
package ensemble
