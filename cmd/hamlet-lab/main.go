// Command hamlet-lab is the laboratory: it runs each algorithm on a handful of rows, computes the
// sources' tables and figures again, compares hamlet with other filters, and breaks what hamlet runs
// on, in the world and in virtual time. No installed hamlet needs it.
package main

import (
	"context"

	"hamlet/cmd/internal/lab/bench"
	"hamlet/cmd/internal/lab/faults"
	"hamlet/cmd/internal/lab/fit"
	"hamlet/cmd/internal/lab/papers"
	"hamlet/cmd/internal/lab/simulate/seeds"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
)

const description = `hamlet-lab: the laboratory of hamlet.

  hamlet-lab bench mail --bogofilter --spam Junk/ --ham INBOX/
                                  compare with bogofilter on your own mail
  hamlet-lab bench alarms         compare its alarms with other detectors
  hamlet-lab fit < requests.jsonl run any algorithm on a few rows
  hamlet-lab list                 the sources' tables and figures
  hamlet-lab run viboost/figure-8 compute one of them again
  hamlet-lab faults               kill, stop and cut off what hamlet runs on
  hamlet-lab simulate             break whole hamlets in virtual time

A command's own help has more: hamlet-lab bench --help.`

type grammar struct {
	Bench    bench.Command   `cmd:"" help:"Compare hamlet with other filters and detectors."`
	Fit      fit.Command     `cmd:"" help:"Run any of the algorithms on a few rows: JSON Lines in, JSON Lines out."`
	List     papers.List     `cmd:"" help:"List the experiments: tables, figures and claims of the sources."`
	Run      papers.Run      `cmd:"" name:"run" help:"Compute experiments again and compare them with the printed figures."`
	Data     papers.DataSets `cmd:"" help:"Say which data sets the experiments need, or write the synthetic ones."`
	Faults   faults.Command  `cmd:"" help:"Kill, stop and cut off the services and their servers under load, and check that nothing is lost or wrong."`
	Simulate seeds.Command   `cmd:"" help:"Run whole hamlets in virtual time that break as seeds say, and check that all holds once they are healed."`
	cli.ProgramFlags
}

func main() { cli.Main("hamlet-lab", run) }

func run(ctx context.Context, args []string, stdio cli.IO) error {
	if len(args) > 0 && args[0] == faults.GuardName {
		return faults.Guard(ctx, args[1:], stdio)
	}
	return settings.Run(ctx, "hamlet-lab", description, new(grammar), args, stdio)
}
