// Package history is `hamlet history` and the console's page History: the journal of decisions
// with filters, and how right the answers were.
package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream/mail"
	"hamlet/stream/nats"
)

// A Command holds the flags of `hamlet history`, for kong to fill.
type Command struct {
	Files []string `arg:"" optional:"" name:"file" help:"Messages, as hamlet score takes them: only decisions about these."`

	ID        string `name:"id" help:"Only decisions about this identity, the id of X-Hamlet, or for this id of a request." env:"-" placeholder:"ID"`
	MessageID string `name:"message-id" help:"Only decisions about mail with this Message-ID." env:"-" placeholder:"ID"`
	Verdict   string `help:"Only spam, ham or unsure." enum:",spam,ham,unsure" default:"" env:"-" placeholder:"VERDICT"`
	Door      string `help:"Only what came in by this door, such as milter." env:"-" placeholder:"NAME"`
	Tenant    string `help:"Only this tenant's mail." env:"HAMLET_HISTORY_TENANT" placeholder:"NAME"`
	Since     string `help:"Only decisions from then on: 2h (two hours ago), or a time such as 2026-11-20T10:00:00Z." env:"-" placeholder:"WHEN"`
	Limit     int    `help:"Show the newest N; 0 shows all." default:"50" placeholder:"N"`
	Stats     bool   `help:"Show how right the answers were, by the labels that came later, and how many errors are expected without labels: a line for each door and tenant."`
	JSON      bool   `name:"json" help:"Print one JSON object a decision."`
	settings.ModelName

	Server string `help:"URLs of NATS, comma-separated. HAMLET_NATS sets it too." default:"nats://127.0.0.1:4222" env:"HAMLET_SERVER,HAMLET_NATS" group:"NATS"`
	settings.NATSAccess
}

// Help is what kong prints below the flags.
func (Command) Help() string {
	return `Examples:

  hamlet history                               the last 50, the newest last
  hamlet history --verdict unsure --since 24h  what to look at
  hamlet history message.eml                   answers about this message
  hamlet history --message-id '<a1@example.org>'
  hamlet history --id 0123456789abcdef0123456789abcdef
  hamlet history --json --limit 0 | jq .ms     for programs
  hamlet history --stats --since 168h          how right a week's answers were

Scorers keep a line for each answer in NATS' stream HAMLET_DECISIONS: when, the verdict, p
and its 90 % interval, the names of the three largest reasons, model, door, tenant, the
milliseconds that it took, and the id of the request if it had one. A line is there half a
second after the answer. The oldest go first: see --journal-age and --journal-size of
scorer and up, whose --no-journal keeps nothing.

A label that a learner learns for one of these messages stands beside the answer. --stats
compares the two: error (p on the wrong side of ½), log loss, p less the share of spam, the
slope of the calibration line (below 1: too sure) and 1-ROCA%, each with its 90 % interval,
and how long labels took. People label what they see wrong: these figures are those of the
labelled messages, no error rate of the filter. A label that was withdrawn later counts
still. --limit does not apply.

Its last two columns say how many errors are expected without any label: ham that went to
Junk, and spam that did not. They are sums over all answers of the probability that each is
wrong, with a 90 % interval, beside the errors that labels have shown. "not known" stands
there while an incident of concept, label noise or a source is open or suspected, where
labels show far more errors than expected, and where at least half of the answers are
labelled and the slope's interval leaves 1 in the last 500 of these. Answers given during
an incident that is over are left out, and counted. A message counts once, with its first
answer.

The journal holds no text and no address. A message stands there by its identity, which is
a hash, and by a hash of its Message-ID: whoever can read the journal and has the message
can find it. Names of tenants and requests with an @ are hashed too. To read takes the
right of an operator (deploy/nats/hamlet.conf); the one who runs up has it.

The identity depends on the tenant: with FILE, --tenant says whose mail it was.`
}

// Run prints the decisions that the flags ask for, the newest last.
func (c *Command) Run(ctx context.Context, stdio cli.IO) error {
	since, err := cli.Since(c.Since, time.Now())
	if err := errors.Join(err, cli.NotNegative("--limit", c.Limit)); err != nil {
		return err
	}
	wanted, err := c.filter(stdio.In, since)
	if err != nil {
		return err
	}
	cfg, err := settings.NATS{NATS: c.Server, NATSAccess: c.NATSAccess}.Config("hamlet-history", nil)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	conn, err := nats.Connect(cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	if c.Stats {
		table, err := ReadFigures(ctx, conn, c.Model, wanted, mostJoined)
		if err != nil {
			return err
		}
		c.missing(stdio.Err, table.Looked, table.Damaged)
		return writeFigures(stdio.Out, table.Figures, c.JSON)
	}
	page, err := Read(ctx, conn, c.Model, wanted, c.Limit, nats.JournalPosition{})
	if err != nil {
		return err
	}
	c.missing(stdio.Err, page.Looked, page.Damaged)
	slices.Reverse(page.Entries)
	if c.JSON {
		return writeJSON(stdio.Out, page.Entries)
	}
	return writeTable(stdio.Out, page.Entries)
}

// mostJoined is how many messages --stats remembers: some 230 MB.
const mostJoined = 1_000_000

func (c *Command) missing(stderr io.Writer, decisions, damaged int) {
	if damaged > 0 {
		fmt.Fprintf(stderr, "%d lines of the journal cannot be read\n", damaged)
	}
	if decisions == 0 {
		fmt.Fprintf(stderr, "the journal has no decisions of the model %s there. "+
			"Scorers write it where NATS has JetStream, without --no-journal\n", c.Model)
	}
}

// filter returns which decisions the flags and files ask for.
func (c *Command) filter(stdin io.Reader, since time.Time) (*Filter, error) {
	identities, err := c.identities(stdin)
	if err != nil {
		return nil, err
	}
	f := &Filter{ID: c.ID, MessageID: c.MessageID, Verdict: c.Verdict, Door: c.Door, Tenant: c.Tenant,
		Since: since, Identities: identities}
	if err := f.check(); err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	return f, nil
}

// identities returns those of the messages in the files; nil without files.
func (c *Command) identities(stdin io.Reader) (map[string]bool, error) {
	if len(c.Files) == 0 {
		return nil, nil
	}
	found := map[string]bool{}
	for _, file := range c.Files {
		for m, err := range source.Messages(file, stdin) {
			if err != nil {
				return nil, err
			}
			reduced, err := mail.Reduce(m.Raw)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Place, err)
			}
			parsed := mail.Parse(reduced)
			found[mail.Identity(c.Tenant, &parsed)] = true
		}
	}
	return found, nil
}
