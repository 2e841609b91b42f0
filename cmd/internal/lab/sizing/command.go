// Laboratory: how large an installation must be.

// Package sizing is `hamlet-lab bench day`: a part of a provider's day, run for real, and what it
// says about the whole day.
//
//	labels ─HTTP─> ingest ──> Kafka ──> learner ──> Redis ──> scorer <──NATS── gateway <─HTTP─ questions
//
// The services are processes of this program; the servers are the caller's. Mail is asked
// about as fast as it is answered, and labels are sent in step with it. The processor time of
// each process is divided by what it did. So the figures say what a message costs, and hardly
// depend on what else the machine does.
//
// [Plan] extrapolates from costs to a day. Its doc comment states the model.
package sizing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/progress"
	"hamlet/stream/nats"
)

// Day holds the flags of `hamlet-lab bench day`.
type Day struct {
	Sources []string `arg:"" optional:"" name:"source" help:"Files, directories, or - for standard input; .gz and .zst are unpacked (default synthetic mail)."`
	source.Flags

	Kafka   string `help:"Kafka, host:port." required:"" placeholder:"ADDR" group:"Servers"`
	NATS    string `name:"nats" help:"URL of NATS." required:"" placeholder:"URL" group:"Servers"`
	Redis   string `help:"Redis, host:port." required:"" placeholder:"ADDR" group:"Servers"`
	Servers string `help:"The DIR of deploy/servers, to measure the servers too." type:"existingdir" placeholder:"DIR" group:"Servers"`

	Scores    int           `help:"Messages to ask about." default:"1000000" placeholder:"N"`
	Labels    int           `help:"Labels to send." default:"10000" placeholder:"N"`
	Scale     float64       `help:"The day that is meant is so many times as large." default:"1000" placeholder:"X"`
	InFlight  int           `help:"Questions that wait at the same time." default:"8" placeholder:"N"`
	SaveEvery time.Duration `help:"Of the learner." default:"3s" placeholder:"D"`

	TableBits int `help:"Of the model." default:"18" placeholder:"N" group:"Model"`

	Peak      float64 `help:"The busiest hour's rate, to the day's mean." default:"2.5" placeholder:"X" group:"The day that is meant"`
	Busy      float64 `help:"Share of a core that is used in that hour." default:"0.5" placeholder:"X" group:"The day that is meant"`
	Replicas  float64 `help:"Of Kafka's topics." default:"3" placeholder:"N" group:"The day that is meant"`
	KeepDays  float64 `help:"Days that Kafka keeps events." default:"90" placeholder:"N" group:"The day that is meant"`
	Versions  float64 `help:"Versions of the model in Redis." default:"33" placeholder:"N" group:"The day that is meant"`
	JournalOf float64 `help:"Days that the journal of answers is to hold." default:"14" placeholder:"N" group:"The day that is meant"`

	JSON bool `name:"json" help:"Print one object in JSON instead of tables."`
}

// Help is shown by kong below the flags.
func (Day) Help() string {
	return `Examples:
  eval "$(deploy/servers start DIR)"
  hamlet-lab bench day --kafka $HAMLET_KAFKA --nats $HAMLET_NATS --redis $HAMLET_REDIS --servers DIR
  hamlet-lab bench day … --scores 20000 --labels 2000 --table-bits 20 --index index.csv corpus.tar.gz

It starts ingest, a learner, a scorer and a gateway as processes, on servers without passwords that
nobody else uses. Half of the labels are learnt at once. The others are sent while the gateway is
asked over HTTP, in step with the questions. Then it prints what each process used, what a message, a
label and a save cost, and what a day of --scale times as much needs.

Last, single labels are sent, each of which is a save: so the cost of saving and of loading a model is
known. Costs are processor time, so a busy machine changes them little. What the programs that ask use
is not counted.`
}

