// Package endtoend tests the commands together, as processes, from a labelled message
// to a score. The brokers are embedded, or the real ones that HAMLET_KAFKA, HAMLET_NATS
// and HAMLET_REDIS name. Where HAMLET_PASSWORDS names the file of users that
// `deploy/servers start --acl` makes, each command has the rights of its service only.
//
// The tests of one model of several learners make faults: kill −9, processes that are
// stopped and woken, learners that come and go. Beside real servers they make some of
// them, with HAMLET_NIGHTLY=1 about ten times as many, and HAMLET_ROUNDS=N says how many.
// Plain go test skips them, but for TestTakeOver: that disturbs one learner in each of six
// ways, and HAMLET_TAKEOVER_ROUNDS=N says how often. With HAMLET_MACHINE=N the power of one machine
// fails N times in each way, and what it writes and holds is measured.
package endtoend
