package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/progress"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// A Command holds the commands below `hamlet log` and their flags, for kong to fill.
type Command struct {
	Export exportCommand `cmd:"" help:"Write a model's log to a file."`
	Import importCommand `cmd:"" help:"Fill the log of a new model from such a file."`
	Merge  mergeCommand  `cmd:"" help:"Fill the log of a new model from a topic of several partitions."`

	Show showCommand `cmd:"" help:"Show the last events, dead letters, receipts or predictions."`
	Skip skipCommand `cmd:"" help:"Leave damaged records out of the log of hamlet up."`

	JSON bool `name:"json" help:"Print one JSON object."`
	settings.Machine
	settings.Kafka
}

// Help is what kong prints below the flags.
func (Command) Help() string {
	return `Examples:

  hamlet log export news.jsonl.zst --model news     the log as a file
  hamlet eval --log news.jsonl.zst                  learns it again: the same model_sha256
  hamlet log import news.jsonl.zst --model copy     and back, as the log of another model
  hamlet log merge --from news --to one             several partitions of hamlet 0.1.0 as one log
  hamlet log show dead-letters                      why labels were not learnt
  hamlet log skip 4711 4712                         one damaged record is left out

The log of a model is its events topic, hamlet.events.MODEL, which has one partition. The
model is a function of it.`
}

type exportCommand struct {
	File string `arg:"" name:"file" help:"The file to write; .gz and .zst are packed."`
	settings.ModelName
}

// Help is what kong prints below the flags.
func (exportCommand) Help() string {
	return `Example:

  hamlet log export news.jsonl.zst --model news

The file has a line of JSON for each record, in the order of the log, and a line before and
behind them. It is mail: only its owner may read it. hamlet eval --log learns it again, without
Kafka. Events that come meanwhile are not in it. A log whose beginning retention has deleted, as
is normal after 90 days, is refused: nobody can learn the same model from the rest.

A topic of several partitions is of hamlet 0.1.0. If one model learnt them, its hamlet order
export writes the same kind of file. If each had a model, there is hamlet log merge.`
}

type importCommand struct {
	File string `arg:"" name:"file" type:"existingfile" help:"A file of hamlet log export, or of 0.1.0's order export."`
	settings.ModelName
	settings.Topic
}

// Help is what kong prints below the flags.
func (importCommand) Help() string {
	return `Examples:

  hamlet log import news.jsonl.zst --model one      the log of a new model
  learner --model one                               learns it
  hamlet eval --log news.jsonl.zst                  prints its model_sha256, and
  hamlet model show one                             prints the same once it has learnt all

The records are written as they stand: keys, values, headers, times and order. So the model that
learns them has the same model_sha256. The topic is made with one partition if it is missing.

It may be stopped or killed at any time: the same command goes on where it was. For that, what is
in the topic must be the beginning of the file, byte for byte. Else it refuses, and writes
nothing. Start ingest once it has ended. The learner may run.`
}

type mergeCommand struct {
	From string `required:"" help:"The model whose topic has several partitions." placeholder:"NAME" env:"-"`
	To   string `required:"" help:"The new model." placeholder:"NAME" env:"-"`

	AcceptLostBeginning bool `help:"Merge what is left, though the model cannot be learnt again as it was." env:"-"`
	settings.Topic
}

// Help is what kong prints below the flags.
func (mergeCommand) Help() string {
	return `Examples:

  hamlet log merge --from news --to one             then: learner --model one
  hamlet log merge --from news --to one --accept-lost-beginning

For topics of hamlet 0.1.0 with a model for each partition. The records are written as they
stand, by their times, and where these are equal by partition. The topic is made with one
partition if it is missing. One model learns it, which is another than those were, and better.

Stop ingest first. The command may be stopped or killed at any time: it goes on where it was.
It needs the right to see the topic hamlet.order.NAME, which is there if one model learnt all.

It refuses a topic from which retention has deleted the beginning, and one that a single model
learnt: hamlet order export of 0.1.0 has that one's order, and hamlet log import makes the same
model. --accept-lost-beginning merges what is left, by time. Let the old version of the model
answer, pinned, until the new one is better.`
}

