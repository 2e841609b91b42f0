// Laboratory: how large an installation must be.

// Package sizing is `hamlet bench day`: a part of a provider's day, run for real, and what it
// says about the whole day.
//
//	labels ─HTTP─> ingest ──> Kafka ──> learner ──> Redis ──> scorer <──NATS── gateway <─HTTP─ questions
//
// The services are processes of this program; the servers are the caller's. Mail is asked
// about as fast as it is answered, and labels are sent in step with it. The processor time of
// each process is divided by what it did. So the figures say what a message costs, and hardly
// depend on what else the machine does.
//
// [Plan] extrapolates from costs to a day. Its doc comment states the model.
package sizing
