package settings

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"hamlet/algos/ensemble"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/version"
	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/learner"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/service/scorer"
	"hamlet/stream/nats"
)

// Shared are the flags that one configuration file may hold for all services.
type Shared struct {
	ModelName
	Kafka
	NATS
	Redis
	Model
	Topic
	Versions
	Thresholds
	Budget
	Journal
	Alerts
	HTTPTLS
}

// defaults are those that flags have in common with the packages that they configure. Tags name them: ${save_every}.
var defaults = kong.Vars{
	"save_every": learner.SaveEvery.String(), "answered": strconv.Itoa(answered.Remembered),
	"poll_interval": scorer.PollInterval.String(),
	"spam_at":       fmt.Sprint(scorer.SpamAt), "ham_at": fmt.Sprint(scorer.HamAt),
	"journal_age": hours(nats.JournalAge), "journal_size": strconv.Itoa(nats.JournalBytes >> 20),
	"keep_mail_size": strconv.Itoa(nats.MailBytes >> 20), "self_label_size": strconv.Itoa(nats.WaitingBytes >> 20),
	"retention": hours(machine.DefaultRetention),
	"in_flight": strconv.Itoa(ingest.InFlight), "deadline": ingest.Deadline.String(),
}

func hours(d time.Duration) string { return strings.TrimSuffix(d.String(), "0m0s") }

// Parse is [cli.Parse] for one of hamlet's programs.
func Parse(name, description string, grammar any, args []string, stdio cli.IO) (*kong.Context, error) {
	file := new(modelFile)
	var boosters []string
	for _, kind := range ensemble.Kinds() {
		boosters = append(boosters, string(kind))
	}
	boosters[0] += " (default for dense vectors)"
	vars := maps.Clone(defaults)
	vars["boosters"] = strings.Join(boosters, ", ")
	return cli.Parse(cli.Program{
		Name: name, Description: description, Version: version.Text(name), Grammar: grammar, Shared: &Shared{},
		Mapping: cli.Mapping{Key: "model", Set: file.Set},
		Bind:    []any{file},
		Vars:    vars,
	}, args, stdio)
}

// Run parses args and runs the command that they name: its method Run(context.Context, cli.IO) error.
func Run(ctx context.Context, name, description string, grammar any, args []string, stdio cli.IO) error {
	command, err := Parse(name, description, grammar, args, stdio)
	if err != nil {
		return err
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(stdio)
}

// A Checker is a group of flags that finds mistakes in itself.
type Checker interface{ Check() error }

// Check reports every mistake in the groups.
func Check(groups ...Checker) error {
	var errs []error
	for _, g := range groups {
		errs = append(errs, g.Check())
	}
	return errors.Join(errs...)
}
