// Package kafka reads and writes Kafka topics with segmentio/kafka-go. A
// [Producer] returns when all in-sync replicas have acknowledged its records. A
// [Consumer] reads the partitions that its consumer group assigns to it, each in
// order and from a position that its [Handler] keeps.
//
//	consumer, err := kafka.NewConsumer(kafka.ConsumerConfig{
//		Config: kafka.Config{Brokers: []string{"localhost:9092"}, Log: log},
//		Topic:  "hamlet.events.default",
//		Group:  "learner",
//	})
//	if err != nil {
//		return err
//	}
//	return consumer.Run(ctx, func(ctx context.Context, partition int) (kafka.Handler, error) {
//		return openModel(ctx, partition) // its Handle takes the records
//	})
//
// # Rules
//
//   - Delivery is at least once on both sides. A record can be in the log twice,
//     and a handler can be given it twice. The handler's own position decides
//     what is read. The group's committed offsets serve lag monitors, and handlers that
//     ask for them: [CommittedOffset]. They are of records that Handle has taken.
//   - Records with one key go to one partition, chosen by murmur2 as in Java's
//     clients. The records of one Publish call keep their order in a partition,
//     also through retries.
//   - A handler sees offsets in ascending order. Compaction and transactions leave
//     holes, which mean nothing. A hole made by retention is lost data: [ErrGap].
//   - An offset does not say which log it belongs to. So the record before the
//     handler's position is read first, and the handler compares it with the one
//     it absorbed. A topic that was deleted and created again is [ErrReplaced].
//     While a partition is read, absorbed records are compared again after each
//     new connection and each error, every 5 s, and when the handler asks before it
//     saves. An end or a beginning of the log that moves back is [ErrReplaced] too.
//   - Producers of a topic that a Consumer reads must not use transactions. The
//     Consumer reads uncommitted records, and so also those of an aborted one.
//   - Producer and Consumer wait for brokers for as long as their context lives, or
//     for Config.MaxOutage. [Ping] reports a wrong address at once.
//   - A restarting broker may say that a topic does not exist. So [ErrUnknownTopic]
//     needs a topic that was never seen, and a complete cluster that does not know it
//     for two seconds. A topic that was seen is waited for.
package kafka
