// Package orders is `hamlet order`: it shows the order in which one model learns several
// partitions, exports it with its events, and has the model go on after a gap.
//
// The order is a log: package order has its records, package sequencer their rules. The
// command reads that log, and the events for an export. Only accept-gap writes.
package orders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/orderlog"
	"hamlet/cmd/internal/sequencer"
	"hamlet/cmd/internal/settings"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// A Command holds the commands below `hamlet order` and their flags, for kong to fill.
type Command struct {
	Show   show      `cmd:"" default:"withargs" help:"Show how far each partition is ordered. The default."`
	Export export    `cmd:"" help:"Write the order with its events to a file."`
	Gap    acceptGap `cmd:"" name:"accept-gap" help:"Go on in a partition whose next records are deleted."`

	JSON bool `name:"json" help:"Print one JSON object."`
	settings.ModelName
	settings.Kafka
}

// Help is what kong prints below the flags.
func (Command) Help() string {
	return `Examples:

  hamlet order                                how far each partition is ordered
  hamlet order export order.jsonl.zst         the order, with its events
  hamlet eval --order order.jsonl.zst         learns it again: the same model_sha256
  hamlet order accept-gap 2                   go on behind records that retention took

One model of several partitions takes their records in the order of a log, the topic
hamlet.order.MODEL. Its active learner writes that log.`
}

type show struct{}

type export struct {
	File string `arg:"" name:"file" help:"The file to write; .gz and .zst are packed."`
}

// Help is what kong prints below the flags.
func (export) Help() string {
	return `Example:

  hamlet order export order.jsonl.zst --model news

The file has a line of JSON for each record, in the order of the model, and a line before
and behind them. It is mail: only its owner may read it. hamlet eval --order learns it
again, without Kafka. Of a model of one partition it has that partition.`
}

type acceptGap struct {
	Partition int `arg:"" name:"partition" help:"The partition."`
}

// Help is what kong prints below the flags.
func (acceptGap) Help() string {
	return `Example:

  hamlet order accept-gap 2 --model news

Where retention has deleted records that the model has not learnt, its learners stop and
say so. This command writes to the order log that the model goes on without them, at the
first record that is left. Then start the learners again. All of them leave out the same
records, and so does every replay.

It does not help where the order log says already that the model learns the records, and
the saved model has not. Then the model is learnt again: learner --model NEW --events-of.

It needs the right to write the order log, which the learner's user of Kafka has.`
}

// Run runs the command that was chosen.
func (c *Command) Run(ctx context.Context, command string, stdout, stderr io.Writer) error {
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	reach, err := c.Kafka.OrRunning()
	if err != nil {
		return err
	}
	brokers, err := reach.Config("hamlet-order", log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	if err := kafka.Ping(ctx, brokers); err != nil {
		return err
	}
	cfg, err := orderlog.Of(ctx, brokers, c.Model)
	if err != nil {
		return err
	}
	switch verb, _, _ := strings.Cut(command, " "); verb {
	case "export":
		return c.export(ctx, cfg, stdout)
	case "accept-gap":
		return c.acceptGap(ctx, cfg, stdout)
	}
	return c.show(ctx, cfg, stdout)
}

// A Shown is what --json prints.
type Shown struct {
	Model      string      `json:"model"`
	Order      int64       `json:"order"` // the end of the order log
	Partitions []Partition `json:"partitions"`
	Writers    []Writer    `json:"writers"` // by name
}

// A Partition says how far a partition is ordered.
type Partition struct {
	Partition int    `json:"partition"`
	First     int64  `json:"first"` // of the log
	Next      int64  `json:"next"`  // the offsets below are ordered
	End       int64  `json:"end"`   // of the log
	Gaps      uint32 `json:"gaps"`  // accepted
	Joined    bool   `json:"joined"`
	Lost      bool   `json:"lost"` // it joined, and retention has deleted records that are not ordered
}

// A Writer has written records of the order log.
type Writer struct {
	Name    string `json:"name"`
	Records int    `json:"records"`
	Last    int64  `json:"last"` // the offset behind its last record
}

// Read reads how far the partitions are ordered. It is an error if the model has no order log.
func Read(ctx context.Context, cfg orderlog.Config, model string) (Shown, error) {
	shown := Shown{Model: model}
	if cfg.Order == "" {
		return shown, fmt.Errorf("model %s has no order log: topic %s has one partition, and its offsets are the order", model, cfg.Events)
	}
	at := int64(0)
	writers := map[string]*Writer{}
	s, err := orderlog.Walk(ctx, cfg, func(d *sequencer.Decision) error {
		at++
		w := writers[d.Record.Writer]
		if w == nil {
			w = &Writer{Name: d.Record.Writer}
			writers[w.Name] = w
		}
		w.Records++
		w.Last = at
		return nil
	})
	if err != nil {
		return shown, err
	}
	first, end, err := kafka.Offsets(ctx, cfg.Kafka, cfg.Events)
	if err != nil {
		return shown, err
	}
	shown.Order = s.Log.Next
	for _, name := range slices.Sorted(maps.Keys(writers)) {
		shown.Writers = append(shown.Writers, *writers[name])
	}
	for number := range len(end) {
		p := Partition{Partition: number, First: first[number], End: end[number]}
		if p.Joined = number < len(s.Places); p.Joined {
			p.Next, p.Gaps = s.Places[number].Next, s.Places[number].Gaps
		}
		p.Lost = p.Joined && p.Next < p.First
		shown.Partitions = append(shown.Partitions, p)
	}
	return shown, nil
}

func (c *Command) show(ctx context.Context, cfg orderlog.Config, w io.Writer) error {
	shown, err := Read(ctx, cfg, c.Model)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(w, shown)
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "partition\tordered up to\tend of the log\tnot ordered yet\tgaps\t")
	lost := []string{}
	for _, p := range shown.Partitions {
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%d\t\n", p.Partition, p.Next, p.End, max(0, p.End-max(p.Next, p.First)), p.Gaps)
		switch {
		case !p.Joined && p.First > 0:
			lost = append(lost, fmt.Sprintf("Partition %d has not joined the model, and retention has deleted its offsets below %d. "+
				"Its active learner lets it join first.\n", p.Partition, p.First))
		case p.Lost:
			lost = append(lost, fmt.Sprintf("Partition %d: retention has deleted the offsets %d to %d before they were ordered. "+
				"To go on without them: hamlet order accept-gap %[1]d --model %[4]s\n", p.Partition, p.Next, p.First-1, c.Model))
		}
	}
	_ = table.Flush() // to memory
	fmt.Fprintf(&b, "The order log, topic %s, ends at offset %d.\n%s", cfg.Order, shown.Order, strings.Join(lost, ""))
	_, err = io.WriteString(w, b.String())
	return written(err)
}

