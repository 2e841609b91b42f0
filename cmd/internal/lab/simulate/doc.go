// Package simulate runs a whole hamlet in one process and in virtual time: ingests, learners,
// scorers, clients that label and ask, and operators. The loops are those of the services, and
// what operators do are the functions of their commands. The log, the store, the alerts and the
// questions are simulated, and break as a seed says.
//
//	go test ./cmd/internal/lab/simulate -run Seeds -seeds 1000
//	go test ./cmd/internal/lab/simulate -run Seeds -from 4711 -seeds 1 -v
//
// A seed draws a [Plan]: how often a call of a port is slow, fails, or is done without an answer,
// and incidents such as the end of a process. [World.Run] runs it for a virtual minute, heals
// everything, waits until all is quiet, and returns what does not hold: see check.go. A plan that
// fails is made smaller by [Minimise] while it fails.
//
// # Clocks
//
// A node's wall clock shows in what it writes: the times of records, and when a model was saved. There it is wrong
// by what an incident says, and whoever reads it has another clock. Go's deadlines and pauses do not depend on the
// wall clock, and are not wrong here either.
//
// # Repeating
//
// Time is synctest's. What a call draws depends on the seed, the node, the port, the method and
// how many such calls the node has made, and not on what other nodes do meanwhile. Go does not
// say which of two goroutines that are ready at one instant runs first. Each call takes a time of
// its own, so few are.
package simulate
