// Command learner turns a topic of labelled events into models, one a partition,
// and saves them in Redis.
package main

import (
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/program/learner"
)

func main() { cli.Main("learner", learner.Run) }
