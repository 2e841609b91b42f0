package score

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"hamlet/cmd/internal/cli"
)

// Wanted reports whether a command line asks for `score` with --exit-code, also
// if it can't be parsed for something else.
func Wanted(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "score") && slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--exit-code" || strings.HasPrefix(arg, "--exit-code=")
	})
}

// UsageStatus gives an error of parsing args the status that --exit-code
// promises: a delivery script must not take wrong usage, 2 elsewhere, for
// "unsure". Any other error, and that of any other command, comes back as it is.
func UsageStatus(args []string, err error) error {
	var usage *cli.UsageError
	if !Wanted(args) || !errors.As(err, &usage) {
		return err
	}
	return failed(err)
}

// failed gives an error the status that --exit-code promises.
func failed(err error) *ExitError {
	var usage *cli.UsageError
	if errors.As(err, &usage) {
		// The cause is kept as text: who looks for a UsageError would find its status.
		err = fmt.Errorf("%v (see hamlet score --help)", err)
	}
	return &ExitError{Code: StatusError, Err: err}
}
