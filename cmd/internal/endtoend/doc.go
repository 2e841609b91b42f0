// Package endtoend tests the commands together, as processes, from a labelled message
// to a score. The brokers are embedded, or the real ones that HAMLET_KAFKA, HAMLET_NATS
// and HAMLET_REDIS name.
package endtoend
