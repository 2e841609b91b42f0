// Package embedded runs the brokers in this process: a Kafka (kfake), a NATS server
// with JetStream (nats-server) and a Redis (miniredis). They listen on TCP and speak
// the real protocols. So the quick start and the tests need nothing but Go, and use
// the same clients as production.
//
//	kafka, err := embedded.StartKafka(embedded.KafkaOptions{Dir: "data/kafka", Topics: []string{"hamlet.events.default"}})
//	if err != nil {
//		return err
//	}
//	defer kafka.Close()
//	brokers := []string{kafka.Addr()}
//
// # Rules
//
//   - They are for one process on one machine: nothing is replicated. They listen on
//     loopback unless configured otherwise. Every user of a machine reaches its
//     loopback: without a password in its options a broker takes anybody.
//   - Each keeps its data in its directory, or in memory if it has none. [LockDir]
//     keeps a second process out of a directory; the brokers would not notice it.
//   - With a directory, what Kafka and NATS acknowledged survives the death of the
//     process, kill −9 included: it is in the kernel's page cache. A power failure can
//     lose the last seconds. [Redis] says what its snapshots can lose.
//   - A server whose directory can no longer be written, as on a full disk,
//     acknowledges nothing more, and its Wait returns. Stop it then.
package embedded
