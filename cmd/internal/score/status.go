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
	args = beforeFiles(args)
	return slices.Contains(args, "score") && slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--exit-code" || strings.HasPrefix(arg, "--exit-code=")
	})
}

// beforeFiles returns the arguments before "--".
func beforeFiles(args []string) []string {
	if end := slices.Index(args, "--"); end >= 0 {
		return args[:end]
	}
	return args
}

// UsageStatus gives an error of parsing args the status that --exit-code
// promises: a delivery script must not take wrong usage, 2 elsewhere, for
// "unsure". So it is where a configuration file, in which it may not stand, asks for
// it. Any other error, and that of any other command, comes back as it is.
func UsageStatus(args []string, err error) error {
	var usage *cli.UsageError
	var typed *cli.TypedError
	inFile := errors.As(err, &typed) && typed.Names("exit-code") && slices.Contains(beforeFiles(args), "score")
	if !errors.As(err, &usage) || !inFile && !Wanted(args) {
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
