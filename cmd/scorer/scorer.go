// Command scorer answers score requests over NATS from the newest checkpoint.
package main

import (
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/program/scorer"
)

func main() { cli.Main("scorer", scorer.Run) }
