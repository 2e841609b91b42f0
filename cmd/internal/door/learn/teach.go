// Package learn is `hamlet learn`: it says of messages what they are, at the HTTP door of
// ingest or of a gateway. Each message becomes a correction, so that a label finds and
// corrects an earlier one. With a spool a label survives a kill and a service that is down.
package learn

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/secretfile"
	"hamlet/stream"
	"hamlet/stream/mail"
)

// A Command holds the flags of `hamlet learn`, for kong to fill.
type Command struct {
	Files []string `arg:"" optional:"" name:"file" help:"Messages: files, mbox, Maildir, directories, archives, or - for standard input, which is the default."`

	Spam   bool `help:"These messages are spam." xor:"label" env:"-"`
	Ham    bool `help:"These messages are ham." xor:"label" env:"-"`
	Forget bool `help:"Forget what was learnt of these messages." xor:"label" env:"-"`
	Flush  bool `help:"Send what waits in the spool, and nothing else." xor:"label" env:"-"`
	JSON   bool `name:"json" help:"Print one JSON object: accepted, rejected, action and label; with a spool also waiting."`

	URL       string        `help:"HTTP address of ingest or of a gateway that takes labels." default:"http://127.0.0.1:9100" placeholder:"URL" env:"HAMLET_LEARN_URL"`
	Token     string        `help:"Bearer token, with the actions correct and unlearn." placeholder:"TOKEN" env:"HAMLET_TOKEN"`
	TokenFile string        `help:"File that holds the token, for scripts: other users can see a command line." placeholder:"FILE" env:"HAMLET_TOKEN_FILE"`
	Source    string        `help:"Who says so. Default: the token's source." placeholder:"NAME" env:"HAMLET_LEARN_SOURCE"`
	Tenant    string        `help:"Whose mail it is. Default: the token's tenant." placeholder:"NAME" env:"HAMLET_LEARN_TENANT"`
	Timeout   time.Duration `help:"How long the service may take for a request of up to 200 messages, with all attempts." default:"30s" env:"HAMLET_LEARN_TIMEOUT"`
	Spool     string        `help:"Directory that keeps messages until the service has them." placeholder:"DIR" env:"HAMLET_LEARN_SPOOL"`
}

// Help is what kong prints below the flags.
func (Command) Help() string {
	return `Examples:

  hamlet learn --spam < message.eml         what a mail program pipes
  hamlet learn --ham Maildir/.Archive       a whole folder
  hamlet learn --forget newsletter.eml      as if it had never been learnt
  hamlet token new alice --action correct,unlearn >> tokens.yaml

Of a message that has been learnt before, the earlier label is withdrawn and this one learnt
in its place. A copy with other header fields is the same message. A label that is the same
as before changes nothing, so a folder can be learnt again. Labels of other sources stay,
unless the token has --any-source. Where there was an earlier label, the topic
hamlet.receipts says what became of it. A --forget that finds nothing, or may not, is a
dead letter, in the topic hamlet.dead-letters; what it does not find is not self-labelled.

A message that cannot be read goes to stderr and is left out. The exit status is 0 when the
learner's log has all others, and 1 if not, or if no message was left. After 1 say it again:
what was taken before changes nothing then.

With --spool a message is on the disk before it is sent, and stays there until the service
has it. The next call and --flush send what is left, in order and by the same ids, so that
each label is learnt once. The status is also 0 when messages wait because the service is
down or slow. What the token may not say stays as N.refused, with status 1, and those behind it
are sent. A spool is for one service and one token. It holds at most 4,096 messages and 256 MiB;
a full one refuses messages, with status 1.`
}

// A request has at most so many events, and so many bytes unless it has one event.
const (
	mostEvents = 200
	mostBytes  = 8 << 20
)

// maxTokenFile bounds the file of a token, in bytes.
const maxTokenFile = 4 << 10

