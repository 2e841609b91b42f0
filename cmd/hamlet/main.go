// Command hamlet is the whole classifier in one binary: up runs it, eval
// measures it on labelled data, score asks a running one, bench sets it beside
// other filters, fit shows what each algorithm does on a handful of rows.
package main

import (
	"context"
	"strings"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/lab/bench"
	"hamlet/cmd/internal/lab/fit"
	"hamlet/cmd/internal/score"
	"hamlet/cmd/internal/settings"
)

const description = `hamlet: to be or not to be spam, and how sure.

  hamlet up                                 a demonstration on synthetic mail
  hamlet up --spam spam.mbox --ham ham.mbox your own mail, then scoring over NATS
  hamlet eval --spam Junk/ --ham INBOX/     how well it would have done
  hamlet score message.eml                  ask the running one
  hamlet bench mail --bogofilter --spam Junk/ --ham INBOX/   beside another filter
  hamlet bench alarms                       its alarms beside other detectors of change
  hamlet fit < requests.jsonl               every algorithm behind one door

A command's own help has more: hamlet up --help.`

type grammar struct {
	Up    upCommand     `cmd:"" help:"Run ingest, learner and scorer in one process, on brokers of its own or on real ones."`
	Eval  evalCommand   `cmd:"" help:"Replay labelled data: each event is scored first and learnt afterwards."`
	Score score.Command `cmd:"" help:"Ask a scorer about messages."`
	Bench bench.Command `cmd:"" help:"Measurements beside peers."`
	Fit   fit.Command   `cmd:"" help:"Run any of the algorithms on a handful of rows: JSON Lines in, JSON Lines out."`
	cli.ConfigFlag
}

func main() { cli.Main("hamlet", run) }

func run(ctx context.Context, args []string, stdio cli.IO) error {
	var g grammar
	command, err := cli.Parse(cli.Program{
		Name: "hamlet", Description: description, Grammar: &g, Shared: &settings.Shared{},
	}, args, stdio)
	if err != nil {
		return score.UsageStatus(args, err)
	}
	verb, rest, _ := strings.Cut(command.Command(), " ")
	switch verb {
	case "up":
		return g.Up.run(ctx, stdio)
	case "eval":
		return g.Eval.run(ctx, stdio)
	case "bench":
		return g.Bench.Run(ctx, rest, stdio)
	case "fit":
		return g.Fit.Run(ctx, stdio.In, stdio.Out, stdio.Err)
	default:
		return g.Score.Run(ctx, stdio.In, stdio.Out, stdio.Err)
	}
}
