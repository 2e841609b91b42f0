// Command ingest writes labelled events to Kafka: from files, and over HTTP.
package main

import (
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/program"
)

func main() { cli.Main("ingest", program.Ingest) }
