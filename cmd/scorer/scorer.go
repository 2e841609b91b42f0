// Command scorer answers score requests over NATS from the newest checkpoint.
package main

import (
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/program"
)

func main() { cli.Main("scorer", program.Scorer) }
