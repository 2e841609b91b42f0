// Package stream is hamlet's wire contract: what an [Event] is, how it is
// written on Kafka, what a scorer answers ([Verdict]), and what the learner says
// when it refuses an event ([DeadLetter]), withdraws one ([Receipt]) or holds the
// stream itself suspicious ([Alert]). It knows encodings and no client library;
// the adapters are in stream/kafka, stream/nats and stream/mail.
//
// An event's way:
//
//	source ─ Event ─ MarshalProto + Headers ─> Kafka ─ Decode ─> Event ─> learner
//	                                                  └ error ─> DeadLetter ─> hamlet.dead-letters
package stream