func (c *Command) export(ctx context.Context, cfg orderlog.Config, w io.Writer) error {
	done, err := orderlog.Export(ctx, cfg, c.Model, c.Export.File)
	if err != nil {
		return fmt.Errorf("export the order of model %s: %w", c.Model, err)
	}
	if c.JSON {
		return printJSON(w, struct {
			Model   string `json:"model"`
			File    string `json:"file"`
			Records int    `json:"records"`
			Order   int64  `json:"order"`
		}{c.Model, c.Export.File, done.Records, done.Order})
	}
	_, err = fmt.Fprintf(w, "%d records, up to offset %d of the order, are in %s\n", done.Records, done.Order, c.Export.File)
	return written(err)
}

// operator is the writer of records that an operator asked for.
const operator = "hamlet order"

func (c *Command) acceptGap(ctx context.Context, cfg orderlog.Config, w io.Writer) error {
	shown, err := Read(ctx, cfg, c.Model)
	if err != nil {
		return err
	}
	return c.goOn(ctx, cfg, shown, w)
}

// goOn writes that the model goes on behind a gap that was shown, and reads whether it does.
func (c *Command) goOn(ctx context.Context, cfg orderlog.Config, shown Shown, w io.Writer) error {
	number := c.Gap.Partition
	switch {
	case number < 0 || number >= len(shown.Partitions):
		return cli.Usagef("model %s has no partition %d in its order: hamlet order shows those it has", c.Model, number)
	case !shown.Partitions[number].Joined:
		return fmt.Errorf("nothing is written: partition %d has not joined model %s: its active learner lets it join first", number, c.Model)
	}
	p := shown.Partitions[number]
	if !p.Lost {
		return fmt.Errorf("nothing is written: partition %d has all records from offset %d on, up to which it is ordered", number, p.Next)
	}
	record := order.Record{Kind: order.Gap, Writer: operator, Partition: number, From: p.Next, To: p.First}
	value, err := record.AppendProto(nil)
	if err != nil {
		return err
	}
	producer, err := kafka.NewProducer(cfg.Kafka)
	if err != nil {
		return err
	}
	err = producer.Publish(ctx, kafka.Record{Topic: order.Topic(c.Model), Value: value})
	if err := errors.Join(err, producer.Close()); err != nil {
		return fmt.Errorf("write to the order log of model %s: %w", c.Model, err)
	}
	now, err := Read(ctx, cfg, c.Model)
	if err != nil {
		return fmt.Errorf("a record is written, read whether the model goes on: %w", err)
	}
	if next := now.Partitions[number].Next; next < p.First {
		return fmt.Errorf("the record that was written changes nothing, because another one came before it: "+
			"partition %d is ordered up to offset %d now; look with hamlet order, and try again", number, next)
	}
	if c.JSON {
		return printJSON(w, struct {
			Model     string `json:"model"`
			Partition int    `json:"partition"`
			From      int64  `json:"from"`
			To        int64  `json:"to"`
		}{c.Model, number, p.Next, p.First})
	}
	_, err = fmt.Fprintf(w, "The model %s goes on in partition %d of topic %s at offset %d, without %d records. Start its learners.\n",
		c.Model, number, stream.EventsTopic(c.Model), p.First, p.First-p.Next)
	return written(err)
}

func printJSON[T any](w io.Writer, v T) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("the order in JSON: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return written(err)
}

// written says what an error in writing was about.
func written(err error) error {
	if err != nil {
		return fmt.Errorf("write about the order: %w", err)
	}
	return nil
}
