// Package review finds the messages whose label would teach a model most, and shows and labels
// them: `hamlet review`, and the console's page Review. The page asks a scorer about each message
// that it shows, because the answer in the journal may be of an older model. If the newer answer
// leaves little to learn, it shows the next one.
//
//	reader := review.NewReader(conn, "default", review.Window)
//	err := reader.Refresh(ctx)                                   // reads the journal
//	best, waiting := reader.Best(20, reader.Since(), nil, nil)        // []review.Item
//	kept, err := nats.NewMailArchiveReader(mailConn, "default")
//	m, err := kept.Get(ctx, best[0].ID)                          // with --keep-mail
//	err = review.Teach(ctx, teacher, &m, stream.Spam, "ann")
//
// The queue is made of the journal of decisions alone. So it costs scoring nothing, and needs
// neither model nor mail: see [Worth]. Messages with a label are not in it. Of messages that
// are much alike it shows one.
package review

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/door/doors"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/report"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// A Command holds the flags of `hamlet review`, for kong to fill.
type Command struct {
	IDs []string `arg:"" optional:"" name:"id" help:"Identities of messages, for --show and --label."`

	Show   bool   `help:"Show these messages." env:"-"`
	Label  string `help:"Say what these messages are: spam or ham." enum:",spam,ham" default:"" env:"-" placeholder:"LABEL"`
	Source string `help:"Who says so." default:"review" env:"HAMLET_REVIEW_SOURCE" placeholder:"NAME"`
	Limit  int    `help:"List the first N." default:"20" placeholder:"N"`
	Since  string `help:"Only answers from then on: 24h (a day ago), or a time such as 2026-11-20T10:00:00Z." default:"72h" env:"-" placeholder:"WHEN"`
	JSON   bool   `name:"json" help:"Print one JSON object a message."`
	settings.ModelName

	Server string `help:"URLs of NATS, comma-separated. HAMLET_NATS sets it too." default:"nats://127.0.0.1:4222" env:"HAMLET_SERVER,HAMLET_NATS" group:"NATS"`
	settings.ReadMail
	settings.Asking
	settings.NATSAccess
	settings.Machine
	settings.Kafka
}

// Help is what kong prints below the flags.
func (Command) Help() string {
	return `Examples:

  hamlet review                         whose label would teach most
  hamlet review --show ID               one of them, as text
  hamlet review --label spam ID ID      they are spam
  hamlet review --json --limit 100 | jq -r .id

The list has messages that were answered and have no label, from the journal of
decisions: p with its 90 % interval, and the worth of a label. Worth is what the label
tells about the model's weights, times p(1−p). Of messages that are much alike it shows
one. It never lists what only the console asked about.

With --ask SHARE the list also has this share of all mail, chosen by chance, whatever it
is worth. A label of such a message says that it was asked for, whoever gives it: promises
about lost ham rest on these. So label all of them, and say the same --ask to console,
gateway, ingest and up.

To show and label a message takes the message: scorer or up has to run with
--keep-mail DAYS. By deploy/nats/hamlet.conf the user mailreader may read it
(--mail-nats, HAMLET_MAIL_NATS), and the journal takes the rights of an operator.
--label writes to the events topic, as ingest does. The label is a correction, as of
hamlet learn: the same again changes nothing, and labels of other sources stay.`
}

// mostLimit bounds --limit.
const mostLimit = 10_000

func (c *Command) check() error {
	err := errors.Join(cli.Range("--limit", c.Limit, 1, mostLimit), c.Asking.Check())
	switch {
	case c.Show && c.Label != "":
		err = errors.Join(err, cli.Usagef("--show and --label are two things: give one of them"))
	case (c.Show || c.Label != "") && len(c.IDs) == 0:
		err = errors.Join(err, cli.Usagef("--show and --label need the id of a message"))
	case !c.Show && c.Label == "" && len(c.IDs) > 0:
		err = errors.Join(err, cli.Usagef("--show or --label says what to do with %s", cli.Cell(c.IDs[0])))
	case c.Source == "":
		err = errors.Join(err, cli.Usagef("--source: the name is empty"))
	}
	for _, id := range c.IDs {
		if !identityForm().MatchString(id) {
			err = errors.Join(err, cli.Usagef("%s is not the identity of a mail: 32 digits of 0-9 and a-f", cli.Cell(id)))
		}
	}
	return err
}

// listTime bounds the reading of the journal for a list.
const listTime = 30 * time.Second

