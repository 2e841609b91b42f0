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
//	ensemble           any of these boosters rebuilt from a window of the stream
//
// What the others use:
//
//	vlog               the v-Log distribution
//	eval               progressive validation: log loss, 1-ROCA%, calibration
//	internal/logistic  exp, log and σ with the same bits on every CPU
//	internal/normal    the normal distribution with the same bits on every CPU
//	internal/triangle  symmetric matrices: products, updates and inverse, with the same bits
//	internal/codec     the bytes of models: fields with bounds and one sticky error
//	internal/task      slow work that starts at one event count and ends at a later one
//	algotest           the laws that every classifier obeys, as a test suite
//	algotest/dataset   the public data sets, for tests
//
// An event goes through feature to the experts of text. Their log-odds and the dense
// facts are the input of a head of blr, which answers with a mean and a variance. The
// packages here import nothing of the module but one another.
//
// The packages below lab are the laboratory's: only hamlet-lab and tests reach them. In bblr,
// boost, poeboost, viboost and vlog some files share unexported code with the product's; such
// a file begins with "Laboratory:".
//
//	lab/vblr           blr's paper: the fit of all events at once, predictive densities
//	lab/svm            support vector machines, a reference for bblr
//	lab/crf            labels of neighbours, decided together
//	lab/game           zero-sum games, boosting among them
//	lab/information    entropies and divergences
//	lab/detect         detectors of change from the literature, to compare drift's alarms with
//	lab/mcnemar        McNemar's test of two classifiers on the same examples
//
// # Words
//
// Each has one meaning in the whole tree.
//
//	event        what the log has one record of: a body, and often a label or an action
//	body         what is judged: a mail, a text or a vector of named numbers
//	label        spam or ham, as a source says it
//	source       who gave a label: a person, a program, a feed
//	tenant       whose mail it is; tenants share a model
//	key          what tells an event from others: its id, source and tenant
//	action       what an event does: learn, withdraw, correct, assume
//	log          the topic or the files that a model is a function of
//	position     which record of a log comes next, and of which log it is
//	model        everything that was learnt from a log under a configuration
//	numerics     the version of the arithmetic: with the same one the bytes are the same
//	head         the Bayesian logistic regression that answers
//	expert       a cheap learner over hashed words, whose log-odds the head reads
//	ensemble     trees or stumps rebuilt from a window of events
//	site         what an event did to a head, kept so that it can be withdrawn
//	trust        the probability that a source's label is true
//	standing     an operator's word about a source: ordinary, anchor or muted
//	alarm        a statistic of the stream with a threshold
//	incident     a change that alarms found, from suspected to cleared
//	alert        one transition of an incident, as it is published
//	receipt      a record that says what a withdrawal or a correction did
//	dead letter  a record that says why an event was not learnt
//	checkpoint   a model with its position, as a store has it
//	version      a checkpoint that is kept, with a number
//	head version the version that learners go on from
//	pin          an operator's choice of the version that answers
//	promotion    an operator's choice of a model that answers in the place of another
//	lease        the right to save a model, for a second, in the store
//	epoch        the number of a lease; a save with an older one is refused
//	active       of the learner that saves and publishes; the others stand by
//	shadow       a learner beside the log of another model, which it must not change
//	question     what a scorer is asked; a verdict is the answer
//	verdict      a probability with its interval, and what is decided: spam, ham or unsure
//	door         a protocol by which questions and labels come in
//	journal      the decisions that scorers made
//	kept mail    messages that were scored, for review
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
