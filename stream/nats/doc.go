// Package nats is hamlet's side of NATS: a connection with clear errors
// ([Connect]), the scoring service ([Service]), its client ([Client]) and the
// publisher of alerts ([Alerts]).
//
// A request carries one message, or a batch of them, and says in its
// Content-Type header what it is:
//
//	message/rfc822     a mail                                 → a stream.Verdict
//	text/plain         a text in UTF-8                        → a stream.Verdict
//	application/json   an event without label and action      → a stream.Verdict
//	application/json   an array of such events                → an array, in order
//
// on the subjects hamlet.score and hamlet.explain; hamlet.info takes nothing and
// answers a stream.Info. Those are the default model's subjects; any other's
// have the model's name behind a dot. Every mail goes through mail.Reduce
// first, so that what is scored is what would have been learnt.
//
// An error is a reply with the headers of NATS' services,
//
//	Nats-Service-Error        what was wrong, in a sentence
//	Nats-Service-Error-Code   400 what was asked is wrong, 413 too large,
//	                          500 a fault of ours, 503 no model yet or overloaded
//
// and an empty body.
//
// An alert is published to JetStream, as a stream.Alert in JSON under
//
//	hamlet.alerts.<kind>.<model>
//
// in the stream HAMLET_ALERTS, which learners create: kept for 90 days or up to
// 64 MiB, the oldest go first. Its message id is made of model, partition, kind and
// event count, and the server knows a copy for 30 days, so that a learner that
// starts again from its last checkpoint publishes what it finds on the way without
// anybody seeing it twice. For the same reason a model that was thrown away and is
// learnt anew under its old name is heard at event counts that the old one did not
// give an alert at: delete the stream with the model. A server acknowledges before
// its disk has the message, unless its jetstream section says sync_interval: always.
//
// # Invariants
//
// The package answers every request that reached it, with a verdict or with an
// error, also while it stops: first no more is taken, then what was taken is
// answered, then the answers are flushed.
//
// A micro.Request must not answer for itself outside its handler: it notes an
// error in a field that micro reads when the handler returns. The answers are
// therefore published, not responded.
package nats
