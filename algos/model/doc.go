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
// prediction and the rate ε at which labels have been wrong. That is done for mail
// and text; for vectors φ and ε are tracked, but every label counts in full,
// because hard streams look like wrong labels (Config.LabelTrust).
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
