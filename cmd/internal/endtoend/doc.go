// Package endtoend holds the tests of the whole way: the commands, built and run
// as processes, between a labelled message and a score. They run against brokers
// in process or, where HAMLET_KAFKA, HAMLET_NATS and HAMLET_REDIS name them,
// against real ones; the tests are the same.
package endtoend
