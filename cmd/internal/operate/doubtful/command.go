// Package doubtful lists the labels that are more likely false than true, and has people confirm them or
// turn them around: `hamlet doubtful`, and the console's page Doubtful.
//
//	reader := doubtful.NewReader(conn, "default", doubtful.Window)
//	all, err := reader.Refresh(ctx)                          // reads the journal
//	items := reader.Items(doubtful.Filter{Source: "users"})  // []doubtful.Item
//	judge := doubtful.Judge{Logs: logs, Topic: topic, Kept: kept.Get, To: teacher}
//	err = judge.Say(ctx, &items[0], false, "ann")            // it is turned around
//
// A learner writes a doubtful label into the journal of decisions, with p, φ and the offset of its event
// (package answered). So the list needs neither model nor log. What is said of a label is a
// correction. It takes the message from the log, at that offset, or else from the kept mail.
package doubtful

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/operate/review"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/report"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// A Command holds the flags of `hamlet doubtful`, for kong to fill.
type Command struct {
	Ask     bool     `help:"Show the labels one by one, and take a key for each: c confirms it, t turns it around." env:"-"`
	Confirm []string `help:"This message's label is right." env:"-" placeholder:"ID"`
	Turn    []string `help:"This message's label is wrong: it gets the other one." env:"-" placeholder:"ID"`
	By      string   `help:"Who says so: the source of these labels." default:"doubtful" env:"HAMLET_DOUBTFUL_BY" placeholder:"NAME"`

	Tenant string `help:"Only labels of this tenant's mail." env:"-" placeholder:"NAME"`
	Source string `help:"Only labels of this source." env:"-" placeholder:"NAME"`
	Since  string `help:"Only labels learnt from then on: 24h (a day ago), or a time such as 2026-11-20T10:00:00Z." default:"336h" env:"-" placeholder:"WHEN"`
	Limit  int    `help:"List the first N." default:"50" placeholder:"N"`
	JSON   bool   `name:"json" help:"Print one JSON object a label."`
	settings.ModelName

	Server string `help:"URLs of NATS, comma-separated. HAMLET_NATS sets it too." default:"nats://127.0.0.1:4222" env:"HAMLET_SERVER,HAMLET_NATS" group:"NATS"`
	settings.ReadMail
	settings.NATSAccess
	settings.Machine
	settings.Kafka
}

// Help is what kong prints below the flags.
func (Command) Help() string {
	return `Examples:

  hamlet doubtful                       labels that are probably false
  hamlet doubtful --source users --ask  those of users, one by one
  hamlet doubtful --turn ID             this one is false
  hamlet doubtful --confirm ID          this one is true
  hamlet doubtful --json | jq -r 'select(.phi < .01) | .id'

p is what the model said of the message before it learnt the label. φ is the probability
that the label is true, from p and from how often such labels were wrong: below one half,
the label is listed. A message leaves the list with its next label that is not doubtful,
or when its label is withdrawn. Labels of the model's first 100 events are not listed,
nor those of muted sources. The journal keeps labels for 14 days.

What you say takes the place of the label, whoever gave it, and the model believes it.
It is written to the events topic, as ingest does, and takes the message from there:
the journal has its offset. Where the log has lost it, kept mail will do. Subject and
sender are shown of mail that is kept (--keep-mail DAYS of scorer or up).`
}

// mostLimit bounds --limit.
const mostLimit = 10_000

func (c *Command) check() error {
	err := cli.Range("--limit", c.Limit, 1, mostLimit)
	says := len(c.Confirm)+len(c.Turn) > 0
	switch {
	case c.Ask && (says || c.JSON):
		err = errors.Join(err, cli.Usagef("--ask shows labels one by one: --confirm, --turn and --json do not go with it"))
	case c.By == "":
		err = errors.Join(err, cli.Usagef("--by: the name is empty"))
	}
	said := map[string]bool{}
	for _, id := range append(append([]string(nil), c.Confirm...), c.Turn...) {
		switch {
		case !identityForm().MatchString(id):
			err = errors.Join(err, cli.Usagef("%s is not the identity of a message: 32 digits of 0-9 and a-f", cli.Cell(id)))
		case said[id]:
			err = errors.Join(err, cli.Usagef("%s is named twice", id))
		}
		said[id] = true
	}
	return err
}

// listTime bounds the reading of the journal.
const listTime = 30 * time.Second

