package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/offline/evalpage"
	"hamlet/cmd/internal/offline/replay"
	"hamlet/cmd/internal/operate/eventlog"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/background"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/progress"
	"hamlet/cmd/internal/show/report"
)

type evalCommand struct {
	Sources []string `arg:"" optional:"" name:"source" help:"Files, directories, or - for standard input; .gz and .zst are unpacked."`
	source.Flags
	source.FlipFlags
	Generate  int             `help:"Replay N synthetic mails and no source." default:"0" placeholder:"N" group:"Synthetic mail"`
	Synthetic synthetic.Flags `embed:""`
	settings.ResearchModel
	Delay      int    `help:"Learn an event after N further ones have been scored." default:"0" placeholder:"N"`
	TeachFirst int    `help:"Learn only the first N events; 0 is all." default:"0" placeholder:"N"`
	From       int    `help:"Leave the first N events out of the metrics." default:"0" placeholder:"N"`
	Scores     string `help:"Write id,label,p,log_odds,lo,hi of each event, as predicted before it was learnt; - is standard output, and the table goes to standard error then." placeholder:"FILE"`
	Alerts     string `help:"Write a line of JSON for each step of an incident; - as in --scores." placeholder:"FILE"`
	Save       string `help:"Write the model's bytes at the end; - as in --scores." placeholder:"FILE"`
	Report     string `help:"Write a page with curves, index.html, into this directory." placeholder:"DIR"`
	JSON       bool   `name:"json" help:"Print one object in JSON instead of a table."`

	// The services' variable and key of a file do not turn eval into a replay.
	Kafka []string `help:"Replay the log of a model from these brokers, in its order. --help-all has how they are reached." placeholder:"ADDR" env:"-" group:"Replay"`
	settings.ModelName
	settings.KafkaAccess
	Log string `help:"Replay a file of hamlet log export." type:"existingfile" placeholder:"FILE" env:"-" group:"Replay" aliases:"order"`
}

// Help is shown by kong below the flags.
func (evalCommand) Help() string {
	return `Examples:
  hamlet eval SMSSpamCollection
  hamlet eval --spam Junk/ --ham INBOX/ --scores scores.csv
  hamlet eval --index index.csv corpus.tar.gz --report page/
  hamlet eval spambase.data --shuffle 7 --json
  hamlet eval orders.csv --text title,notes --missing age
  hamlet eval stream.svm.gz --flip .1 --flip-from 6000 --alerts alerts.jsonl
  hamlet eval --generate 20000 --new-policy 10000 --alerts alerts.jsonl
  hamlet eval spambase.data --set vector_head.site=jj
  hamlet eval --kafka kafka:9092 --model news
  hamlet eval --log news.jsonl.zst

The services make the same model from the same events: model_sha256 is equal.`
}

func (c *evalCommand) Run(ctx context.Context, stdio cli.IO) (err error) {
	if err := errors.Join(cli.NotNegative("--delay", c.Delay), cli.NotNegative("--teach-first", c.TeachFirst),
		cli.NotNegative("--from", c.From), cli.NotNegative("--generate", c.Generate), cli.NotNegative("--limit", c.Limit),
		c.FlipFlags.Check()); err != nil {
		return err
	}
	table, err := c.tableOutput(stdio)
	if err != nil {
		return err
	}
	src, err := c.open(ctx, stdio.In)
	if err != nil {
		return err
	}
	defer src.Close()
	events, err := src.Items()
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	modelConfig, err := c.ResearchModel.Config(src.Dense)
	if err != nil {
		return err
	}
	scores, closeScores, err := create("--scores", c.Scores, stdio.Out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeScores()) }()
	alerts, closeAlerts, err := create("--alerts", c.Alerts, stdio.Out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAlerts()) }()
	page, err := c.newPage()
	if err != nil {
		return err
	}
	runner := background.New(nil)
	defer runner.Close()

	rejections := report.Rejections{W: stdio.Err}
	failures := report.Rejections{W: stdio.Err, What: "rebuild failed, the ensemble before it goes on"}
	counter := progress.NewCounter(stdio.Err)
	config := replay.Config{
		Model: modelConfig, Delay: c.Delay, TeachFirst: c.TeachFirst, From: c.From, Scores: scores,
		Alerts: alerts, Runner: runner, Rejected: rejections.Add, RebuildFailed: failures.Add,
		Progress: func(n int) { counter.Set(n, src.Total()) },
		SetAside: func(p *model.PanicError) {
			fmt.Fprintf(stdio.Err, "%v; please report it with the stack below; "+
				"the replay begins again without this event, as with --set set_aside=%s\n%s\n", p, p.Key, p.Stack)
		},
	}
	if page != nil {
		config.Observer = page
	}
	result, m, err := replay.Run(ctx, config, events)
	counter.Close()
	rejections.Close()
	failures.Close()
	if err != nil {
		return err
	}
	if err := result.Err(); err != nil {
		return err
	}
	if c.Save != "" {
		b, err := m.AppendBinary(nil)
		if err != nil {
			return err
		}
		if err := save(c.Save, b, stdio.Out); err != nil {
			return fmt.Errorf("save the model: %w", err)
		}
	}
	if page != nil {
		if err := page.Write(c.Report, result, "hamlet "+strings.Join(os.Args[1:], " "), time.Now()); err != nil {
			return err
		}
	}
	if c.JSON {
		return result.WriteJSON(stdio.Out)
	}
	return result.WriteTable(table)
}

