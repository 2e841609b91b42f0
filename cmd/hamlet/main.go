// Command hamlet is the whole classifier in one binary. Up runs it, eval measures it
// on labelled data, score asks a running one.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	_ "hamlet/cmd/hamlet/internal/help"
	_ "hamlet/cmd/hamlet/internal/release"
	"hamlet/cmd/internal/door/learn"
	"hamlet/cmd/internal/offline/pipe"
	"hamlet/cmd/internal/operate/backup"
	"hamlet/cmd/internal/operate/console"
	"hamlet/cmd/internal/operate/doubtful"
	"hamlet/cmd/internal/operate/eventlog"
	"hamlet/cmd/internal/operate/history"
	"hamlet/cmd/internal/operate/incidents"
	"hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/operate/review"
	"hamlet/cmd/internal/operate/score"
	"hamlet/cmd/internal/operate/sources"
	"hamlet/cmd/internal/operate/withdraw"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/tokens"
	"hamlet/cmd/internal/service/advice"
	"hamlet/cmd/internal/service/program"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/service/up"
)

const description = `hamlet: to be or not to be spam, and how sure.

  hamlet up                                 synthetic mail, then scoring
  hamlet up --spam spam.mbox --ham ham.mbox your own mail, then scoring over NATS
  hamlet eval --spam Junk/ --ham INBOX/     how well it would have done
  hamlet score message.eml                  score with the running hamlet

A command's own help has more: hamlet up --help.`

type grammar struct {
	Up       up.Command        `cmd:"" help:"Run ingest, learner and scorer in one process, by default with all they need."`
	Eval     evalCommand       `cmd:"" help:"Replay labelled data: each event is scored first and learnt afterwards."`
	Freeze   freezeCommand     `cmd:"" help:"Make a frozen expert from labelled mail, for --frozen."`
	Score    score.Command     `cmd:"" help:"Ask a scorer about messages."`
	Info     score.InfoCommand `cmd:"" help:"Say which model a scorer answers from."`
	Model    model.Command     `cmd:"" help:"List, show, diff and compare models; pin a version, go back, promote another."`
	Sources  sources.Command   `cmd:"" help:"List who gives labels and how far each is believed; mute a source, or make it an anchor."`
	Alarms   incidents.Command `cmd:"" help:"Show open and past incidents: what was suspected, named, cleared and withdrawn."`
	History  history.Command   `cmd:"" help:"Show what scorers answered, from the journal of decisions."`
	Review   review.Command    `cmd:"" help:"List the messages whose label would teach most; show them, say what they are."`
	Doubtful doubtful.Command  `cmd:"" help:"List the labels that are more likely false than true; confirm them, or turn them around."`
	Learn    learn.Command     `cmd:"" help:"Say what messages are: spam, ham, or to be forgotten."`
	Env      envCommand        `cmd:"" help:"Print how other programs reach a running up."`
	Token    tokens.Command    `cmd:"" help:"Make tokens, which say who may teach over HTTP."`
	Console  console.Command   `cmd:"" help:"The web console: see what the model knows, doubts and is told; steer it."`
	Gateway  gatewayCommand    `cmd:"" help:"Doors for mail servers: milter, spamd's and rspamd's protocols, HTTP."`
	Log      eventlog.Command  `cmd:"" help:"Export a model's log to a file, import it, merge several partitions into one."`
	Backup   backup.Command    `cmd:"" help:"Copy models to a directory, or one to a file."`
	Verify   backup.Verify     `cmd:"" help:"Check that the backups of a directory, or the model of a file, are whole."`
	Restore  backup.Restore    `cmd:"" help:"Put the models of a backup, or that of a file, back."`
	Withdraw withdraw.Command  `cmd:"" help:"Withdraw what a source has taught, and show before what that does."`
	Pipe     pipe.Command      `cmd:"" help:"One model for programs in other languages: JSON Lines in, JSON Lines out."`
	Bench    cli.Gone          `cmd:"" hidden:"" passthrough:"" instead:"hamlet-lab bench, a program of its own, in the package hamlet-lab"`
	Fit      cli.Gone          `cmd:"" hidden:"" passthrough:"" instead:"hamlet-lab fit, a program of its own, in the package hamlet-lab"`
	Lab      cli.Gone          `cmd:"" hidden:"" passthrough:"" instead:"hamlet-lab, a program of its own, in the package of that name"`
	cli.ProgramFlags
}

func main() {
	cli.Main(programOf(os.Args[0]))
}

// programOf returns the program that is meant by the name that this one was started with.
// Packages install the services as links to hamlet, whose code has them anyway.
func programOf(path string) (name string, start func(context.Context, []string, cli.IO) error) {
	switch filepath.Base(path) {
	case "hamlet-ingest":
		return "ingest", program.Ingest
	case "hamlet-learner":
		return "learner", program.Learner
	case "hamlet-scorer":
		return "scorer", program.Scorer
	}
	return "hamlet", run
}

func run(ctx context.Context, args []string, stdio cli.IO) error {
	command, err := settings.Parse("hamlet", description, new(grammar), args, stdio)
	if err != nil {
		return score.UsageStatus(args, err)
	}
	_, rest, _ := strings.Cut(command.Command(), " ")
	command.BindTo(ctx, (*context.Context)(nil))
	return settings.WithoutServers(advice.Add(command.Run(stdio, cli.Subcommand(rest))))
}