// Run runs the day and prints what it used.
func (c *Day) Run(ctx context.Context, stdio cli.IO) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	mail, err := c.post(ctx, stdio)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "hamlet-day-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := &run{day: c, dir: dir, model: fmt.Sprintf("day-%d", time.Now().UnixMilli()),
		progress: progress.NewCounter(stdio.Err)}
	defer r.progress.Close()
	defer r.stop()
	result, err := r.measure(ctx, mail)
	if err != nil {
		return err
	}
	r.progress.Close()
	if c.JSON {
		return cli.PrintJSON(stdio.Out, result)
	}
	for _, s := range result.sections() {
		if err := s.Print(stdio.Out); err != nil {
			return err
		}
	}
	return nil
}

func (c *Day) check() error {
	switch {
	case c.Scores < 100:
		return cli.Usagef("--scores: %d is below 100", c.Scores)
	case c.Labels < 20:
		return cli.Usagef("--labels: %d is below 20", c.Labels)
	case !(c.Busy > 0 && c.Busy <= 1):
		return cli.Usagef("--busy: %v is not above 0 and at most 1", c.Busy)
	case c.SaveEvery < 100*time.Millisecond:
		return cli.Usagef("--save-every: %v is below 100ms", c.SaveEvery)
	}
	if err := cli.Range("--in-flight", c.InFlight, 1, 1000); err != nil {
		return err
	}
	for _, f := range []struct {
		flag  string
		value float64
	}{{"--scale", c.Scale}, {"--peak", c.Peak}, {"--replicas", c.Replicas}, {"--keep-days", c.KeepDays},
		{"--versions", c.Versions}, {"--journal-of", c.JournalOf}} {
		if !(f.value > 0) || math.IsInf(f.value, 0) {
			return cli.Usagef("%s: %v is not above zero", f.flag, f.value)
		}
	}
	return nil
}

// post reads the source, or makes synthetic mail.
func (c *Day) post(ctx context.Context, stdio cli.IO) (*post, error) {
	cfg := c.Flags.Config(c.Sources, source.FlipFlags{})
	cfg.Stdin = stdio.In
	if cfg.None() {
		items, err := synthetic.Items(synthetic.Config{Seed: 1}, mostItems, source.FlipConfig{})
		if err != nil {
			return nil, err
		}
		return readPost(ctx, items)
	}
	src, err := source.Open(cfg)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	return readPost(ctx, src.Events())
}

// load is the day that is meant.
func (c *Day) load() Load {
	return Load{Scores: float64(c.Scores) * c.Scale, Labels: float64(c.Labels) * c.Scale, Peak: c.Peak, Busy: c.Busy,
		SaveEvery: c.SaveEvery.Seconds(), KeepDays: c.KeepDays, Replicas: c.Replicas, Versions: c.Versions,
		JournalOf: c.JournalOf}
}

// redisMemory returns what Redis' data take, in bytes; 0 where Redis does not say so.
func redisMemory(ctx context.Context, addr string) (float64, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	text, err := client.Info(ctx, "memory").Result()
	var refusal redis.Error
	if errors.As(err, &refusal) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("memory of Redis: %w", err)
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory_dataset:"); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, nil
}

// A journalState is what NATS says of the journal's stream. A message has several lines.
type journalState struct{ messages, bytes, last float64 }

// journal returns the state of the journal's stream, nothing without JetStream.
func journal(ctx context.Context, url string) (s journalState) {
	conn, err := natsgo.Connect(url)
	if err != nil {
		return s
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return s
	}
	stream, err := js.Stream(ctx, nats.JournalStream)
	if err != nil {
		return s
	}
	state := stream.CachedInfo().State
	return journalState{float64(state.Msgs), float64(state.Bytes), float64(state.LastSeq)}
}

// logBytes returns the bytes of a topic's log below dir.
func logBytes(dir, topic string) (sum float64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".log" {
			return err
		}
		name := filepath.Base(filepath.Dir(path))
		if i := strings.LastIndexByte(name, '-'); i < 0 || name[:i] != topic {
			return nil
		}
		info, err := d.Info()
		if err == nil {
			sum += float64(info.Size())
		}
		return err
	})
	if err == nil && sum == 0 {
		err = fmt.Errorf("no log of topic %s below %s", topic, dir)
	}
	return sum, err
}

// quantile returns a quantile of sorted values, NaN of none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