// Run sends the messages.
func (c *Command) Run(ctx context.Context, stdio cli.IO) error {
	action, label := stream.Correct, stream.Spam
	switch {
	case c.Forget:
		action, label = stream.Unlearn, stream.Unlabelled
	case c.Ham:
		label = stream.Ham
	case c.Flush:
		if c.Spool == "" || len(c.Files) > 0 {
			return cli.Usagef("--flush sends what waits in the --spool, and takes no files")
		}
	case !c.Spam:
		return cli.Usagef("one of --spam, --ham and --forget says what the messages are")
	}
	if c.Timeout <= 0 {
		return cli.Usagef("--timeout: %v is not above zero", c.Timeout)
	}
	sender, err := c.sender()
	if err != nil {
		return err
	}
	var s outlet = sender
	if c.Spool != "" {
		spool, err := openSpool(c.Spool)
		if err != nil {
			return err
		}
		if c.Flush {
			return c.flush(ctx, &spooler{spool: spool, sender: sender}, stdio.Out)
		}
		s = &spooler{spool: spool, sender: sender}
	}
	files := c.Files
	if len(files) == 0 {
		files = []string{"-"}
	}
	rejected := 0
	for _, file := range files {
		for m, err := range source.Messages(file, stdio.In) {
			if errors.As(err, new(*source.Rejection)) {
				rejected++
				fmt.Fprintln(stdio.Err, err)
				continue
			}
			if err != nil {
				return err
			}
			reduced, err := mail.Reduce(m.Raw)
			if err != nil {
				rejected++
				fmt.Fprintf(stdio.Err, "%s: %v\n", m.Place, err)
				continue
			}
			e := stream.Event{
				ID: rand.Text(), Time: time.Now().UTC(), Source: c.Source, Tenant: c.Tenant, Action: action, Label: label,
				Body: stream.Body{Kind: stream.Mail, Mail: reduced},
			}
			if err := s.add(ctx, &e); err != nil {
				return err
			}
		}
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	accepted, waiting, why := s.state()
	if accepted+waiting == 0 {
		return errors.New("no message was left to learn from")
	}
	if waiting > 0 {
		fmt.Fprintf(stdio.Err, "%d of the messages wait in %s: %v\n", waiting, c.Spool, why)
	}
	if c.JSON {
		result := map[string]any{
			"accepted": accepted, "rejected": rejected, "action": action.String(), "label": label.String(),
		}
		if c.Spool != "" {
			result["waiting"] = waiting
		}
		return cli.PrintJSON(stdio.Out, result)
	}
	return cli.Print(stdio.Out, fmt.Sprintf("%d %s\n", accepted, cmp.Or(label.String(), "forgotten")))
}

// An outlet brings events to the service: a sender, or a spooler.
type outlet interface {
	add(ctx context.Context, e *stream.Event) error
	flush(ctx context.Context) error // sends what was added
	// state counts the events that the service has, and those that wait and why.
	state() (accepted, waiting int, why error)
}

// A sender sends events in batches.
type sender struct {
	url, token string
	client     *http.Client
	timeout    time.Duration // of a batch, with all attempts

	batch    bytes.Buffer // lines of JSON
	events   int          // in batch
	accepted int          // that the service has
}

func (c *Command) sender() (*sender, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, cli.Usagef("--url: %q is no address such as http://127.0.0.1:9100", c.URL)
	}
	token := c.Token
	if c.TokenFile != "" {
		b, err := secretfile.Read(c.TokenFile, maxTokenFile)
		if err != nil {
			return nil, fmt.Errorf("read the token: %w", err)
		}
		token = strings.TrimSpace(string(b))
	}
	if token == "" {
		return nil, cli.Usagef("a token says who may teach: set --token-file, --token or HAMLET_TOKEN")
	}
	return &sender{
		url: base.JoinPath("v1/events").String(), token: token,
		client: &http.Client{Timeout: time.Minute}, timeout: c.Timeout,
	}, nil
}

func (s *sender) state() (accepted, waiting int, why error) { return s.accepted, 0, nil }

// add adds an event to the batch, and sends the batch before if the event does not fit.
func (s *sender) add(ctx context.Context, e *stream.Event) error {
	line, err := e.AppendJSON(nil)
	if err != nil {
		return err
	}
	if s.events == mostEvents || s.events > 0 && s.batch.Len()+len(line) > mostBytes {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.batch.Write(append(line, '\n'))
	s.events++
	return nil
}

// flush sends the batch. It tries again while the service is busy or not there, until timeout is
// over: an event that arrives twice is known by its id.
func (s *sender) flush(ctx context.Context) error {
	if s.events == 0 {
		return nil
	}
	attempts, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 100*time.Millisecond, 5*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		again, err := s.send(attempts)
		if err != nil && !again {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(s.timeout))
	if err != nil {
		return fmt.Errorf("after %d messages that were taken: %w", s.accepted, err)
	}
	s.accepted += s.events
	s.events = 0
	s.batch.Reset()
	return nil
}

// send sends the batch once. again: a later attempt may succeed.
func (s *sender) send(ctx context.Context) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(s.batch.Bytes()))
	if err != nil {
		return false, fmt.Errorf("ask %s: %w", s.url, err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/x-ndjson")
	answer, err := s.client.Do(request)
	if err != nil {
		return true, fmt.Errorf("send messages: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return true, fmt.Errorf("read the answer of %s: %w", s.url, err)
	}
	if answer.StatusCode == http.StatusAccepted {
		return false, nil
	}
	var refused struct {
		Error string `json:"error"`
	}
	known := json.Unmarshal(text, &refused) == nil && refused.Error != ""
	if !known {
		refused.Error = "without a reason: is this the address of ingest?"
	}
	again = answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable
	err = fmt.Errorf("%s answered %s: %s", s.url, answer.Status, refused.Error)
	if !known {
		return again, err
	}
	switch answer.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		err = &rejectedError{err, false}
	case http.StatusForbidden:
		err = &rejectedError{err, true}
	}
	return again, err
}

// A rejectedError is an answer that names a mistake in the batch. The service will never take it.
// If denied, it may take it after the token has got further rights.
type rejectedError struct {
	error
	denied bool
}

func (e *rejectedError) Unwrap() error { return e.error }