// Run runs the command that was chosen.
func (c *Command) Run(ctx context.Context, chosen cli.Subcommand, stdio cli.IO) error {
	log := slog.New(slog.NewTextHandler(stdio.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	brokers, err := c.Machine.Logs(ctx, c.Kafka, "hamlet-log", log)
	if err != nil {
		return err
	}
	defer c.Machine.Close()
	var does func(context.Context, stream.Logs, *progress.Counter) (any, string, error)
	switch verb, _, _ := strings.Cut(string(chosen), " "); verb {
	case "export":
		does = c.Export.run
	case "import":
		does = c.Import.run
	case "show":
		does = c.Show.run
	case "skip":
		does = c.Skip.run
	default:
		does = c.Merge.run
	}
	if err := brokers.Ping(ctx); err != nil {
		return err
	}
	counter := progress.NewCounter(stdio.Err)
	done, text, err := does(ctx, brokers, counter)
	counter.Close()
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(stdio.Out, done)
	}
	return cli.Print(stdio.Out, text)
}

func (c *exportCommand) run(ctx context.Context, brokers stream.Logs, counter *progress.Counter) (any, string, error) {
	log, err := Open(ctx, brokers, c.Model)
	if err != nil {
		return nil, "", Explain(err, c.Model)
	}
	defer log.Close()
	n, err := Export(counted(log.Records(ctx), counter), c.Model, c.File)
	if err != nil {
		return nil, "", fmt.Errorf("export the log of model %s: %w", c.Model, err)
	}
	return struct {
		Model   string `json:"model"`
		File    string `json:"file"`
		Records int    `json:"records"`
	}{c.Model, c.File, n}, fmt.Sprintf("%d records of %s are in %s\n", n, log.Name, c.File), nil
}

func counted(records Records, counter *progress.Counter) Records {
	return func(yield func(*stream.Record, error) bool) {
		n := 0
		for r, err := range records {
			if n++; !yield(r, err) {
				return
			}
			counter.Set(n, 0)
		}
	}
}

func (c *importCommand) run(ctx context.Context, brokers stream.Logs, counter *progress.Counter) (any, string, error) {
	if err := errors.Join(c.Topic.Check(), CheckFile(c.File)); err != nil {
		return nil, "", err
	}
	return fill(ctx, brokers, c.Model, File(c.File), c.Topic, func(n int) { counter.Set(n, 0) })
}

func (c *mergeCommand) run(ctx context.Context, brokers stream.Logs, counter *progress.Counter) (
	any, string, error) {
	from, to := settings.ModelName{Model: c.From}, settings.ModelName{Model: c.To}
	switch {
	case from.Validate() != nil || to.Validate() != nil:
		return nil, "", cli.Usagef("--from and --to: a name is 1 to 64 of a–z, 0–9 and -")
	case c.From == c.To:
		return nil, "", cli.Usagef("--to: %s is the model whose topic is merged; name a new one", c.To)
	}
	if err := c.Topic.Check(); err != nil {
		return nil, "", err
	}
	kafka, ok := brokers.(kafka.Config)
	if !ok {
		return nil, "", cli.Usagef("only a topic of Kafka has several partitions: name its brokers with --kafka")
	}
	records, total, err := Merge(ctx, kafka, c.From, c.AcceptLostBeginning)
	if err != nil {
		return nil, "", Explain(err, c.From)
	}
	return fill(ctx, brokers, c.To, records, c.Topic, func(n int) { counter.Set(n, int(total)) })
}

func fill(ctx context.Context, brokers stream.Logs, model string, records Records, topic settings.Topic,
	count func(n int)) (any, string, error) {
	var done Filled
	log, oldest, err := Make(ctx, brokers, model, records, topic)
	if err == nil {
		done, err = log.Fill(ctx, records, oldest, count)
		err = errors.Join(err, log.Close())
	}
	name := stream.EventsTopic(model)
	var partitions *PartitionsError
	switch {
	case errors.As(err, &partitions):
		return nil, "", fmt.Errorf("%w; name a new model, whose log is made with one", err)
	case errors.Is(err, ErrForeign):
		return nil, "", fmt.Errorf("%w; see that nobody else writes to the topic, then name a new model, "+
			"or delete the topic and begin again", err)
	case errors.Is(err, ErrOld):
		return nil, "", fmt.Errorf("%w, and would delete it: keep them for longer, with --retention of a new topic "+
			"(-1s: for ever), or with its setting retention.ms", err)
	case err != nil:
		return nil, "", fmt.Errorf("%d records are in topic %s, and the same command goes on there: %w",
			done.Records, name, err)
	}
	text := fmt.Sprintf("%d records are in topic %s", done.Records, name)
	if done.Before > 0 {
		text += fmt.Sprintf(", %d of them from before", done.Before)
	}
	if done.After > 0 {
		text += fmt.Sprintf("; %d records follow that came later", done.After)
	}
	return struct {
		Model string `json:"model"`
		Topic string `json:"topic"`
		Filled
	}{model, name, done}, text + "\n", nil
}

// Explain adds to an error of Open or Merge what leads out. It names the model that was asked for.
func Explain(err error, model string) error {
	const order = "with hamlet 0.1.0: hamlet order export FILE --model %s, " +
		"then with this one: hamlet log import FILE --model NEW"
	unseen := fmt.Sprintf("this user may not see whether there is a topic %s; ask again as one who may (Describe), "+
		"such as the administrator of Kafka", orderTopic(model))
	var (
		partitions *PartitionsError
		ordered    *OrderedError
		lost       *LostError
	)
	switch {
	case errors.As(err, &partitions) && partitions.Order == OrderUnknown:
		return fmt.Errorf("%w; it is not known whether one model learnt them all: %s", err, unseen)
	case errors.As(err, &partitions) && partitions.Order == Ordered:
		return fmt.Errorf("%w; one model learnt them, and its log is made "+order, err, model)
	case errors.As(err, &partitions):
		return fmt.Errorf("%w; make one log of them: hamlet log merge --from %s --to NEW", err, model)
	case errors.As(err, &ordered) && ordered.Order == OrderUnknown:
		return fmt.Errorf("%w: %s", err, unseen)
	case errors.As(err, &ordered):
		return fmt.Errorf("%w; the same one is made "+order+
			"; --accept-lost-beginning merges them all the same, where that refuses", err, model)
	case errors.As(err, &lost):
		return fmt.Errorf("%w; --accept-lost-beginning merges what is left, for another model", err)
	case errors.Is(err, follow.ErrNoBeginning):
		return fmt.Errorf("%w; hamlet log merge --from %s --to NEW --accept-lost-beginning copies what is left, "+
			"for another model", err, model)
	case errors.Is(err, ErrNone):
		return fmt.Errorf("%w: --model names the model", err)
	}
	return err
}
