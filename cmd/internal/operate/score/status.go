package score

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"hamlet/cmd/internal/process/cli"
)

// Wanted reports whether a command line asks for `score` with --exit-code, even if it
// can't be parsed.
func Wanted(args []string) bool {
	args = beforeFiles(args)
	return slices.Contains(args, "score") && slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--exit-code" || strings.HasPrefix(arg, "--exit-code=")
	})
}

func beforeFiles(args []string) []string {
	if end := slices.Index(args, "--"); end >= 0 {
		return args[:end]
	}
	return args
}

// UsageStatus gives an error of parsing args the status that --exit-code promises. A
// delivery script must not take wrong usage, 2 elsewhere, for "unsure". The same holds
// if a configuration file asks for it, where it may not stand. Other errors stay.
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
		// Only the text of the cause stays: a UsageError has a status of its own.
		err = fmt.Errorf("%v (see hamlet score --help)", err)
	}
	return &ExitError{Code: StatusError, Err: err}
}