// Run lists doubtful labels, or says whether they are right.
func (c *Command) Run(ctx context.Context, stdio cli.IO) error {
	since, err := cli.Since(c.Since, time.Now())
	if err := errors.Join(err, c.check()); err != nil {
		return err
	}
	cfg, err := settings.NATS{NATS: c.Server, NATSAccess: c.NATSAccess}.Config("hamlet-doubtful", nil)
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
	list, err := c.read(ctx, conn, since, stdio.Err)
	if err != nil {
		return err
	}
	if !c.Ask && len(c.Confirm)+len(c.Turn) == 0 {
		return c.list(ctx, list, kept, stdio)
	}
	log := slog.New(slog.NewTextHandler(stdio.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	logs, err := c.Machine.Logs(ctx, c.Kafka, "hamlet-doubtful", log)
	if err != nil {
		return err
	}
	defer c.Machine.Close()
	topic := stream.EventsTopic(c.Model)
	s := session{judge: Judge{logs, topic, kept.Get, review.LogTeacher{Logs: logs, Topic: topic}}, by: c.By, model: c.Model}
	if c.Ask {
		return s.ask(ctx, c.wanted(list), stdio)
	}
	return c.say(ctx, &s, list, stdio.Out)
}

func (c *Command) read(ctx context.Context, conn *natsgo.Conn, since time.Time, stderr io.Writer) (*List, error) {
	reading, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	reader := NewReader(conn, c.Model, time.Since(since))
	all, err := reader.Refresh(reading)
	if err == nil && !all && ctx.Err() == nil {
		fmt.Fprintf(stderr, "the journal was not read to its end in %v: the newest labels are missing; "+
			"--since looks less far back\n", listTime)
	}
	return reader.List, err
}

// wanted returns the labels that the flags want.
func (c *Command) wanted(list *List) []Item {
	return list.Items(Filter{Tenant: stream.Unaddressed(c.Tenant), Source: stream.Unaddressed(c.Source)})
}

// say says what --confirm and --turn say.
func (c *Command) say(ctx context.Context, s *session, list *List, stdout io.Writer) error {
	for i, id := range append(append([]string(nil), c.Confirm...), c.Turn...) {
		item, ok := list.Item(id)
		if !ok {
			return fmt.Errorf("%s has no doubtful label: none is known since --since %s, or it was settled", id, c.Since)
		}
		right := i < len(c.Confirm)
		if err := s.say(ctx, &item, right); err != nil {
			return err
		}
		label := item.Label
		if !right {
			label = item.Other()
		}
		var err error
		if c.JSON {
			err = cli.PrintJSON(stdout, map[string]any{"id": id, "label": label.String(), "confirmed": right, "source": c.By})
		} else {
			err = cli.Print(stdout, id+" "+label.String()+"\n")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A listed is a label of the list.
type listed struct {
	Time    time.Time `json:"time"`
	ID      string    `json:"id"`
	Tenant  string    `json:"tenant"`
	Source  string    `json:"source"`
	Label   string    `json:"label"`
	P       float64   `json:"p"`
	Phi     float64   `json:"phi"`
	Offset  int64     `json:"offset"`
	Kept    bool      `json:"kept"`
	Subject string    `json:"subject,omitempty"`
	From    string    `json:"from,omitempty"`
}

func (c *Command) list(ctx context.Context, list *List, kept *nats.MailArchiveReader, stdio cli.IO) error {
	items := c.wanted(list)
	all := make([]listed, 0, min(len(items), c.Limit))
	var unreadable error
	for i := range items[:min(len(items), c.Limit)] {
		item := &items[i]
		line := listed{Time: item.Time, ID: item.ID, Tenant: item.Tenant, Source: item.Source, Label: item.Label.String(),
			P: item.P, Phi: item.Doubt.Phi, Offset: item.Doubt.Offset}
		if unreadable == nil {
			m, err := kept.Get(ctx, item.ID)
			switch {
			case err == nil:
				text := review.Read(m.Message)
				line.Kept, line.Subject, line.From = true, text.Subject, text.From
			case !errors.Is(err, nats.ErrNotArchived):
				unreadable = err
			}
		}
		all = append(all, line)
	}
	if unreadable != nil {
		fmt.Fprintf(stdio.Err, "what is kept of these messages cannot be read: %v\n", unreadable)
	}
	if c.JSON {
		return report.PrintLines(stdio.Out, all)
	}
	return printList(stdio.Out, all, items)
}

func printList(w io.Writer, all []listed, items []Item) error {
	if len(all) == 0 {
		return cli.Print(w, "no doubtful label: learners write them into the journal of answers where NATS has JetStream, "+
			"once the model has learnt 100 events\n")
	}
	table := report.NewTable("id", "label", "p", "φ", "source", "tenant", "age", "subject", "from")
	for i := range all {
		e := &all[i]
		table.Add(e.ID, e.Label, fmt.Sprintf("%.4f", e.P), fmt.Sprintf("%.4f", e.Phi), cli.Cell(e.Source), cli.Cell(e.Tenant),
			time.Since(e.Time).Round(time.Minute), cell(e.Subject), cell(e.From))
	}
	groups := report.NewTable("tenant", "source", "doubtful labels")
	for _, g := range Groups(items) {
		groups.Add(cli.Cell(g.Tenant), cli.Cell(g.Source), g.Labels)
	}
	return cli.Print(w, fmt.Sprintf("%v%d of %d doubtful labels\n\n%v", table, len(all), len(items), groups))
}

// cell is text of a message that fits a column.
func cell(s string) string {
	if s == "" {
		return "–"
	}
	return page.Clip(s, 50)
}
