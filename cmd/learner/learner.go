// Command learner turns a topic of labelled events into a model, or one for each partition,
// and saves it in Redis.
package main

import (
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/program"
)

func main() { cli.Main("learner", program.Learner) }
