// Package kafka carries records to and from Kafka on segmentio/kafka-go: a
// [Producer] that has acknowledged what it returns from, and a [Consumer] that
// reads each partition in order from a position that its owner keeps.
//
// # Delivery
//
// Both ends are at least once. A record can appear twice in the log, when a
// broker stored it but its acknowledgement was lost, and can be read twice,
// when a handler's state was not saved before the partition moved. The owner of
// the state makes it exactly once: the state's own position wins over the
// group's offsets, which are written as advice for lag monitors only.
//
// An offset says nothing about which log it belongs to. At the start of an
// assignment the record before the position is fetched, and the state's owner says
// whether it is the one that it has absorbed: a topic that was deleted and created
// anew is [ErrReplaced], also when it has grown beyond the position.
//
// # Order
//
// Records with one key go to one partition, chosen by murmur2 as Java's clients
// choose it. A producer has one request per partition in flight and retries it
// before it sends what came later, so the records of one Publish call never
// overtake one another. A handler sees its partition's records by ascending
// offset; compaction and transactions leave gaps in the offsets, which mean
// nothing, retention leaves gaps too, which are lost data and [ErrGap].
//
// Who writes to a topic that a Consumer reads must not use transactions: records
// are read uncommitted, so those of an aborted one would be handed over as well.
//
// # Broker restarts
//
// Producer and Consumer wait for a broker as long as their context lives, with
// pauses of at most three quarters of a second and a line in the log now and then. [Ping] is for the moment of starting, when a
// wrong address should be an error and not a wait.
package kafka
