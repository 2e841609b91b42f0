// Command hamlet is the whole classifier in one binary. Up runs it, eval measures it
// on labelled data, score asks a running one. Bench compares it with other filters,
// fit runs each algorithm on a handful of rows.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"hamlet/cmd/internal/alarms"
	"hamlet/cmd/internal/backup"
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/console"
	"hamlet/cmd/internal/eventlog"
	"hamlet/cmd/internal/history"
	"hamlet/cmd/internal/pinning"
	"hamlet/cmd/internal/pipe"
	"hamlet/cmd/internal/program/ingest"
	"hamlet/cmd/internal/program/learner"
	"hamlet/cmd/internal/program/scorer"
	"hamlet/cmd/internal/review"
	"hamlet/cmd/internal/score"
	"hamlet/cmd/internal/settings"
	"hamlet/cmd/internal/sources"
	"hamlet/cmd/internal/teach"
	"hamlet/cmd/internal/tokens"
	"hamlet/cmd/internal/withdraw"
)

const description = `hamlet: to be or not to be spam, and how sure.
` + syntheticExample + `
  hamlet up --spam spam.mbox --ham ham.mbox your own mail, then scoring over NATS
  hamlet eval --spam Junk/ --ham INBOX/     how well it would have done
  hamlet score message.eml                  score with the running hamlet` + labExamples + `

A command's own help has more: hamlet up --help.`

type grammar struct {
	Up       upCommand         `cmd:"" help:"Run ingest, learner and scorer in one process, by default with embedded servers."`
	Eval     evalCommand       `cmd:"" help:"Replay labelled data: each event is scored first and learnt afterwards."`
	Freeze   freezeCommand     `cmd:"" help:"Make a frozen expert from labelled mail, for --frozen."`
	Score    score.Command     `cmd:"" help:"Ask a scorer about messages."`
	Info     score.InfoCommand `cmd:"" help:"Say which model a scorer answers from."`
	Model    pinning.Command   `cmd:"" help:"List, show, verify, export and import models; pin a version, go back, unpin."`
	Sources  sources.Command   `cmd:"" help:"List who gives labels and how far each is believed; mute a source, or make it an anchor."`
	Alarms   alarms.Command    `cmd:"" help:"Show open and past incidents: what was suspected, named, cleared and withdrawn."`
	History  history.Command   `cmd:"" help:"Show what scorers answered, from the journal of decisions."`
	Review   review.Command    `cmd:"" help:"List the messages whose label would teach most; show them, say what they are."`
	Learn    teach.Command     `cmd:"" help:"Say what messages are: spam, ham, or to be forgotten."`
	Filter   filterCommand     `cmd:"" help:"Pass a message from stdin to stdout and mark it, for procmail and its kin."`
	Env      envCommand        `cmd:"" help:"Print how other programs reach the embedded servers of a running up."`
	Token    tokens.Command    `cmd:"" help:"Make tokens, which say who may teach over HTTP."`
	Console  console.Command   `cmd:"" help:"The web console: see what the model knows, doubts and is told; steer it."`
	Gateway  gatewayCommand    `cmd:"" help:"Doors for mail servers: milter, spamd's and rspamd's protocols, HTTP."`
	Log      eventlog.Command  `cmd:"" help:"Export a model's log to a file, import it, merge several partitions into one."`
	Backup   backup.Command    `cmd:"" help:"Copy models from Redis to a directory."`
	Verify   backup.Verify     `cmd:"" help:"Check that the backups of a directory are whole."`
	Restore  backup.Restore    `cmd:"" help:"Put the models of a backup into Redis."`
	Withdraw withdraw.Command  `cmd:"" help:"Withdraw what a source has taught, and show before what that does."`
	Pipe     pipe.Command      `cmd:"" help:"One model for programs in other languages: JSON Lines in, JSON Lines out."`
	laboratory
	cli.ProgramFlags
}

func main() {
	name, program := programOf(os.Args[0])
	cli.Main(name, program)
}

// programOf returns the program that is meant by the name that this one was started with.
// Packages install the services as links to hamlet, whose code has them anyway.
func programOf(path string) (name string, program func(context.Context, []string, cli.IO) error) {
	switch filepath.Base(path) {
	case "hamlet-ingest":
		return "ingest", ingest.Run
	case "hamlet-learner":
		return "learner", learner.Run
	case "hamlet-scorer":
		return "scorer", scorer.Run
	}
	return "hamlet", run
}

func run(ctx context.Context, args []string, stdio cli.IO) error {
	if program := labProcess(args); program != nil {
		return program(ctx, args[3:], stdio)
	}
	var g grammar
	command, err := settings.Parse("hamlet", description, &g, args, stdio)
	if err != nil {
		return score.UsageStatus(args, err)
	}
	verb, rest, _ := strings.Cut(command.Command(), " ")
	switch verb {
	case "up":
		return g.Up.run(ctx, stdio)
	case "eval":
		return g.Eval.run(ctx, stdio)
	case "freeze":
		return g.Freeze.run(ctx, stdio)
	case "learn":
		return g.Learn.Run(ctx, stdio.In, stdio.Out, stdio.Err)
	case "filter":
		return g.Filter.run(stdio)
	case "alarms":
		return g.Alarms.Run(ctx, stdio.Out, stdio.Err)
	case "history":
		return g.History.Run(ctx, stdio.In, stdio.Out, stdio.Err)
	case "console":
		return g.Console.Run(ctx, rest, stdio)
	case "review":
		return g.Review.Run(ctx, stdio.Out, stdio.Err)
	case "gateway":
		return g.Gateway.run(ctx, stdio)
	case "token":
		return g.Token.New.Run(stdio.Out, stdio.Err)
	case "info":
		return g.Info.Run(ctx, stdio.Out, stdio.Err)
	case "sources":
		return g.Sources.Run(ctx, rest, stdio.Out, stdio.Err)
	case "model":
		return g.Model.Run(ctx, rest, stdio.Out, stdio.Err)
	case "backup":
		return g.Backup.Run(ctx, stdio)
	case "verify":
		return g.Verify.Run(ctx, stdio)
	case "restore":
		return g.Restore.Run(ctx, stdio)
	case "log":
		return g.Log.Run(ctx, rest, stdio.Out, stdio.Err)
	case "withdraw":
		return g.Withdraw.Run(ctx, stdio)
	case "pipe":
		return g.Pipe.Run(ctx, stdio.In, stdio.Out, stdio.Err)
	case "env":
		return g.Env.run(stdio)
	case "bench", "fit", "lab":
		return g.laboratory.run(ctx, command.Command(), stdio)
	default:
		return g.Score.Run(ctx, stdio.In, stdio.Out, stdio.Err)
	}
}
