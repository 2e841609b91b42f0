// Package embedded runs a NATS server with JetStream in this process, for a machine that has no other.
//
//	server, err := embedded.StartNATS(embedded.NATSOptions{Dir: "data/nats"})
//	if err != nil {
//		return err
//	}
//	defer server.Close()
//	conn, err := nats.Connect(server.URL())
//
// It is for one process on one machine: nothing is replicated. It listens on loopback unless
// configured otherwise. Every user of a machine reaches its loopback: without users in its options the
// server takes anybody. It bounds what clients cost before they log in: files, bytes and time. Clients in this
// process reach it by InProcessConn, without TCP.
package embedded
