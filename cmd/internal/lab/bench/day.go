package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/lab/product"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/progress"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// Day holds the flags of `hamlet-lab bench day`.
type Day struct {
	Labelled

	Kafka   string `help:"Kafka, host:port." required:"" placeholder:"ADDR" group:"Servers"`
	NATS    string `name:"nats" help:"URL of NATS." required:"" placeholder:"URL" group:"Servers"`
	Redis   string `help:"Redis, host:port." required:"" placeholder:"ADDR" group:"Servers"`
	Servers string `help:"The DIR of deploy/servers, to measure the servers too." type:"existingdir" placeholder:"DIR" group:"Servers"`

	Scores    int           `help:"Messages to ask about." default:"1000000" placeholder:"N"`
	Labels    int           `help:"Labels to send." default:"10000" placeholder:"N"`
	Scale     float64       `help:"The day that is meant is so many times as large." default:"1000" placeholder:"X"`
	Peak      float64       `help:"The busiest hour's rate, to the day's mean." default:"2.5" placeholder:"X"`
	SaveEvery time.Duration `help:"Of the learner." default:"3s" placeholder:"D"`
	TableBits int           `help:"Of the model." default:"18" placeholder:"N"`
	Output
}

// Help is shown by kong below the flags.
func (Day) Help() string {
	return `Examples:
  eval "$(deploy/servers start DIR)"
  hamlet-lab bench day --kafka $HAMLET_KAFKA --nats $HAMLET_NATS --redis $HAMLET_REDIS --servers DIR
  hamlet-lab bench day … --scores 20000 --labels 2000 --table-bits 20 --index index.csv corpus.tar.gz

It starts ingest, a learner, a scorer and a gateway as processes, on servers without passwords that
nobody else uses. Half of the labels are learnt at once. The others are sent while the gateway is
asked over HTTP, eight questions at a time, in step with the questions. Then it prints what each
process used, what a message, a label and a save cost, and what a day of --scale times as much needs.
Without a SOURCE the mail is synthetic.

Last, single labels are sent, each of which is a save: so the cost of saving and of loading a model is
known. Costs are processor time, so a busy machine changes them little. What the programs that ask use
is not counted.`
}

// Run runs the day and prints what it used.
func (c *Day) Run(ctx context.Context, stdio cli.IO) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	mails, err := c.mails(ctx, stdio)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "hamlet-day-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := &day{Day: c, dir: dir, model: fmt.Sprintf("day-%d", time.Now().UnixMilli()), mails: mails,
		client:   &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: inFlight}},
		progress: progress.NewCounter(stdio.Err)}
	defer d.progress.Close()
	defer d.client.CloseIdleConnections()
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		d.wait()
	}()
	result, err := d.measure(ctx)
	if err != nil {
		return err
	}
	d.progress.Close()
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
	if err := atLeast(limit{"--scores", c.Scores, 100}, limit{"--labels", c.Labels, 20}); err != nil {
		return err
	}
	if c.SaveEvery < 100*time.Millisecond {
		return cli.Usagef("--save-every: %v is below 100ms", c.SaveEvery)
	}
	if !(c.Scale > 0 && c.Peak > 0) || math.IsInf(c.Scale*c.Peak, 0) {
		return cli.Usagef("--scale and --peak must be above zero: %v, %v", c.Scale, c.Peak)
	}
	return nil
}

// mostMails bounds the mail in memory; more is cycled.
const mostMails = 10_000

// mails returns labelled mail of the source, or synthetic mail.
func (c *Day) mails(ctx context.Context, stdio cli.IO) (mails []stream.Event, err error) {
	var items iter.Seq2[source.Item, error]
	if cfg := c.config(stdio, source.FlipFlags{}); cfg.None() {
		items, err = synthetic.Items(synthetic.Config{Seed: 1}, mostMails, source.FlipConfig{})
	} else {
		var src *source.Source
		if src, err = source.Open(cfg); err == nil {
			defer src.Close()
			items = src.Events()
		}
	}
	if err != nil {
		return nil, err
	}
	for item, err := range items {
		var rejection *source.Rejection
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &rejection):
			continue
		case err != nil:
			return nil, err
		case item.Event.Body.Kind != stream.Mail || item.Event.Label == 0:
			continue
		}
		mails = append(mails, item.Event)
		if len(mails) == mostMails {
			break
		}
	}
	if len(mails) < 2 {
		return nil, errors.New("the source has less than two labelled mails")
	}
	return mails, nil
}

// A day is one run with its processes.
type day struct {
	*Day
	dir      string
	model    string
	mails    []stream.Event // to label and to ask about, cycled as often as it takes
	client   *http.Client
	progress *progress.Counter

	made atomic.Int64 // labels
	sent int          // labels, up to the last phase

	ingest, learner, scorer, gateway *service
	servers                          []*service
}

