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

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/lab/synthetic"
	"hamlet/cmd/internal/progress"
	"hamlet/cmd/internal/source"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// Day holds the flags of `hamlet bench day`.
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

	TableBits  int    `help:"Of the model." default:"18" placeholder:"N" group:"Model"`
	Partitions int    `help:"Of the events topic." default:"1" placeholder:"N" group:"Model"`
	Models     string `help:"one, or partition: one each." enum:"one,partition" default:"one" placeholder:"one|partition" group:"Model"`

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
  eval "$(deploy/servers start /tmp/day)"
  hamlet bench day --kafka $HAMLET_KAFKA --nats $HAMLET_NATS --redis $HAMLET_REDIS --servers /tmp/day
  hamlet bench day … --scores 20000 --labels 2000 --table-bits 20 --index index.csv corpus.tar.gz

It starts ingest, a learner, a scorer and a gateway as processes, on servers without passwords that
nobody else uses. Half of the labels are learnt at once. The others are sent while the gateway is
asked over HTTP, in step with the questions. Then it prints what each process used, what a message, a
label and a save cost, and what a day of --scale times as much needs.

Costs are processor time, so a busy machine changes them little. A label's and a save's cost are told
apart by the two phases, which differ in saves for each label. What the programs that ask use is not
counted.`
}

// A phase is what a learner did.
type phase struct{ labels, saves, cpu float64 }

// split returns the processor time of a label and of a save, from two phases. It is false
// where the phases are too much alike.
func split(a, b phase) (label, save float64, ok bool) {
	det := a.labels*b.saves - b.labels*a.saves
	if math.Abs(det) < 1e-3*a.labels*b.saves || a.labels == 0 || b.labels == 0 {
		return 0, 0, false
	}
	label = (a.cpu*b.saves - b.cpu*a.saves) / det
	save = (a.labels*b.cpu - b.labels*a.cpu) / det
	return max(0, label), max(0, save), true
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
	r := &run{day: c, dir: dir, model: fmt.Sprintf("day-%d", time.Now().UnixMilli()), progress: progress.NewCounter(stdio.Err)}
	defer r.progress.Close()
	defer r.stop()
	result, err := r.measure(ctx, mail)
	if err != nil {
		return err
	}
	r.progress.Close()
	if c.JSON {
		return result.writeJSON(stdio.Out)
	}
	return result.writeTables(stdio.Out)
}

func (c *Day) check() error {
	switch {
	case c.Scores < 100:
		return cli.Usagef("--scores: %d is below 100", c.Scores)
	case c.Labels < 20:
		return cli.Usagef("--labels: %d is below 20", c.Labels)
	case c.InFlight < 1 || c.InFlight > 1000:
		return cli.Usagef("--in-flight: %d is not in 1…1000", c.InFlight)
	case c.Partitions < 1 || c.Partitions > 1000:
		return cli.Usagef("--partitions: %d is not in 1…1000", c.Partitions)
	case !(c.Busy > 0 && c.Busy <= 1):
		return cli.Usagef("--busy: %v is not above 0 and at most 1", c.Busy)
	case c.SaveEvery < 100*time.Millisecond:
		return cli.Usagef("--save-every: %v is below 100ms", c.SaveEvery)
	}
	for _, f := range []struct {
		flag  string
		value float64
	}{{"--scale", c.Scale}, {"--peak", c.Peak}, {"--replicas", c.Replicas}, {"--keep-days", c.KeepDays}, {"--versions", c.Versions}, {"--journal-of", c.JournalOf}} {
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

// A run is one day with its processes.
type run struct {
	day      *Day
	dir      string
	model    string
	progress *progress.Counter

	ingest, learner, scorer, gateway *process
	servers                          []*process
}

// stop ends the services.
func (r *run) stop() {
	for _, p := range []*process{r.gateway, r.ingest, r.scorer, r.learner} {
		p.stop()
	}
}

// start starts the services. The learner is first: it makes the topics.
func (r *run) start(ctx context.Context) (err error) {
	c := r.day
	model := []string{"--model", r.model}
	kafka := append(model, "--kafka", c.Kafka, "--partitions", strconv.Itoa(c.Partitions))
	redis, nats := []string{"--redis", c.Redis}, []string{"--nats", c.NATS}
	for _, s := range []struct {
		process **process
		name    string
		ready   bool
		args    [][]string
	}{
		{&r.learner, "learner", true, [][]string{kafka, redis, nats, {"--models", c.Models, "--save-every", c.SaveEvery.String(), "--table-bits", strconv.Itoa(c.TableBits)}}},
		{&r.ingest, "ingest", true, [][]string{kafka, {"--token", token}}},
		{&r.scorer, "scorer", false, [][]string{model, redis, nats}},
		{&r.gateway, "gateway", false, [][]string{model, nats, {"--deadline", "20s"}}},
	} {
		var args []string
		for _, a := range s.args {
			args = append(args, a...)
		}
		if *s.process, err = start(ctx, r.dir, s.name, s.ready, args...); err != nil {
			return err
		}
	}
	if c.Servers != "" {
		r.servers = servers(c.Servers)
	}
	return nil
}

// each calls f for all processes.
func (r *run) each(f func(*process) error) (err error) {
	for _, p := range append([]*process{r.ingest, r.learner, r.scorer, r.gateway}, r.servers...) {
		err = errors.Join(err, f(p))
	}
	return err
}

// learnt waits until n labels are learnt and saved, and returns how many saves there were.
func (r *run) learnt(ctx context.Context, n int) (saves float64, err error) {
	for {
		records, err1 := r.learner.metric(ctx, "hamlet_learner_records_total")
		unsaved, err2 := r.learner.metric(ctx, "hamlet_learner_unsaved_records")
		saves, err3 := r.learner.metric(ctx, "hamlet_learner_save_seconds_count")
		if err := errors.Join(err1, err2, err3); err != nil {
			return 0, err
		}
		if records >= float64(n) && unsaved == 0 {
			return saves, nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// measure runs the day.
func (r *run) measure(ctx context.Context, mail *post) (*result, error) {
	c := r.day
	redisBefore, err := redisMemory(ctx, c.Redis)
	if err != nil {
		return nil, err
	}
	before := journal(ctx, c.NATS)
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	if err := r.each((*process).mark); err != nil {
		return nil, err
	}
	// The first half: as fast as it goes, with few saves.
	first := c.Labels / 2
	if err := mail.teach(ctx, r.ingest.http, first); err != nil {
		return nil, err
	}
	saves, err := r.learnt(ctx, first)
	if err != nil {
		return nil, err
	}
	few := phase{labels: float64(first), saves: saves}
	learner, err := r.learner.since()
	if err != nil {
		return nil, err
	}
	few.cpu = learner.cpu
	if err := r.served(ctx); err != nil {
		return nil, err
	}
	ingested, err := r.ingest.since()
	if err != nil {
		return nil, err
	}
	if err := r.each((*process).mark); err != nil {
		return nil, err
	}
	// The second half, beside the questions.
	begun := time.Now()
	second := c.Labels - first
	got, err := mail.ask(ctx, r.gateway.http, r.ingest.http, c.Scores, second, c.InFlight, func(i int) {
		if i%100 == 0 {
			r.progress.Set(i, c.Scores)
		}
	})
	if err != nil {
		return nil, err
	}
	elapsed := time.Since(begun)
	all, err := r.learnt(ctx, c.Labels)
	if err != nil {
		return nil, err
	}
	many := phase{labels: float64(second), saves: all - saves}

	res := &result{Model: r.model, Scores: got.answered, Refused: got.refused, Labels: c.Labels, Seconds: elapsed.Seconds(), Saves: all,
		Median: quantile(got.seconds, .5), Late: quantile(got.seconds, .99), load: c.load()}
	err = r.each(func(p *process) error {
		u, err := p.since()
		res.Processes = append(res.Processes, used{Name: p.name, CPU: u.cpu, Memory: u.memory})
		return err
	})
	if err != nil {
		return nil, err
	}
	many.cpu = res.process("learner").CPU
	cost := &res.Costs
	cost.Score = res.process("scorer").CPU / float64(c.Scores)
	cost.Gateway = res.process("gateway").CPU / float64(c.Scores)
	cost.Ingest = ingested.cpu / float64(first)
	var apart bool
	if cost.Learn, cost.Save, apart = split(few, many); !apart {
		cost.Learn = (few.cpu + many.cpu) / float64(c.Labels)
		res.Warning = "the two phases had as many saves for each label: the cost of a label includes that of its saves"
	}
	cost.ScorerBytes, cost.LearnerBytes = res.process("scorer").Memory, res.process("learner").Memory
	cost.GatewayBytes, cost.IngestBytes = res.process("gateway").Memory, res.process("ingest").Memory
	if cost.ModelBytes, err = r.learner.metric(ctx, "hamlet_learner_model_bytes"); err != nil {
		return nil, err
	}
	redisAfter, err := redisMemory(ctx, c.Redis)
	if err != nil {
		return nil, err
	}
	res.RedisBytes = redisAfter - redisBefore
	lines, err := r.scorer.metric(ctx, "hamlet_scorer_journal_lines_total")
	if err != nil {
		return nil, err
	}
	if after := journal(ctx, c.NATS); lines > 0 && after.messages > 0 {
		cost.JournalBytes = after.bytes / after.messages * (after.last - before.last) / lines
	}
	if c.Servers != "" {
		disk, err := logBytes(filepath.Join(c.Servers, "kafka"), stream.EventsTopic(r.model))
		if err != nil {
			return nil, err
		}
		cost.EventBytes = disk / float64(c.Labels)
	}
	res.Demand = Plan(*cost, res.load)
	return res, nil
}

// load is the day that is meant.
func (c *Day) load() Load {
	return Load{Scores: float64(c.Scores) * c.Scale, Labels: float64(c.Labels) * c.Scale, Peak: c.Peak, Busy: c.Busy,
		SaveEvery: c.SaveEvery.Seconds(), KeepDays: c.KeepDays, Replicas: c.Replicas, Versions: c.Versions, JournalOf: c.JournalOf}
}

// served waits until the gateway gets an answer.
func (r *run) served(ctx context.Context) error {
	conn, err := nats.Connect(nats.Config{URL: r.day.NATS})
	if err != nil {
		return err
	}
	defer conn.Close()
	client, err := nats.NewClient(conn, r.model)
	if err != nil {
		return err
	}
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		info, err := client.Info(attempt)
		cancel()
		if err == nil && len(info.Model.Positions) > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
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
