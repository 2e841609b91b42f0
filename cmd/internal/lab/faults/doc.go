// Laboratory: a campaign of faults against hamlet on real servers.

// Package faults is `hamlet lab faults`: it breaks what hamlet runs on, under load, and
// checks what is left.
//
//	sender ─HTTP─> ingest ─┐                 ┌─> learner a, b ─┐          ┌─> scorer <─┐
//	                       proxy ─> Kafka ─> proxy             proxy ─> Redis         proxy ─> NATS <─ asker
//
// Kafka, NATS and Redis are real, started by deploy/servers. The services are processes
// of this program: `hamlet lab process learner` is the program cmd/learner. A hamlet up
// with embedded servers is a system of its own, with its own sender and asker.
//
// A campaign is made of rounds. In a round the plan's next faults are injected while
// events are sent and questions asked. Then everything settles: all that the log holds
// is learnt, saved and served. The checks follow.
//
//   - Same bytes: the log is read and applied to a fresh model. The model in Redis has the
//     same bytes and the same position, with the hash of all records.
//   - Lost: every event that ingest acknowledged was learnt exactly once.
//   - Wrong: an answer names a model and its position. The replay's model there has the
//     same SHA-256 and gives the same answer, to the bit. An event in the log says what
//     was sent.
//
// A model serves for some rounds, an era. Then its topic is deleted and created again under
// the running learners. They must refuse it and say so, and the model in Redis must stay
// as it is. The next era has a model of another name, as their error advises.
//
// A fault is survived if no process ended by itself around it and its round settled. A
// process that cannot reach a server at its start ends; the campaign starts it again, as
// a supervisor would.
//
// # Rules
//
//   - Equal seeds give equal plans. When a fault hits what is not determined.
//   - A byte is flipped only where a checksum covers it: in Kafka's record batches, by
//     their CRC, and in a model's chunks in Redis, by their SHA-256. Nothing covers other
//     requests and replies of Kafka and Redis, nor a message of NATS.
//   - Nothing that a campaign started outlives it: all of it is in the process group of a
//     guard, which kills the group and the servers when the campaign's end of a pipe
//     closes.
package faults