func (c *evalCommand) open(ctx context.Context, stdin io.Reader) (*ingest.Input, error) {
	cfg := c.Flags.Config(c.Sources, c.FlipFlags)
	if len(c.Kafka) > 0 || c.Log != "" {
		return c.openLog(ctx, &cfg)
	}
	cfg.Stdin = stdin
	if c.Generate == 0 {
		return settings.OpenSource(cfg, &c.Synthetic)
	}
	if len(c.Sources) > 0 {
		return nil, cli.Usagef("--generate: synthetic mail is in place of a source, and there is %s", c.Sources[0])
	}
	n := c.Generate
	if cfg.Limit > 0 {
		n = min(n, cfg.Limit)
	}
	return settings.OpenSynthetic(&c.Synthetic, n, cfg.Flip, &c.Flags)
}

// openLog opens the log of a model: in a cluster or a file.
func (c *evalCommand) openLog(ctx context.Context, cfg *source.Config) (*ingest.Input, error) {
	flag := "--kafka"
	if c.Log != "" {
		flag = "--log"
	}
	switch about := cmp.Or(c.Flags.Given(), c.Synthetic.Given()); {
	case c.Log != "" && len(c.Kafka) > 0:
		return nil, cli.Usagef("--log and --kafka: give one of them")
	case !cfg.None() || c.Generate != 0:
		return nil, cli.Usagef("%s: what it names is in place of a source, and there is one", flag)
	case c.Flip != nil && *c.Flip != 0:
		return nil, cli.Usagef("%s: the log says what was learnt, and --flip would say something else", flag)
	case about != "":
		return nil, cli.Usagef("%s is about a source, and %s is in place of one", about, flag)
	case c.Sampled != nil:
		return nil, cli.Usagef("%s: the log says which labels were asked for, and --sampled would say something else", flag)
	}
	src := &ingest.Input{Dense: c.Flags.Dense, Close: func() error { return nil }, Total: func() int { return 0 }}
	if c.Log != "" {
		src.Items = func() (ingest.Items, error) { return c.limited(eventlog.Items(c.Log, eventlog.File(c.Log))), nil }
		return src, eventlog.CheckFile(c.Log)
	}
	brokers, err := c.KafkaAccess.Config(c.Kafka, "hamlet-eval", nil)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	if err := brokers.Ping(ctx); err != nil {
		return nil, err
	}
	log, err := eventlog.Open(ctx, brokers, c.ModelName.Model)
	if err != nil {
		return nil, eventlog.Explain(err, c.ModelName.Model)
	}
	src.Close = log.Close
	src.Items = func() (ingest.Items, error) { return c.limited(eventlog.Items(log.Name, log.Records(ctx))), nil }
	return src, nil
}

// limited ends items as --limit says.
func (c *evalCommand) limited(items ingest.Items) ingest.Items {
	if c.Flags.Limit == 0 {
		return items
	}
	return func(yield func(source.Item, error) bool) {
		n := 0
		for item, err := range items {
			if n++; !yield(item, err) || n == c.Flags.Limit {
				return
			}
		}
	}
}

// newPage makes the directory of --report, so that a wrong one is told at once. It returns
// nil without --report.
func (c *evalCommand) newPage() (*evalpage.Recorder, error) {
	if c.Report == "" {
		return nil, nil
	}
	if err := os.MkdirAll(c.Report, 0o755); err != nil {
		return nil, fmt.Errorf("--report: %w", err)
	}
	return evalpage.NewRecorder(), nil
}

// tableOutput returns where the table goes: standard error if a flag's data goes to
// standard output. Two kinds of data there are wrong usage.
func (c *evalCommand) tableOutput(stdio cli.IO) (io.Writer, error) {
	first, table := "", stdio.Out
	for _, data := range []struct {
		flag     string
		onStdout bool
	}{{"--scores -", c.Scores == "-"}, {"--alerts -", c.Alerts == "-"}, {"--save -", c.Save == "-"}, {"--json", c.JSON}} {
		switch {
		case !data.onStdout:
		case first != "":
			return nil, cli.Usagef("%s and %s both write to standard output: name a file for one of them", first, data.flag)
		default:
			first, table = data.flag, stdio.Err
		}
	}
	return table, nil
}

// create opens the file that a flag names for writing. An empty path is nowhere,
// "-" is stdout.
func create(flag, path string, stdout io.Writer) (io.Writer, func() error, error) {
	nothing := func() error { return nil }
	switch path {
	case "":
		return nil, nothing, nil
	case "-":
		return stdout, nothing, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", flag, err)
	}
	return f, f.Close, nil
}

// save writes b to the file at path, or to stdout if path is "-".
func save(path string, b []byte, stdout io.Writer) error {
	if path == "-" {
		_, err := stdout.Write(b)
		return err
	}
	return os.WriteFile(path, b, 0o644)
}
