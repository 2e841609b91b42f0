//go:build nolab

package main

import (
	"context"
	"errors"
	"strings"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/ingest"
	"hamlet/cmd/internal/source"
)

// This file takes the place of lab.go in a build without the laboratory.

const syntheticExample, labExamples, generateExample, faultExamples = "", "", "", ""

var errNoGenerator = errors.New("--demo, --generate: this hamlet was built without its laboratory (-tags nolab): it makes no synthetic mail")

// laboratory keeps the names of the laboratory's commands, to say that they are
// not in this build.
type laboratory struct {
	Bench labCommand `cmd:"" hidden:"" passthrough:"" help:"Not in this build: it has no laboratory."`
	Fit   labCommand `cmd:"" hidden:"" passthrough:"" help:"Not in this build: it has no laboratory."`
	Lab   labCommand `cmd:"" hidden:"" passthrough:"" help:"Not in this build: it has no laboratory."`
}

type labCommand struct {
	Args []string `arg:"" optional:""`
}

func (*laboratory) run(_ context.Context, command string, _ cli.IO) error {
	verb, _, _ := strings.Cut(command, " ")
	return cli.Usagef("this hamlet was built without its laboratory (-tags nolab): there is no hamlet %s", verb)
}

// labProcess returns nil: a build without the laboratory runs no campaign.
func labProcess([]string) func(context.Context, []string, cli.IO) error { return nil }

// noSource is what up says where it streams nothing.
const noSource = "no source: hamlet serves what it has learnt (this build has no laboratory, which makes synthetic mail)"

// hasGenerator says whether this build can make synthetic mail.
const hasGenerator = false

type upSources struct {
	Sources []string `arg:"" optional:"" name:"source" help:"Labelled files, directories, or - for standard input."`
}

// upGenerate and evalGenerate keep their flags, to say that they are not in this build.
type upGenerate struct {
	Demo     bool `hidden:""`
	Generate *int `hidden:""`
}

type evalGenerate struct {
	Generate int `hidden:""`
}

// generatorFlags are the flags of synthetic mail: none in this build.
type generatorFlags struct{}

// Given returns "": there is no flag that could be given.
func (*generatorFlags) Given() string { return "" }

func (*generatorFlags) generator(source.FlipConfig) (func(int) (ingest.Items, error), error) {
	return nil, errNoGenerator
}