const (
	inFlight = 8     // questions that wait at the same time
	dayToken = "day" // what ingest wants; both listen on loopback
)

// start starts the services. The learner is first: it makes the topics.
func (d *day) start(ctx context.Context) (err error) {
	model := []string{"--model", d.model}
	kafka := append(model, "--kafka", d.Kafka)
	redis, nats := []string{"--redis", d.Redis}, []string{"--nats", d.NATS}
	for _, s := range []struct {
		service **service
		name    string
		ready   string
		args    [][]string
	}{
		{&d.learner, "learner", "/readyz", [][]string{kafka, redis, nats,
			{"--save-every", d.SaveEvery.String(), "--table-bits", strconv.Itoa(d.TableBits)}}},
		{&d.ingest, "ingest", "/readyz", [][]string{kafka, {"--token", dayToken}}},
		{&d.scorer, "scorer", "/healthz", [][]string{model, redis, nats}},
		{&d.gateway, "gateway", "/healthz", [][]string{model, nats, {"--deadline", "20s"}}},
	} {
		if *s.service, err = startService(ctx, d.dir, s.name, s.ready, slices.Concat(s.args...)...); err != nil {
			return err
		}
	}
	if d.Servers != "" {
		d.servers = serversOf(d.Servers)
	}
	return nil
}

// wait waits for the end of the services, once ctx of start has ended.
func (d *day) wait() {
	for _, s := range []*service{d.gateway, d.ingest, d.scorer, d.learner} {
		if s != nil {
			<-s.ended
		}
	}
}

// each calls f for all processes.
func (d *day) each(f func(*service) error) (err error) {
	for _, p := range append([]*service{d.ingest, d.learner, d.scorer, d.gateway}, d.servers...) {
		err = errors.Join(err, f(p))
	}
	return err
}

// measure runs the day in three phases: half of the labels at once; the others beside the
// questions; and a few single labels, each of which is a save.
func (d *day) measure(ctx context.Context) (*dayResult, error) {
	memory, err := redisMemory(ctx, d.Redis)
	if err != nil {
		return nil, err
	}
	before := journal(ctx, d.NATS)
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	r := &dayResult{Model: d.model, Labels: d.Labels, scale: d.Scale, peak: d.Peak, saveEvery: d.SaveEvery.Seconds()}
	half := d.Labels / 2
	first, err := d.measured(ctx, half, func() error { return d.teach(ctx, half) })
	if err != nil {
		return nil, err
	}
	second, err := d.asking(ctx, d.Labels-half, r)
	if err != nil {
		return nil, err
	}
	third, err := d.measured(ctx, singleSaves, func() error { return d.save(ctx) })
	if err != nil {
		return nil, err
	}
	r.Saves = first.saves + second.saves
	if err := d.sizes(ctx, r, before, memory); err != nil {
		return nil, err
	}
	r.costs(first, second, third)
	r.Demand = r.plan()
	return r, nil
}

// measured runs a phase that ends once all labels are learnt and saved, and says what it used.
func (d *day) measured(ctx context.Context, labels int, do func() error) (p phase, err error) {
	p.labels = float64(labels)
	if p.saves, err = d.learner.learnt(ctx, d.client, d.sent); err != nil {
		return p, err
	}
	if err := d.each((*service).mark); err != nil {
		return p, err
	}
	if err := do(); err != nil {
		return p, err
	}
	d.sent += labels
	saves, err := d.learner.learnt(ctx, d.client, d.sent)
	if err != nil {
		return p, err
	}
	if err := d.served(ctx); err != nil {
		return p, err
	}
	p.saves = saves - p.saves
	for _, s := range []struct {
		of  *service
		cpu *float64
	}{{d.ingest, &p.ingest}, {d.learner, &p.learner}, {d.scorer, &p.scorer}, {d.gateway, &p.gateway}} {
		if *s.cpu, _, err = s.of.since(); err != nil {
			return p, err
		}
	}
	return p, nil
}

