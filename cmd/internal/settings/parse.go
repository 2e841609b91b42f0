package settings

import (
	"errors"
	"strings"

	"github.com/alecthomas/kong"

	"hamlet/algos/ensemble"
	"hamlet/algos/model"
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/version"
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
	Journal
	Alerts
	HTTPTLS
}

// Parse is [cli.Parse] for one of hamlet's programs.
func Parse(name, description string, grammar any, args []string, stdio cli.IO) (*kong.Context, error) {
	file := new(modelFile)
	var boosters []string
	for _, kind := range ensemble.Kinds() {
		boosters = append(boosters, string(kind))
	}
	boosters[0] += " (default for dense vectors)"
	return cli.Parse(cli.Program{
		Name: name, Description: description, Version: Version(name), Grammar: grammar, Shared: &Shared{},
		Mapping: cli.Mapping{Key: "model", Set: file.Set},
		Bind:    []any{file},
		Vars:    kong.Vars{"boosters": strings.Join(boosters, ", ")},
	}, args, stdio)
}

// Version returns what --version prints: [version.Of], and the numerics, on which the bits of a
// model depend.
func Version(program string) string {
	return version.Of(program) + "\nnumerics " + model.CurrentNumerics()
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
