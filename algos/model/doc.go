// Package model is the model of one partition: the state machine that turns a log of
// labelled bodies into probabilities of spam.
//
//	message ─┬─> header words, text 5-grams, text words, opening 4-grams ─┐ log-odds
//	         └─> eight facts ─────────────────────────────────────────────┴─> head ─> p, interval, why
//
//	vector ──┬─> dense names ─> sign·ln(1+|v|) ─> running standardisation ─┐
//	         └─> other names ─> AdaGrad, naive Bayes; ln(1+their count) ───┴─> head ─> p, interval, why
//
// The experts (package text) see much and do not know how sure they are. A head (package
// blr) sees few numbers and knows. Mail and text have one sub-model, vectors have
// another; a sub-model is made for its first event. A stack (package stack) may weight
// the head, a second head that forgets, and ensembles rebuilt from a window. Three
// alarms (package drift) watch each head.
//
// # Use
//
//	m, err := model.New(model.Config{})
//	effect, err := m.Apply(&model.Example{ID: id, Tenant: tenant, Source: source, Spam: true, Body: body})
//	p, why, err := m.NewPredictor().Explain(&body)
//	lo, hi := p.Interval(1.645)
//	b, err := m.AppendBinary(nil) // a checkpoint
//	m, err = model.Restore(b)     // goes on bit for bit
//
// # An event
//
// Model.Apply takes an event, in this order:
//
//  1. A copy of an event of the duplicate window changes nothing (package dedup).
//  2. A relearn or unlearn withdraws the event that it is about (package sites) from
//     head, stack and the experts that count. The Receipt says what leaves a trace.
//  3. The reader reads the body into the head's inputs (inputs.go lists them).
//  4. The head, or the stack once every ensemble is there, predicts.
//  5. The label gets its trust φ by that prediction and by its source's flip rate
//     (package trust), and head, experts and stack learn it with that weight.
//  6. Ensembles that are due take effect or are rebuilt. The alarms see the event.
//
// On vectors every label counts in full unless there are dense names and ensembles,
// because hard streams look like wrong labels (Config.LabelTrust).
//
// A rebuild takes some 20 ms and an alarm's SNR 2 ms. A Runner computes them in the
// background, from one event count to a later one, which waits for it. What is pending
// is computed again from the windows in the bytes (Model.SetRunner).
//
// # Adding to it
//
//   - a text expert: one text.Entry in package text
//   - a booster: one registration in package ensemble
//   - an input of a head: one group in inputs.go
//   - a field of the configuration: one field of Config, with its tags
//
// # Invariants
//
//   - A model is a pure function of its configuration, its numerics and the events
//     applied, in order. Equal models have equal bytes.
//   - The clock is the event count. Copies within the duplicate window and refused
//     events do not tick it and change nothing.
//   - Nothing here takes its exponentials and logarithms from package math,
//     fuses a product into a sum, or ranges over a map.
//
// A mail costs some tens of microseconds, most of it random access to tables. A vector
// of 57 dense numbers costs O(57²). MEASURED.md has the measurements behind the defaults.
package model
