// Package score asks running scorers: `hamlet score` about messages, `hamlet info` about the model
// they answer from, and the console's page Why for what makes a message spam or ham. The page
// shows the probability with its interval, what each input adds, and the message itself with its
// words coloured by what they add.
//
// The page's message is pasted, uploaded, or one that the journal names and that was kept. Such a
// question decides nothing, so it leaves no line in the journal, and nothing of a pasted message
// is kept.
package score

import (
	"context"
	"errors"
	"io"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream"
	"hamlet/stream/questions"
)

// A Command holds the flags of `hamlet score`, for kong to fill.
type Command struct {
	Files []string `arg:"" name:"file" help:"A message, an mbox file, a Maildir, a directory or tar of messages, or - for a message or mbox on standard input."`

	Format   string `help:"mail, text (a file is one text) or jsonl (one event per line)." enum:"mail,text,jsonl" default:"mail" env:"HAMLET_SCORE_FORMAT"`
	Text     bool   `help:"The same as --format text." env:"-"`
	Tenant   string `help:"Whose mail it is; events in JSON say it themselves. Empty means default." env:"HAMLET_SCORE_TENANT"`
	Reasons  int    `help:"How many reasons to print for people." default:"3"`
	Words    int    `help:"How many words, header fields and links to print for people, at most 20; 0 for none." default:"5"`
	JSON     bool   `name:"json" help:"Print one JSON object a message: file, p, log_odds, interval, verdict, rule, reasons, words, model; or file and error."`
	ExitCode bool   `env:"-" help:"Exit 0 for spam, 1 for ham, 2 for unsure, 3 for any error. With several messages: 0 if any is spam, else 2 if any is unsure."`
	settings.ModelName

	Server string `help:"URLs of NATS, comma-separated. HAMLET_NATS sets it too." default:"nats://127.0.0.1:4222" env:"HAMLET_SERVER,HAMLET_NATS" group:"NATS"`
	settings.NATSAccess
	Timeout time.Duration `help:"How long to wait for an answer, and for a server, a scorer and a model that are not there yet." default:"10s" group:"NATS"`
}

// Help is what kong prints below the flags.
func (Command) Help() string {
	return `Examples:

  hamlet score message.eml                     one message
  hamlet score ~/Maildir/.Junk                 a Maildir
  hamlet score --json inbox.mbox | jq .p       for programs
  hamlet score --exit-code - < message.eml     in a delivery script
  echo 'You have won' | hamlet score --text -  plain text
  hamlet score --server nats://mx1:4222 m.eml  a scorer elsewhere

A line below a verdict says by which rule it was made, if not by the scorer's fixed
thresholds. It is left out where it is that of the message before.

A reason's number is what it adds to the log-odds of spam, in nats, with its
standard deviation. Below the reasons stand the words that add most, each with the
place where it stands: text, subject, link, or a header field. They are another view
of the same sum. (shared) says that a word shares a slot of a hash table with
something else in the message, so that part of its number may belong to that.`
}

// The exit statuses with --exit-code.
const (
	StatusSpam   = 0
	StatusHam    = 1
	StatusUnsure = 2
	StatusError  = 3
)

// An ExitError asks for an exit status. Err is nil if the status is an answer; then
// there is nothing to print.
type ExitError struct {
	Code int
	Err  error
}

// Error returns what went wrong, or nothing.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode returns Code.
func (e *ExitError) ExitCode() int { return e.Code }

// Run asks about all files and prints the answers in order. It reports a message that
// can't be scored and goes on; the error at the end says how many there were. With
// ExitCode every error is an [*ExitError], and so is an answer other than spam.
func (c *Command) Run(ctx context.Context, stdio cli.IO) error {
	suspect, err := c.run(ctx, stdio.In, stdio.Out, stdio.Err)
	switch {
	case !c.ExitCode:
		return err
	case err != nil:
		return failed(err)
	case suspect == stream.DecideHam:
		return &ExitError{Code: StatusHam}
	case suspect == stream.DecideUnsure:
		return &ExitError{Code: StatusUnsure}
	}
	return nil
}

// run returns the verdict on the most suspect message.
func (c *Command) run(ctx context.Context, stdin io.Reader, stdout,
	stderr io.Writer) (suspect stream.Decision, err error) {
	if c.Text {
		if c.Format != "mail" && c.Format != "text" && c.Format != "" {
			return "", cli.Usagef("--text and --format %s contradict each other", c.Format)
		}
		c.Format = "text"
	}
	if c.Timeout <= 0 {
		return "", cli.Usagef("--timeout: %v is not above zero", c.Timeout)
	}
	if err := errors.Join(cli.NotNegative("--reasons", c.Reasons), cli.NotNegative("--words", c.Words)); err != nil {
		return "", err
	}
	if c.Tenant != "" && c.Format == "jsonl" {
		return "", cli.Usagef("--tenant and --format jsonl: an event in JSON has a tenant of its own")
	}
	waiting := &patience{until: time.Now().Add(c.Timeout), stderr: stderr}
	scorers, err := dial(ctx, c.NATSAccess, c.Server, c.Model, waiting)
	if err != nil {
		return "", err
	}
	defer scorers.conn.Close()
	out := &printer{out: stdout, err: stderr, json: c.JSON, reasons: c.Reasons, words: c.Words}
	left := time.Until(waiting.until) // for the first answer
	for q, err := range read(c.Files, c.Format, stdin) {
		if err == nil {
			q.Tenant, q.Explain = c.Tenant, true
			var verdict stream.Verdict
			waiting.until = time.Now().Add(left)
			left = c.Timeout
			err = scorers.ask(ctx, func(ctx context.Context) (err error) {
				verdict, err = ask(ctx, scorers.client, q.Question)
				return err
			})
			if err == nil {
				suspect = moreSuspect(suspect, verdict.Decision)
				if err := out.verdict(q.place, verdict); err != nil {
					return "", err
				}
				continue
			}
		}
		if final(err) {
			return "", err
		}
		if err := out.failure(q.place, err); err != nil {
			return "", err
		}
	}
	return suspect, out.close()
}

// final reports whether the next message would fail too: nobody answers, or ctx has
// ended.
func final(err error) bool {
	var e *questions.Refusal
	var skipped *skippedError
	if errors.As(err, &skipped) {
		return false
	}
	return !errors.As(err, &e) || e.Code == questions.Unavailable
}

// moreSuspect returns the verdict that decides about the two.
func moreSuspect(a, b stream.Decision) stream.Decision {
	for _, d := range []stream.Decision{stream.DecideSpam, stream.DecideUnsure} {
		if a == d || b == d {
			return d
		}
	}
	return stream.DecideHam
}
