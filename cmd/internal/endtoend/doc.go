// Package endtoend tests the commands together, as processes, from a labelled message
// to a score. The brokers are embedded, or the real ones that HAMLET_KAFKA, HAMLET_NATS
// and HAMLET_REDIS name. Where HAMLET_PASSWORDS names the file of users that
// `deploy/servers start --acl` makes, each command has the rights of its service only.
package endtoend