// Run lists, shows or labels.
func (c *Command) Run(ctx context.Context, stdio cli.IO) error {
	since, err := cli.Since(c.Since, time.Now())
	if err := errors.Join(err, c.check()); err != nil {
		return err
	}
	cfg, err := settings.NATS{NATS: c.Server, NATSAccess: c.NATSAccess}.Config("hamlet-review", nil)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	conn, err := nats.Connect(cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	kept, done, err := c.ReadMail.Open(conn, c.NATSAccess, c.Model, nil)
	if err != nil {
		return err
	}
	defer done()
	switch {
	case c.Show:
		return c.show(ctx, kept, stdio.Out)
	case c.Label != "":
		return c.label(ctx, kept, stdio.Out, stdio.Err)
	}
	return c.list(ctx, conn, kept, since, stdio.Out, stdio.Err)
}

// keptHint follows the error about mail that is not there.
const keptHint = "mail is kept by scorer --keep-mail DAYS, or up"

func get(ctx context.Context, kept *nats.MailArchiveReader, id string) (nats.ArchivedMail, error) {
	m, err := kept.Get(ctx, id)
	if errors.Is(err, nats.ErrNotArchived) {
		err = fmt.Errorf("%w; %s", err, keptHint)
	}
	return m, err
}

func (c *Command) show(ctx context.Context, kept *nats.MailArchiveReader, w io.Writer) error {
	for i, id := range c.IDs {
		m, err := get(ctx, kept, id)
		if err != nil {
			return err
		}
		text := Read(m.Message)
		if c.JSON {
			err = cli.PrintJSON(w, shown{id, m.Tenant, m.Time, text})
		} else {
			err = printMessage(w, i > 0, &text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A shown is a message in JSON.
type shown struct {
	ID     string    `json:"id"`
	Tenant string    `json:"tenant"`
	Kept   time.Time `json:"kept"`
	Message
}

func printMessage(w io.Writer, further bool, m *Message) error {
	if further {
		fmt.Fprint(w, "\n────\n\n")
	}
	for _, f := range [][2]string{{"From", m.From}, {"To", m.To}, {"Date", m.Date}, {"Subject", m.Subject}} {
		if f[1] != "" {
			fmt.Fprintf(w, "%s: %s\n", f[0], f[1])
		}
	}
	cut := ""
	if m.Cut {
		cut = fmt.Sprintf("\n[more than %d letters]", MostText)
	}
	return cli.Print(w, "\n"+m.Text+cut+"\n")
}

func (c *Command) label(ctx context.Context, kept *nats.MailArchiveReader, stdout, stderr io.Writer) error {
	label, err := stream.ParseLabel(c.Label)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	cfg, err := c.Machine.Logs(ctx, c.Kafka, "hamlet-review", log)
	if err != nil {
		return err
	}
	defer c.Machine.Close()
	events, err := cfg.Open(stream.EventsTopic(c.Model))
	if err != nil {
		return err
	}
	defer events.Close()
	to := doors.Teacher{Events: events, Ask: c.Asking.Asking()}
	for _, id := range c.IDs {
		m, err := get(ctx, kept, id)
		if err != nil {
			return err
		}
		sending, cancel := context.WithTimeout(ctx, teachTime)
		err = Teach(sending, to, &m, label, c.Source)
		cancel()
		if err != nil {
			return settings.ExplainLog(err, c.Model)
		}
		if c.JSON {
			err = cli.PrintJSON(stdout, map[string]string{"id": id, "label": label.String(), "source": c.Source})
		} else {
			err = cli.Print(stdout, id+" "+label.String()+"\n")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A listed is a message of the list.
type listed struct {
	stream.JournalEntry
	Worth   float64 `json:"worth"`
	Asked   bool    `json:"asked,omitempty"` // chosen by chance
	Kept    bool    `json:"kept"`
	Subject string  `json:"subject,omitempty"`
	From    string  `json:"from,omitempty"`
}

func (c *Command) list(ctx context.Context, conn *natsgo.Conn, kept *nats.MailArchiveReader, since time.Time, stdout,
	stderr io.Writer) error {
	reading, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	reader := NewReader(conn, c.Model, time.Since(since))
	reader.Ask = c.Asking.Asking()
	if err := reader.Refresh(reading); err != nil {
		return err
	}
	if reading.Err() != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "the journal was not read to its end in %v: the oldest answers are missing; "+
			"--since looks less far back\n", listTime)
	}
	best, waiting := reader.Best(c.Limit, since, nil, nil)
	all := make([]listed, len(best))
	var unreadable error
	held := 0
	for i := range best {
		all[i] = listed{JournalEntry: best[i].JournalEntry, Worth: best[i].Worth, Asked: best[i].Asked}
		if unreadable != nil {
			continue
		}
		m, err := kept.Get(ctx, best[i].ID)
		switch {
		case err == nil:
			text := Read(m.Message)
			all[i].Kept, all[i].Subject, all[i].From = true, text.Subject, text.From
			held++
		case !errors.Is(err, nats.ErrNotArchived):
			unreadable = err
		}
	}
	switch {
	case unreadable != nil:
		fmt.Fprintf(stderr, "what is kept of these messages cannot be read: %v\n", unreadable)
	case len(best) > 0 && held == 0:
		fmt.Fprintf(stderr, "none of these messages is kept, so none can be shown or labelled here: %s\n", keptHint)
	}
	if c.JSON {
		return report.PrintLines(stdout, all)
	}
	return printList(stdout, all, waiting)
}

func printList(w io.Writer, all []listed, waiting int) error {
	if len(all) == 0 {
		return cli.Print(w, "no message without a label: scorers write the journal of answers where NATS has JetStream, "+
			"without --no-journal\n")
	}
	table := report.NewTable("id", "worth", "verdict", "p", "90 %", "door", "tenant", "age", "subject", "from")
	for i := range all {
		e := &all[i]
		worth := fmt.Sprintf("%.2g", e.Worth)
		if e.Asked {
			worth = "by chance"
		}
		table.Add(e.ID, worth, e.Verdict, fmt.Sprintf("%.4f", e.P),
			fmt.Sprintf("%.4f–%.4f", e.Low, e.High),
			cli.Cell(e.Door), cli.Cell(e.Tenant), time.Since(e.Time).Round(time.Minute), cell(e.Subject), cell(e.From))
	}
	return cli.Print(w, fmt.Sprintf("%v%d of %d messages without a label\n", table, len(all), waiting))
}

// cell is text of a message that fits a column.
func cell(s string) string {
	if strings.TrimSpace(s) == "" {
		return "–"
	}
	return page.Clip(s, 50)
}
