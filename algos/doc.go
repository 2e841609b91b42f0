// Package algos is the mathematics of hamlet: pure packages without network, files,
// clock, environment or logger. It holds no code itself; this is the map. GLOSSARY.md
// beside it has the words and the notation that all packages share.
//
// # The map
//
// A message becomes inputs, a probability and its interval:
//
//	feature            bytes and named numbers to hashed features and dense facts
//	text               experts over hashed features: AdaGrad, naive Bayes, a byte model
//	blr                Bayesian logistic regression, full covariance by Sherman–Morrison
//	stack              a head, a second head and ensembles, weighted by a stacker
//	model              the state machine that joins the others
//
// What a model remembers and watches:
//
//	dedup              the keys of the last events, to recognise copies
//	sites              the last events as heads absorbed them, to withdraw or refresh
//	trust              the probability that a label is true: flip rates by source, rate of spam
//	drift              what is wrong with a stream: alarms, and incidents that are suspected, then named
//	promise            judged ham, the threshold that keeps a budget, expected errors
//
// Learners of rows in batches:
//
//	boost              weak learners; AdaBoost, Real AdaBoost, BHBoost, LogitTrees
//	viboost            boosting as Bayesian inference with noisy labels
//	poeboost           boosting as a product of experts
//	bblr               logistic regression on a smooth 0-1 loss
//	ensemble           any of these boosters rebuilt from a window of the stream
//
// What the others use:
//
//	confseq            confidence sequences: means and shares, looked at after each number
//	eval               progressive validation: log loss, 1-ROCA%, calibration
//	internal/logistic  exp, log and σ with the same bits on every CPU
//	internal/normal    the normal distribution with the same bits on every CPU
//	internal/sla       descents and probes on a smooth 0-1 loss, for bblr
//	internal/vi        the updates of a round, for viboost
//	internal/triangle  symmetric matrices: products, updates and inverse, with the same bits
//	internal/cpu       whether the processor has AVX2, for kernels
//	internal/codec     the bytes of models: fields with bounds and one sticky error
//	internal/task      slow work that starts at one event count and ends at a later one
//	algotest           the laws that every classifier obeys, as a test suite
//	algotest/dataset   the public data sets, for tests
//
// An event goes through feature to the experts of text. Their log-odds and the dense
// facts are the input of a head of blr, which answers with a mean and a variance. The
// packages here import nothing of the module but one another.
//
// The packages below lab are the laboratory's: only hamlet-lab and tests reach them.
//
//	lab/vblr           blr's paper: the fit of all events at once, predictive densities
//	lab/bblr           bblr's paper: its variants, kernels, learnt mixtures
//	lab/viboost        viboost's paper: exact modes, the bound, the Gibbs sampler
//	lab/vlog           the v-Log distribution, for lab/viboost
//	lab/poe            poeboost's paper: its formulas, and Real AdaBoost
//	lab/boosting       AnyBoost, margins and their bounds
//	lab/svm            support vector machines, a reference for bblr
//	lab/crf            labels of neighbours, decided together
//	lab/game           zero-sum games, boosting among them
//	lab/information    entropies and divergences
//	lab/detect         detectors of change from the literature, to compare drift's alarms with
//	lab/review         what the label of a body would teach
//	lab/mcnemar        McNemar's test of two classifiers on the same examples
//
// # Same events, same bits
//
// A model is a function of its configuration, its numerics and its events. Code
// that changes one takes exp and log from internal/logistic, writes float64(a*b)
// where a compiler could fuse a product into a sum, sums in one order, ranges
// over no map, asks no clock and no kernel that chooses its instructions by the
// CPU (gonum's assembly stays in tests).
//
// So the bytes are equal on all processors with an int of 64 bits, and the name of
// the numerics has a version and no architecture. .github/CONTRIBUTING.md says what holds
// this together and what would break it.
package algos
