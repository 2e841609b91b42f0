// Package model is the model of one partition: the state machine that turns a log of
// labelled bodies into probabilities of spam.
//
//	message ─┬─> ten experts ──────┬─> × (1 + 2e^(−events/30)) ───────┐ log-odds
//	         │                     └─> × HTML, × length of text ──────┤
//	         └─> eight facts ─────────────────────────────────────────┴─> head ─> p, interval, why
//
//	vector ──┬─> dense names ─> sign·ln(1+|v|) ─> running standardisation ─┐
//	         └─> other names ─> three experts; ln(1+their count) ──────────┴─> head ─> p, interval, why
//
// The experts (package text) learn from many features, without an uncertainty. A head
// (package blr) has few inputs and computes its uncertainty. Mail and text have one
// sub-model, vectors another; its first event creates it. A stack (package stack) may
// combine the head, a second head that forgets, and ensembles rebuilt from a window.
// Personal experts and a frozen expert are further inputs (Config.PersonalExperts,
// [Config.WithFrozen]). Alarms (package drift) watch each head.
//
// p is the mean E[σ(z)] and the interval is that of one belief, z ~ N(m, 1.5·a), with m and
// a the moments of the head's or the stack's answer ([Prediction], [blr.Predictive]).
//
// # Use
//
//	m, err := model.New(model.Config{})
//	effect, err := m.Apply(&model.Example{ID: id, Source: source, Spam: true, Body: body})
//	p, why, err := m.NewPredictor().Explain(&body)
//	a, err := m.NewPredictor().Attribute(&body) // a.Words: what each word adds
//	lo, hi := p.Interval(model.Z90)
//	b, err := m.AppendBinary(nil) // a checkpoint
//	m, err = model.Restore(b)     // continues bit for bit
//
// # An event
//
// Model.Apply handles an event in this order:
//
//  1. A copy of an event in the duplicate window changes nothing (package dedup).
//  2. A relearn or unlearn withdraws the event Of (package sites) from the head, the stack
//     and the experts that count. Receipt lists what cannot be withdrawn.
//  3. The vectorizer turns the body into the head's inputs (inputs.go lists them).
//  4. The head predicts, or the stack once every ensemble is built and its gate, if it has
//     one, is open.
//  5. Package trust computes the label's trust φ from the flip rates and z̄: the head's
//     moderated answer, and a quarter of the mean of the full experts' opinions for mail and
//     text. It weighs the label's source by its agreement with the others (Config.Standing,
//     [Model.SetRole]). Heads and stacker learn the label with one weight, experts with another.
//  6. Ensembles that are due are rebuilt or take effect. The alarms observe the event.
//  7. A ham whose label was asked for is counted by its log-odds, for promises ([Model.Promise]).
//
// On vectors every label counts in full unless there are dense names and ensembles,
// because hard streams look like wrong labels (Config.LabelTrust).
//
// A rebuild takes some 20 ms and an alarm's SNR 2 ms. A Runner computes them in the
// background; a fixed later event waits for the result. After Restore, pending work is
// computed again from the windows in the bytes (Model.SetRunner).
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
//   - The clock is the event count. Copies within the duplicate window and refused events
//     change nothing and are not counted.
//   - No code here uses math.Exp or math.Log, fuses a product into a sum, or depends on
//     map order.
//
// A mail costs some 0.2 ms, a third of that with the lean experts, most of it random access
// to tables. A vector of 57 dense numbers costs O(57²). MEASURED.md has the measurements
// behind the defaults.
package model