// served waits until a scorer answers.
func (d *day) served(ctx context.Context) error {
	conn, err := nats.Connect(nats.Config{URL: d.NATS})
	if err != nil {
		return err
	}
	defer conn.Close()
	client, err := nats.NewClient(conn, d.model)
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

// teach sends n labels in batches, as fast as ingest takes them: it answers 503 while Kafka is slow.
func (d *day) teach(ctx context.Context, n int) (err error) {
	const batch = 50
	for done := 0; done < n; done += batch {
		var body []byte
		for range min(batch, n-done) {
			number := d.made.Add(1)
			e := d.mails[int(number)%len(d.mails)]
			e.ID = fmt.Sprintf("day-%d", number)
			if body, err = e.AppendJSON(body); err != nil {
				return err
			}
			body = append(body, '\n')
		}
		for taken := false; !taken; {
			status, said, err := product.Post(ctx, d.client, "http://"+d.ingest.http+"/v1/events", product.Labels,
				dayToken, body)
			switch {
			case err != nil:
				return fmt.Errorf("labels: %w", err)
			case status == http.StatusAccepted:
				taken = true
			case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests:
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(100 * time.Millisecond):
				}
			default:
				return fmt.Errorf("labels: ingest answers %d: %s", status, said)
			}
		}
	}
	return nil
}

// asking is the phase of the questions.
func (d *day) asking(ctx context.Context, labels int, r *dayResult) (phase, error) {
	p, err := d.measured(ctx, labels, func() error { return d.ask(ctx, labels, r) })
	if err != nil {
		return p, err
	}
	if p.scores = float64(r.Scores); r.Refused > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d questions were refused, and what they cost is counted "+
			"with the others", r.Refused))
	}
	return p, d.each(func(of *service) error {
		cpu, memory, err := of.since()
		r.Processes = append(r.Processes, used{Name: of.name, CPU: cpu, Memory: memory})
		return err
	})
}

// ask asks all questions over HTTP, and sends labels in step with them. The first error of another
// kind than a refusal ends it.
func (d *day) ask(ctx context.Context, labels int, r *dayResult) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	var mu sync.Mutex
	var seconds []float64
	begun := time.Now()
	for range inFlight {
		g.Go(func() error {
			for i := int(next.Add(1)); i <= d.Scores; i = int(next.Add(1)) {
				begin := time.Now()
				status, said, err := product.Post(ctx, d.client, "http://"+d.gateway.http+"/v1/score", questions.Mail, "",
					d.mails[i*7919%len(d.mails)].Body.Mail)
				if err != nil {
					return fmt.Errorf("a question: %w", err)
				}
				if status != http.StatusOK && status != http.StatusServiceUnavailable {
					return fmt.Errorf("a question: the gateway answers %d: %s", status, said)
				}
				mu.Lock()
				seconds = append(seconds, time.Since(begin).Seconds())
				if status == http.StatusOK {
					r.Scores++
				} else {
					r.Refused++
				}
				mu.Unlock()
				for range i*labels/d.Scores - (i-1)*labels/d.Scores { // due with this question
					if err := d.teach(ctx, 1); err != nil {
						return err
					}
				}
				if i%100 == 0 {
					d.progress.Set(i, d.Scores)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if r.Scores == 0 {
		return fmt.Errorf("all %d questions were refused", r.Refused)
	}
	slices.Sort(seconds)
	r.Seconds = time.Since(begun).Seconds()
	r.Median, r.Late = quantile(seconds, .5), quantile(seconds, .99)
	return nil
}

// singleSaves is how many labels the last phase sends.
const singleSaves = 5

// loadedAfter is more than the scorer's --poll-interval and a load.
const loadedAfter = 800 * time.Millisecond

// save sends single labels and waits after each until it is saved and loaded.
func (d *day) save(ctx context.Context) error {
	for i := range singleSaves {
		if err := d.teach(ctx, 1); err != nil {
			return err
		}
		if _, err := d.learner.learnt(ctx, d.client, d.sent+i+1); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(loadedAfter):
		}
	}
	return nil
}

// sizes adds what the processes and the servers hold to the result.
func (d *day) sizes(ctx context.Context, r *dayResult, before journalState, memory float64) (err error) {
	cost := &r.Costs
	cost.ScorerBytes, cost.LearnerBytes = r.process("scorer").Memory, r.process("learner").Memory
	cost.NATS = r.process("nats").CPU / float64(r.Scores) // 0 if it was not measured
	ofLearner, err1 := product.Metrics(ctx, d.client, d.learner.http)
	ofScorer, err2 := product.Metrics(ctx, d.client, d.scorer.http)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	cost.ModelBytes = ofLearner["hamlet_learner_model_bytes"]
	after, err := redisMemory(ctx, d.Redis)
	if err != nil {
		return err
	}
	r.RedisBytes = after - memory
	lines := ofScorer["hamlet_scorer_journal_lines_total"]
	if s := journal(ctx, d.NATS); lines > 0 && s.messages > 0 {
		cost.JournalBytes = s.bytes / s.messages * (s.last - before.last) / lines
	}
	if d.Servers != "" {
		disk, err := logBytes(filepath.Join(d.Servers, "kafka"), stream.EventsTopic(d.model))
		if err != nil {
			return err
		}
		cost.EventBytes = disk / float64(d.sent)
	}
	return nil
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
