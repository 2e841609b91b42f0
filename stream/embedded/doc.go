// Package embedded runs the brokers in this process: a Kafka (kfake), a NATS
// server with JetStream (nats-server as a library) and a Redis (miniredis). They
// listen on TCP and speak the real protocols, so that the quick start and the
// tests need nothing but Go and exercise the very clients of production.
//
// Each keeps its data in a directory when one is given, and in memory otherwise.
// They are for one process on one machine: nothing is replicated, nobody is
// authenticated, and they listen on loopback unless told otherwise.
//
// # Durability
//
// With a directory, what was acknowledged survives the death of the process,
// kill −9 included: it is in the kernel's page cache by then. A power failure can
// take the last seconds. [LockDir] keeps a second process out of a directory,
// since the brokers themselves would not notice it.
package embedded
