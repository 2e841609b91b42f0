// Package algos is the mathematics of hamlet: pure packages without network, files,
// clock, environment or logger. It holds no code itself; this is the map and the
// notation that all packages share.
//
// # The map
//
// A message becomes inputs, a probability and its interval:
//
//	feature            bytes and named numbers to hashed features and dense facts
//	text               experts over hashed features: AdaGrad, naive Bayes, a byte model
//	blr                Bayesian logistic regression, full covariance by Sherman–Morrison
//	stack              a head, a second head and ensembles, weighted by a stacker
//	model              a partition's model: the state machine that joins the others
//
// What a model remembers and watches:
//
//	dedup              the keys of the last events, to recognise copies
//	sites              the last events as heads absorbed them, to withdraw or refresh
//	trust              the probability that a label is true: flip rates by source, rate of spam
//	drift              what is wrong with a stream: alarms, and incidents that are suspected, then named
//
// Learners of rows in batches:
//
//	boost              weak learners; AdaBoost, Real AdaBoost, BHBoost, AnyBoost
//	viboost            boosting as Bayesian inference with noisy labels; the Gibbs sampler
//	poeboost           boosting as a product of experts
//	bblr               logistic regression on a smooth 0-1 loss
//	svm                linear support vector machines, a reference for bblr
//	crf                labels of neighbours, decided together
//	ensemble           any of these boosters rebuilt from a window of the stream
//
// What the others use:
//
//	vlog               the v-Log distribution
//	game, information  zero-sum games; entropies and divergences
//	eval               progressive validation: log loss, 1-ROCA%, calibration
//	internal/logistic  exp, log and σ with the same bits on every CPU
//	internal/codec     the bytes of models: fields with bounds and one sticky error
//	internal/task      slow work that starts at one event count and ends at a later one
//	algotest           the laws that every classifier obeys, as a test suite
//	algotest/dataset   the public data sets, for tests
//
// An event goes through feature to the experts of text. Their log-odds and the dense
// facts are the input of a head of blr, which answers with a mean and a variance. The
// packages here import nothing of the module but one another.
//
// A file that begins with "Laboratory:" is code that only hamlet fit, hamlet bench and
// tests reach.
//
// # Notation
//
//	x          an input vector of D numbers; x₀ = 1 where there is a constant
//	y          a label: ±1 (+1 is spam); y₊ = (1+y)/2 is 0 or 1
//	β          the unknown weights;  β ~ N(w, V), the belief about them
//	w, V       its mean and covariance;  Λ = V⁻¹ and η = Λw, natural parameters
//	z = βᵀx    the log-odds of y = +1, in nats;  m = wᵀx, a = xᵀVx its moments
//	u = Vx     the direction in which an event moves w
//	σ(z)       1/(1+e⁻ᶻ);  ln σ and its inverse are in internal/logistic
//	h, r       an event's site: ΔΛ = h·xxᵀ, Δw = r·u
//	ξ, λ(ξ)    the point where Jaakkola and Jordan's bound touches σ; tanh(ξ/2)/4ξ
//	s          an expert's log-odds;  s² elsewhere is a variance
//	φ          the probability that a given label is true, the power of its likelihood
//	ε          the flip rate of the labels;  ω the weight of an event for an expert
//	t, N       the event count, a model's only clock; the number of events
//
// Logarithms are natural. "Log-odds" are of y = +1. Moderated log-odds, m/√(1+πa/8), are
// what learns. The probability that is served is E[σ(z)], z ~ N(m, 1.5a) (package model).
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
