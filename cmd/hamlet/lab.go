//go:build !nolab

package main

import (
	"context"
	"strings"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/ingest"
	"hamlet/cmd/internal/lab/bench"
	"hamlet/cmd/internal/lab/faults"
	"hamlet/cmd/internal/lab/fit"
	"hamlet/cmd/internal/lab/papers"
	"hamlet/cmd/internal/lab/synthetic"
	ingestprogram "hamlet/cmd/internal/program/ingest"
	"hamlet/cmd/internal/program/learner"
	"hamlet/cmd/internal/program/scorer"
	"hamlet/cmd/internal/source"
)

// This file is the product's only door to the laboratory, cmd/internal/lab. A
// build with -tags nolab takes nolab.go in its place: no experiments, no plotting,
// no fonts.

// Examples in the help texts.
const (
	syntheticExample = `
  hamlet up                                 synthetic mail, then scoring`
	labExamples = `
  hamlet bench mail --bogofilter --spam Junk/ --ham INBOX/   compare with bogofilter
  hamlet bench alarms                       compare its alarms with other detectors
  hamlet fit < requests.jsonl               run any algorithm on a few rows
  hamlet lab list                           the sources' tables and figures`
	generateExample = `
  hamlet eval --generate 20000 --new-policy 10000 --alerts alerts.jsonl`
	faultExamples = `Faults that raise alarms (nats sub 'hamlet.alerts.incident.>' shows them):
  hamlet up --bad-feed 10000                  one source gives wrong labels
  hamlet up --flip .3 --flip-from 10000 --flip-kind ham     ham is called spam
  hamlet up --new-campaign 10000 --campaign-share .5        new kinds of spam

`
)

// laboratory holds the commands that only the laboratory has.
type laboratory struct {
	Bench bench.Command `cmd:"" help:"Compare hamlet with other filters and detectors."`
	Fit   fit.Command   `cmd:"" help:"Run any of the algorithms on a few rows: JSON Lines in, JSON Lines out."`
	Lab   struct {
		List   papers.List     `cmd:"" help:"List the experiments: tables, figures and claims of the sources."`
		Run    papers.Run      `cmd:"" name:"run" help:"Compute experiments again and compare them with the printed figures."`
		Data   papers.DataSets `cmd:"" help:"Say which data sets the experiments need, or write the synthetic ones."`
		Faults faults.Command  `cmd:"" help:"Kill, stop and cut off the services and their servers under load, and check that nothing is lost or wrong."`
	} `cmd:"" help:"Compute the sources' tables and figures, or try what hamlet survives."`
}

// run runs the command that kong chose, such as "fit" or "bench mail <source>".
func (l *laboratory) run(ctx context.Context, command string, stdio cli.IO) error {
	verb, rest, _ := strings.Cut(command, " ")
	switch verb {
	case "fit":
		return l.Fit.Run(ctx, stdio.In, stdio.Out, stdio.Err)
	case "lab":
		return l.runLab(ctx, rest, stdio)
	}
	return l.Bench.Run(ctx, rest, stdio)
}

func (l *laboratory) runLab(ctx context.Context, rest string, stdio cli.IO) error {
	verb, _, _ := strings.Cut(rest, " ")
	switch verb {
	case "list":
		return l.Lab.List.Run(ctx, stdio)
	case "run":
		return l.Lab.Run.Run(ctx, stdio)
	case "data":
		return l.Lab.Data.Run(ctx, stdio)
	}
	return l.Lab.Faults.Run(ctx, stdio)
}

// labProcess returns the program that `hamlet lab process PROGRAM …` runs, nil if args
// are not that. A campaign of faults starts its processes with it: an installed hamlet
// has no other binary beside it.
func labProcess(args []string) func(ctx context.Context, args []string, stdio cli.IO) error {
	if len(args) < 3 || args[0] != "lab" || args[1] != "process" {
		return nil
	}
	return map[string]func(context.Context, []string, cli.IO) error{
		"guard": faults.Guard, "ingest": ingestprogram.Run, "learner": learner.Run, "scorer": scorer.Run,
		"up":      inner("up"),
		"gateway": inner("gateway"),
	}[args[2]]
}

// inner returns a command of hamlet as a program.
func inner(command string) func(ctx context.Context, args []string, stdio cli.IO) error {
	return func(ctx context.Context, args []string, stdio cli.IO) error {
		return run(ctx, append([]string{command}, args...), stdio)
	}
}

// noSource is what up says where it streams nothing.
const noSource = "no source: hamlet serves what it has learnt (--demo streams synthetic mail)"

// hasGenerator says whether this build can make synthetic mail.
const hasGenerator = true

// upSources are what up streams.
type upSources struct {
	Sources []string `arg:"" optional:"" name:"source" help:"Labelled files, directories, or - (default synthetic mail)."`
}

// upGenerate says whether up streams synthetic mail, and how much.
type upGenerate struct {
	Demo     bool `help:"Stream it into --data, or to servers that flags name." group:"Synthetic mail"`
	Generate *int `help:"N mails; 0: no end." placeholder:"20000" group:"Synthetic mail"`
}

// evalGenerate says how much synthetic mail eval replays.
type evalGenerate struct {
	Generate int `help:"Replay N synthetic mails and no source." default:"0" placeholder:"N" group:"Synthetic mail"`
}

// generatorFlags are the flags of synthetic mail.
type generatorFlags struct{ synthetic.Flags }

// generator returns a function that makes n synthetic mails, or mail without end
// for n = 0, with flip's labels flipped. The error is about the flags.
func (f *generatorFlags) generator(flip source.FlipConfig) (func(n int) (ingest.Items, error), error) {
	cfg, err := f.Config()
	if err != nil {
		return nil, err
	}
	return func(n int) (ingest.Items, error) { return synthetic.Items(cfg, n, flip) }, nil
}
