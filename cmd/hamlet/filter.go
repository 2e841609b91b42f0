package main

import (
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/filter"
)

// A filterCommand passes one message on and marks it.
type filterCommand struct {
	Socket  string        `help:"unix:PATH or host:port of the gateway's spamd door. HAMLET_FILTER sets it too." default:"unix:/run/hamlet/spamd.sock" env:"HAMLET_FILTER"`
	Timeout time.Duration `help:"How long to wait for the answer." default:"3s" env:"-"`
	User    string        `help:"Whose mail it is, where the gateway tells users apart." env:"-" placeholder:"NAME"`
}

// Help is shown by kong below the flags.
func (filterCommand) Help() string {
	return `Passes a message from standard input to standard output and adds X-Hamlet to its
header. The spamd door of a running gateway says what to add:

  hamlet gateway --spamd unix:/run/hamlet/spamd.sock
  hamlet filter <message.eml                  the message with its marks
  hamlet filter --user alice <message.eml     as alice's mail

Without an answer in time the message passes byte for byte, and a line on standard
error says why. So does a message of more than 25 MiB.

Status: 0, the message was passed as a whole, marked or not; 75, it was not, so
drop what came and try again; 2, wrong usage.

The program hamlet-filter does the same and starts faster. deploy/mail has recipes
for procmail, maildrop and Sieve.`
}

func (c *filterCommand) run(stdio cli.IO) error {
	cfg := filter.Config{Addr: c.Socket, User: c.User, Timeout: c.Timeout}
	if err := cfg.Check(); err != nil {
		return &cli.UsageError{Err: err}
	}
	// A reader that goes is an error of a write then, and not the end of the process.
	signal.Ignore(syscall.SIGPIPE)
	unmarked, err := filter.Run(cfg, stdio.In, stdio.Out)
	if unmarked != nil {
		fmt.Fprintf(stdio.Err, "hamlet filter: the message passes unmarked: %v\n", unmarked)
	}
	return err
}
