// Package stream is hamlet's wire contract: what an [Event] is and how Kafka carries
// it, what a scorer answers ([Verdict]) and journals ([JournalEntry]), and what a learner publishes when it refuses
// an event ([DeadLetter]), withdraws one ([Receipt]) or an alarm changes ([Alert]). It
// has encodings and no client library; those are in stream/kafka and stream/nats. The
// laws of a publisher of alerts are in package alerttest.
//
//	e := stream.Event{
//		ID: "a1", Source: "abuse-desk", Tenant: "example.org", Label: stream.Spam,
//		Body: stream.Body{Kind: stream.Text, Text: "You won a prize"},
//	}
//	value, headers, err := e.EncodeRecord() // of a Kafka record
//	…
//	e, err = stream.DecodeRecord(headers, value) // err is the reason of a dead letter
package stream
