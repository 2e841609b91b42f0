package settings

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"hamlet/algos/ensemble"
	"hamlet/algos/model"
	"hamlet/cmd/internal/cli"
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

// release is the version of all programs.
const release = "0.1.0-dev"

// Version returns what --version prints: the release, the commit if it is known,
// the version of Go and the numerics, on which the bits of a model depend.
func Version(program string) string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = fmt.Sprintf(" (commit %.12s)", s.Value)
			case s.Key == "vcs.modified" && s.Value == "true":
				commit += " with changes"
			}
		}
	}
	return fmt.Sprintf("%s %s%s\n%s %s/%s\nnumerics %s", program, release, commit,
		runtime.Version(), runtime.GOOS, runtime.GOARCH, model.CurrentNumerics())
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
