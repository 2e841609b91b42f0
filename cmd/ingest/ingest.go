// Command ingest writes labelled events to Kafka: from files, and over HTTP.
package main

import (
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/program/ingest"
)

func main() { cli.Main("ingest", ingest.Run) }
