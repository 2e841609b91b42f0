// Package nats is hamlet's side of NATS: a connection with clear errors ([Connect]), the
// scoring service ([Service]), its client ([Client]), the publisher of alerts ([Alerts]), the
// journal of decisions ([Journal]), the answers that wait to be learnt ([Waiting]) and the mail
// that is kept for review ([MailArchive]).
//
//	conn, err := nats.Connect(nats.Config{URL: "nats://127.0.0.1:4222"})
//	…
//	client, err := nats.NewClient(conn, "default")
//	verdicts, err := client.Ask(ctx, questions.Question{Body: mail, ContentType: questions.Mail})
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
// Four more headers may be there. The first two say where a request comes from:
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
//	traceparent     W3C Trace Context: log lines about the request name the trace. It is
//	                passed over if it is malformed.
//
// [Client.Ask] sends what a questions.Question says. NATS does not check them: whoever may ask
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
// # Streams
//
// What is kept is in JetStream. The names of subjects end with the model's:
//
//	HAMLET_ALERTS      hamlet.alerts.incident.<model>    every transition of every incident
//	                   hamlet.alerts.<kind>.<model>      those that name a kind
//	HAMLET_DECISIONS   hamlet.decisions.<model>          what scorers answered
//	                   hamlet.decisions.<model>.labels   the labels of these messages
//	HAMLET_AUDIT       hamlet.audit.<model>              what users of the console did
//	HAMLET_WAITING     hamlet.waiting.<model>            answers that wait to be learnt
//	hamlet-mail        <model>/<identity>                kept mail, in an object store
//
// [Alerts], [Journal], [Audit], [Waiting] and [MailArchive] say what each holds and for how long. The
// last two hold mail, and no other does.
//
// # Invariants
//
//   - The service answers every request that reached it. When it stops it takes no more,
//     answers what it has taken, and flushes the answers.
//   - A micro.Request is not used outside its handler, because micro reads the error that
//     it notes when the handler returns. Answers are published, not responded.
package nats
