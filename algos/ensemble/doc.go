// Package ensemble builds ensembles from a window of the stream. All boosters of
// hamlet, and BBLR, have the same interface here: a model builds, saves and restores
// each of them alike.
//
// # From a window to an ensemble
//
// A [Window] is the last n events: D inputs each in float32, labels ±1, weights ω.
// A model takes the label trust φ for ω, so that a doubtful label counts little.
// [Build] leaves out the rows of weight 0 and cuts each input into at most 64
// quantile bins (32 for logit-trees). It trains T = min(Rounds, n/10) rounds:
//
//	logit-trees    the logistic cost over trees by Newton steps: leaves G/(H+1), clipped at ±2, × .3;
//	               of depth 2, 3 from 500 rows on, 4 from 2,000 on
//	realadaboost   trees of depth 2 by Σ√(W⁺W⁻), leaves ½ ln((W⁺+s)/(W⁻+s)), × .3
//	poeboost.ds    a product of experts, each a stump, with Qᵢ and the minimising P_e
//	poeboost.cs    a product of logistic regressions on one input; T ≤ 50, rows pooled by bin
//	adaboost       stumps
//	bhboost        profiles over 16 quantile bins of their own, × .3
//	viboost        stumps, 5 passes a round, τ = 1
//	bblr           BBLR2 on standardised inputs, linear, at γ = 2 alone (bblr.Rebuild)
//
// An [Ensemble] is a function from D inputs to log-odds:
//
//	w := &ensemble.Window{Dim: 2,
//		Inputs:  []float32{0, 1, 5, 2, 1, 1, 6, 0}, // four rows
//		Labels:  []float64{-1, 1, -1, 1},
//		Weights: []float64{1, 1, 1, 0.5},
//	}
//	r := ensemble.Build(ctx, []ensemble.Kind{ensemble.LogitTrees}, w)[0]
//	if r.Err != nil {
//		return r.Err // ErrNoRows, ErrOneClass, ErrConstant, ErrNoEdge, …
//	}
//	z := r.Ensemble.LogOdds([]float64{4, 1})
//
// The scale of the log-odds differs by kind (VIBoost's are half the true ones), so a
// stacker must weight them. Ask an ensemble only about events that its window did not hold.
//
// A new booster is one entry of the table in kinds.go. MEASURED.md says what each
// kind gains and costs.
//
// # Invariants
//
//   - An ensemble is a function of its kind and of the window's rows of weight above
//     0, to the last bit on every CPU.
//   - The order of rows and of inputs changes only rounding errors. Of equal candidates
//     the first input's is taken.
//   - Thresholds are midpoints between numbers of float32. A value and its rounding to
//     float32 get the same answer, except a value exactly between two of them.
//   - The scale of the weights matters to logit-trees (a leaf's prior is worth
//     one example), viboost (phantom examples) and bblr (a penalty). It does not matter to
//     the others.
package ensemble
