// Command hamlet-filter passes one message from standard input to standard output and
// marks it on the way. It is `hamlet filter` as a program of its own, because a program
// that starts for every message must start fast. Package filter says how it works.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"hamlet/cmd/internal/filter"
	"hamlet/cmd/internal/version"
)

const usage = `Usage: hamlet-filter [flags] <message >marked

Passes a message from standard input to standard output and adds X-Hamlet to its
header. The spamd door of a running gateway says what to add:

  hamlet gateway --spamd unix:/run/hamlet/spamd.sock
  hamlet-filter <message.eml                  the message with its marks
  hamlet-filter <message.eml | grep -m1 ^X-H  only its verdict

In ~/.procmailrc (deploy/mail has recipes for maildrop and Sieve too):

  :0fwr
  | hamlet-filter

Without an answer in time the message passes byte for byte, and a line on
standard error says why. So does a message of more than 25 MiB.

Flags:
  --socket ADDR  unix:PATH or host:port of the spamd door; HAMLET_FILTER sets it
                 too (default ` + filter.DefaultAddr + `)
  --timeout D    how long to wait for the answer (default 3s)
  --user NAME    whose mail it is, where the gateway tells users apart
  --version      print the version
  --help         print this help

Status: 0, the message was passed as a whole, marked or not; 75, it was not, so
drop what came and try again; 2, wrong usage.
`

func main() {
	// A reader that goes is an error of a write then, and not the end of the process.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// run returns the status of the process.
func run(args []string, getenv func(string) string, in io.Reader, out, stderr io.Writer) int {
	cfg := filter.Config{Addr: filter.DefaultAddr}
	if addr := getenv(filter.Variable); addr != "" {
		cfg.Addr = addr
	}
	flags := flag.NewFlagSet("hamlet-filter", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&cfg.Addr, "socket", cfg.Addr, "")
	flags.DurationVar(&cfg.Timeout, "timeout", filter.DefaultTimeout, "")
	flags.StringVar(&cfg.User, "user", "", "")
	showVersion := flags.Bool("version", false, "")
	err := flags.Parse(args)
	text := ""
	switch {
	case errors.Is(err, flag.ErrHelp):
		text = usage
	case err == nil && *showVersion:
		text = version.Of("hamlet-filter") + "\n"
	}
	if text != "" {
		if _, err := io.WriteString(out, text); err != nil {
			return filter.StatusTempFail
		}
		return 0
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%q: the message comes on standard input", flags.Arg(0))
	}
	if err == nil {
		err = cfg.Check()
	}
	if err != nil {
		fmt.Fprintf(stderr, "hamlet-filter: %v\nRun 'hamlet-filter --help' for its usage.\n", err)
		return filter.StatusUsage
	}
	unmarked, err := filter.Run(cfg, in, out)
	if unmarked != nil {
		fmt.Fprintf(stderr, "hamlet-filter: the message passes unmarked: %v\n", unmarked)
	}
	if err != nil {
		fmt.Fprintf(stderr, "hamlet-filter: %v\n", err)
		return filter.StatusTempFail
	}
	return 0
}
