// Package model is the model of one partition: the state machine that turns a
// log of labelled bodies into probabilities of spam.
//
//	message ─┬─> header words, text 5-grams, text words, opening 4-grams ─┐ log-odds
//	         └─> eight facts ─────────────────────────────────────────────┴─> head ─> p, interval, why
//
//	vector ──┬─> dense names ─> sign·ln(1+|v|) ─> running standardisation ─┐
//	         └─> other names ─> AdaGrad, naive Bayes; ln(1+their count) ───┴─> head ─> p, interval, why
//
// The experts (package text) see much and know no doubt; a head (package blr,
// R-VGA sites) sees few numbers and knows how sure it is. Mail and text share one
// half of the model, vectors have the other; a half comes into being with its
// first event, the tables for hashed names with the first hashed name.
//
// [Model.Apply] predicts an event, then learns it. What is learnt is weighted by
// the label's trust: the probability φ that the label is true, by the head's own
// prediction and the rate ε at which labels have been wrong, those of its source in
// the first place (Config.TrustBy; sources.go has the measurements). That is done
// for mail and text; for vectors φ and ε are tracked, but every label counts in
// full, because hard streams look like wrong labels (Config.LabelTrust).
//
// # Which head
//
// Log loss in nats and 1-ROCA% of hamlet eval, November 2026: spambase is the
// mean of --shuffle 1 to 5, SpamAssassin in time order (--index), spam-drift in
// its published order; for instance
//
//	hamlet eval --shuffle 1 --vector-site jj --vector-refresh 500 spambase.data
//
//	site        half-life  refresh   spambase       SpamAssassin    spam-drift
//	rvga               0        0    .1894  2.32    .0219  .0459    .0318  .126
//	rvga               0      500    .1878  2.29    .0218  .0452    .0319  .125
//	rvga            2000        0    .1897  2.33    .0214  .0460    .0314  .123
//	rvga            2000      500    .1886  2.31    .0214  .0454    .0315  .122
//	rvga             500        0    .1962  2.46                    .0314  .122
//	jj                 0        0    .2040  2.51    .0218  .0443    .0420  .156
//	jj                 0      500    .1953  2.39    .0221  .0438    .0344  .130
//	jj              2000        0    .2026  2.47    .0217  .0442    .0390  .145
//	jj              2000      500    .1949  2.37    .0218  .0432    .0334  .127
//	jj               500        0    .2022  2.44                    .0345  .128
//	exact-rvga         0        0    .1910  2.34    .0217  .0453    .0322  .125
//
// So both heads take the R-VGA site, for ever and without sweeps: what a sweep
// over the window gains is under a hundredth of the log loss, and it triples the
// cost of a vector's event. JJ needs the sweeps most, because its early ξ are too
// small. On mail nothing here differs by more than some single messages.
//
// # Withdrawals
//
// The sites of the last [SiteWindow] events of each kind of body are kept, and
// such an event can be unlearnt, or relearnt with another label: the head's site
// is subtracted as it stands, and so is what naive Bayes counted. The AdaGrad
// experts keep a trace of it, the running standardisation too; the [Receipt] says
// what went.
//
// # Invariants
//
//   - A model is a pure function of its configuration, its numerics and the events
//     applied, in order. Time, batches, predictions, saving and restoring have no
//     part in it; [Model.AppendBinary] of equal models gives equal bytes.
//   - The clock is the event count. Copies within the duplicate window and refused
//     events do not tick it and change nothing.
//   - Nothing here takes its exponentials and logarithms from package math, fuses a
//     product into a sum, or ranges over a map.
//
// A mail costs some tens of microseconds, most of it random access to tables; a
// vector of 57 dense numbers costs O(57²).
package model
