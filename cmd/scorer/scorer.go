// Command scorer answers score requests over NATS from the newest checkpoint.
package main

import (
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/program/scorer"
)

func main() { cli.Main("scorer", scorer.Run) }
