// Package nats is hamlet's side of NATS: a connection with clear errors ([Connect]), the
// scoring service ([Service]), its client ([Client]), the publisher of alerts ([Alerts]), the
// journal of decisions ([Journal]), the answers that wait to be learnt ([Waiting]) and the mail
// that is kept for review ([Kept]).
//
//	conn, err := nats.Connect(nats.Config{URL: "nats://127.0.0.1:4222"})
//	…
//	client, err := nats.NewClient(conn, "default")
//	verdicts, err := client.Score(ctx, mail, nats.TypeMail, false)
//
// # Scoring
//
// A request carries one message or a batch of them. Its Content-Type header says what:
//
//	message/rfc822     a mail                                 → a stream.Verdict
//	text/plain         a text in UTF-8                        → a stream.Verdict
//	application/json   an event without label and action      → a stream.Verdict
//	application/json   an array of such events                → an array, in order
//
// Three more headers may be there. The first two say where a request comes from:
//
//	Hamlet-Tenant   whose mail it is, as the tenant of an event: at most 256 bytes of
//	                UTF-8. It counts for mails, texts, and events that name no tenant;
//	                an event's own tenant wins. Default: "default".
//	Hamlet-Door     the protocol by which the question came in, for metrics: 1 to 16
//	                of a-z, 0-9 and -. Anything else is answered 400. A question to
//	                hamlet.explain by the door "console" has no line in the journal of
//	                decisions; one to hamlet.score always has one.
//	Hamlet-Words    how many words the explanation of one message may have: at most
//	                400. Default, and in a batch: 20.
//
// [Client.For] and [Client.Words] return a client that sends them. NATS does not check them: whoever may ask
// may ask for every tenant.
//
// The subjects are hamlet.score, hamlet.explain and hamlet.info. hamlet.info takes
// nothing and answers a stream.Info. Models other than the default append a dot and
// their name. Every mail goes through mail.Reduce first, as it does before it is
// learnt.
//
// An error is a reply with an empty body and the headers of NATS' services:
//
//	Nats-Service-Error        what was wrong, in a sentence
//	Nats-Service-Error-Code   400 the request is wrong, 413 it is too large,
//	                          500 an internal error, 503 no model yet or overloaded
//
// # Alerts
//
// An alert is published to JetStream, as a stream.Alert in JSON under
//
//	hamlet.alerts.incident.<model>
//	hamlet.alerts.<kind>.<model>
//
// in the stream HAMLET_ALERTS. The first has every transition of every incident. The second
// has those that name a kind: raised and cleared. Learners create the stream: it keeps 90
// days or 64 MiB, and the oldest go first. The message id is made of subject, incident and
// transition. The server recognises copies for 30 days: a restarted learner may publish an
// alert again. [ReadAlerts] reads the first subject. Delete the stream's messages with a model: otherwise a new model of the same
// name is silent at the event counts of the old one's alerts. A server acknowledges
// before its disk has the message, unless its jetstream section says sync_interval:
// always.
//
// # Journal of decisions
//
// A scorer writes what it answered to the stream HAMLET_DECISIONS, under
//
//	hamlet.decisions.<model>
//
// A message has one or more lines, each a stream.JournalEntry in JSON. The scorer makes the
// stream and gives it its bounds of age and bytes; the oldest go first. A learner writes the
// labels of these messages, under hamlet.decisions.<model>.labels. [ReadJournal] reads
// both, [FollowJournal] as they come.
//
// # Audit
//
// The console writes what its users do to the stream HAMLET_AUDIT, under
//
//	hamlet.audit.<model>
//
// each line a stream.AuditEntry in JSON. An action has a line before it and one with its
// outcome. The stream keeps 400 days or 1 GiB, and refuses to delete single lines. See [Audit].
//
// # Answers that wait
//
// A gateway that learns uncorrected answers keeps each with its message, as an event of
// event.proto, in the stream HAMLET_WAITING under
//
//	hamlet.waiting.<model>
//
// The stream is a work queue: an answer that is taught is deleted. All gateways of a model share
// the consumer assume-<model>. See [Waiting].
//
// # Mail that is kept
//
// A scorer with --keep-mail stores the mail that it scores in the object store hamlet-mail, as
// <model>/<identity>. See [Kept]. No other stream than these two holds mail.
//
// # Invariants
//
//   - The service answers every request that reached it. When it stops it takes no more,
//     answers what it has taken, and flushes the answers.
//   - A micro.Request is not used outside its handler, because micro reads the error that
//     it notes when the handler returns. Answers are published, not responded.
package nats
