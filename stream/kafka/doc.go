// Package kafka reads and writes Kafka topics with segmentio/kafka-go. A topic of one
// partition is a [Log]. Append returns when all in-sync replicas have acknowledged its
// records. [Consume] reads a topic of several partitions with a consumer group.
//
//	log, err := kafka.NewLog(kafka.Config{Brokers: []string{"localhost:9092"}}, "hamlet.events.default")
//	if err != nil {
//		return err
//	}
//	defer log.Close()
//	if err := log.Append(ctx, stream.Record{Value: event}); err != nil {
//		return err
//	}
//	records, end, err := log.Read(ctx, 0, stream.Limit{}, time.Second)
//
// # Rules
//
//   - Delivery is at least once. A record can be in the log twice, if an acknowledgement
//     was lost.
//   - The records of one Append keep their order, also through retries.
//   - Compaction and transactions leave holes between offsets, which mean nothing.
//   - Who writes a topic that a Log reads must not use transactions: Read returns
//     uncommitted records, and so also those of an aborted one.
//   - A request of a [Log] that reads is not repeated: [stream.ErrAway] says that it may be.
//     All else waits for brokers for as long as its context lives, or for Config.MaxOutage.
//     [Config.Ping] reports a wrong address at once.
//   - A restarting broker may say that a topic does not exist. So [ErrUnknownTopic]
//     needs a topic that was never seen, and a complete cluster that does not know it
//     for two seconds. A topic that was seen is waited for.
package kafka
