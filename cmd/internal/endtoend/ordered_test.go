package endtoend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/orderlog"
	"hamlet/cmd/internal/sequencer"
	"hamlet/cmd/internal/settings"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// rounds returns how many faults a test makes: few of them beside real servers, many of
// them with HAMLET_NIGHTLY=1. HAMLET_ROUNDS=N is N of them, whatever the servers.
func rounds(t *testing.T, few, many int) int {
	t.Helper()
	switch {
	case asked > 0:
		return asked
	case nightly:
		return many
	case real:
		return few
	}
	t.Skip("faults of a model of several partitions: HAMLET_NIGHTLY=1, HAMLET_ROUNDS=N or real servers run it")
	return 0
}

// asked is HAMLET_ROUNDS. It is read before TestMain removes the variables of this name.
var asked, _ = strconv.Atoi(os.Getenv("HAMLET_ROUNDS"))

// An ordered is one model of several partitions: who learns it, and what it is sent.
type ordered struct {
	t       *testing.T
	model   string
	topic   string
	cfg     kafka.Config // of the tests themselves
	servers servers      // of the learners
	watched *watch       // of the order log
	*feed
}

// servers are where the learners find Kafka and Redis.
type servers struct {
	kafka, redis string
	sentinel     string // the master's name, where redis names Sentinels
}

const orderedPartitions = 4

// orderedModels counts the models, whose names are shorter than those of their tests.
var orderedModels atomic.Int64

// newOrdered makes the topics of a new model.
func newOrdered(t *testing.T) *ordered {
	t.Helper()
	return newOrderedOn(t, servers{kafka: kafkaAddr, redis: redisAddr}, kafkaAs(t, "learner"))
}

func newOrderedOn(t *testing.T, at servers, cfg kafka.Config) *ordered {
	t.Helper()
	name := modelName(t)
	name = name[strings.LastIndex(name, "ordered"):] // a name has 64 bytes at most
	o := &ordered{t: t, model: fmt.Sprintf("%.40s-%d-%s", strings.TrimSuffix(name, "-"+run), orderedModels.Add(1), run), cfg: cfg, servers: at}
	o.topic = stream.EventsTopic(o.model)
	if err := kafka.EnsureTopic(t.Context(), cfg, o.topic, orderedPartitions, -1, time.Hour); err != nil {
		t.Fatal(err)
	}
	topic := settings.Topic{Replication: -1, Retention: time.Hour}
	if err := topic.Ensure(t.Context(), cfg, o.model); err != nil {
		t.Fatal(err)
	}
	if passwords != nil {
		o.cfg = kafkaAs(t, admin)
	}
	if err := kafka.EnsureOrder(t.Context(), cfg, o.model, o.topic, -1); err != nil {
		t.Fatal(err)
	}
	o.feed = &feed{t: t, topic: o.topic, random: rand.New(rand.NewPCG(19, uint64(orderedPartitions)))}
	o.freshProducer()
	o.watched = &watch{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = kafka.Follow(ctx, kafka.ConsumerConfig{Config: o.cfg, Topic: order.Topic(o.model)}, 0,
			func(context.Context, int) (kafka.Handler, error) { return o.watched, nil }) // a test may replace the topic
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return o
}

// freshProducer gives the feed a producer that knows no topic.
func (o *ordered) freshProducer() {
	o.t.Helper()
	producer, err := kafka.NewProducer(o.cfg)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = producer.Close() })
	o.producer = producer
}

// modelFlags make a small model, so that a learner saves it often.
func (o *ordered) modelFlags() []string {
	flags := []string{"--experts", "lean", "--table-bits", "10"}
	if o.vectors {
		flags = append(flags, "--dense", denseNames)
	}
	return flags
}

// config is what modelFlags make.
func (o *ordered) config() model.Config {
	o.t.Helper()
	bits := 10
	flags := settings.Model{Experts: []string{"lean"}, TableBits: &bits}
	var dense []string
	if o.vectors {
		dense = strings.Split(denseNames, ",")
	}
	cfg, err := flags.Config(dense)
	if err != nil {
		o.t.Fatal(err)
	}
	return cfg
}

// learner starts a learner of the model.
func (o *ordered) learner(more ...string) *process { return o.learnerAt(o.servers.kafka, more...) }

// learnerAt starts a learner that finds Kafka elsewhere, for instance at a proxy.
func (o *ordered) learnerAt(kafka string, more ...string) *process {
	o.t.Helper()
	return o.learnerFrom(bin, kafka, more...)
}

// learnerFrom is learnerAt with the programs of another folder.
func (o *ordered) learnerFrom(folder, kafka string, more ...string) *process {
	o.t.Helper()
	return startFrom(o.t, folder, "learner", slices.Concat([]string{"--models", "one", "--model", o.model, "--kafka", kafka, "--redis", o.servers.redis,
		"--http", "127.0.0.1:0", "--save-every", "100ms", "--session-timeout", "10s"}, o.modelFlags(), more)...)
}

// A watch sees who appends to an order log, as a kafka.Handler.
type watch struct {
	mu   sync.Mutex
	seen []appended
	past int // of seen, what awaitMore has returned for; only the test's goroutine has it
}

// An appended is a record of an order log: who wrote it, and when it was seen.
type appended struct {
	pid int
	at  time.Time
}

func (w *watch) Position(func(context.Context) error) (int64, bool) { return 0, false }
func (w *watch) Follows(kafka.Record) bool                          { return true }
func (w *watch) Idle(context.Context) error                         { return nil }
func (w *watch) Close(context.Context) error                        { return nil }

func (w *watch) Handle(_ context.Context, batch []kafka.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range batch {
		r, err := order.Decode(batch[i].Value)
		if err != nil {
			return err
		}
		_, pid, _ := strings.Cut(r.Writer, "/")
		n, _ := strconv.Atoi(pid) // a stranger has none
		w.seen = append(w.seen, appended{n, time.Now()})
	}
	return nil
}

// since returns what was seen after the first n.
func (w *watch) since(n int) []appended {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen[min(n, len(w.seen)):])
}

// awaitMore waits until one of several learners has appended three more records to the
// order log, so it is active, and returns which.
func (o *ordered) awaitMore(learners ...*process) int {
	o.t.Helper()
	found := -1
	await(o.t, "a learner appends to the order log", func() bool {
		counts := make([]int, len(learners))
		for n, r := range o.watched.since(o.watched.past) {
			k := slices.IndexFunc(learners, func(p *process) bool { return p.cmd.Process.Pid == r.pid })
			if k < 0 {
				continue
			}
			if counts[k]++; counts[k] == 3 {
				found = k
				o.watched.past += n + 1
				return true
			}
		}
		return false
	})
	return found
}

// awaitSaved waits until the saved model has taken all that the partitions hold.
func (o *ordered) awaitSaved() {
	o.t.Helper()
	_, end, err := kafka.Offsets(o.t.Context(), o.cfg, o.topic)
	if err != nil {
		o.t.Fatal(err)
	}
	var last string
	defer func() {
		if o.t.Failed() {
			o.t.Logf("the saved model stands at %s, the partitions end at %v", last, end)
		}
	}()
	await(o.t, "the saved model has taken all events", func() bool {
		s := o.saved()
		if s == nil {
			return false
		}
		at := map[int]int64{}
		for i := range s.Places {
			at[i] = s.Places[i].Next
		}
		last = fmt.Sprint(at)
		return last == fmt.Sprint(end)
	})
}

// head returns the saved checkpoint, nil before the first.
func (o *ordered) head() *state.Checkpoint {
	o.t.Helper()
	cfg := redisAs(admin, o.model)
	cfg.Addr, cfg.Sentinel = o.servers.redis, o.servers.sentinel
	store, err := redis.New(cfg)
	if err != nil {
		o.t.Fatal(err)
	}
	defer store.Close()
	c, _, err := store.Load(o.t.Context(), state.Head)
	switch {
	case errors.Is(err, state.ErrNone):
		return nil
	case err != nil:
		o.t.Fatal(err)
	}
	return c
}

// saved returns where the saved model stands, nil before the first save.
func (o *ordered) saved() *sequencer.State {
	o.t.Helper()
	c := o.head()
	if c == nil {
		return nil
	}
	var s sequencer.State
	if err := s.UnmarshalBinary(c.Order); err != nil {
		o.t.Fatal(err)
	}
	return &s
}

// logged returns the records of the model in the order of its log, up to a checkpoint. Each
// record of a partition must come once, in its order.
func (o *ordered) logged(c *state.Checkpoint) (records []kafka.Record) {
	o.t.Helper()
	next := map[int]int64{}
	err := orderlog.Read(o.t.Context(), o.log(c), func(r *kafka.Record) error {
		if r.Offset != next[r.Partition] {
			o.t.Errorf("partition %d: offset %d, want %d", r.Partition, r.Offset, next[r.Partition])
		}
		next[r.Partition] = r.Offset + 1
		records = append(records, *r)
		return nil
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return records
}

func (o *ordered) log(c *state.Checkpoint) orderlog.Config {
	return orderlog.Config{Kafka: o.cfg, Events: o.topic, Order: order.Topic(o.model), End: c.Position.Next}
}

// wantReplayed fails unless the saved model is what the logs say, and has taken as many
// records as were sent. It returns them.
func (o *ordered) wantReplayed() []kafka.Record {
	o.t.Helper()
	o.awaitSaved()
	head := o.head()
	saved := fmt.Sprintf("%x", head.ModelSHA256())
	records := o.logged(head)
	if replayed := o.replayed(); saved != replayed {
		o.t.Errorf("the saved model is %s, the logs make %s", saved, replayed)
	}
	if len(records) < o.sent {
		o.t.Errorf("the logs name %d records, %d were sent", len(records), o.sent)
	}
	o.t.Logf("model_sha256 %.12s… of the learner and of the replay: %d records of %d partitions, %d of the order log", saved, len(records), orderedPartitions, head.Position.Next)
	return records
}

// replayed returns the SHA-256 of the model that the logs make.
func (o *ordered) replayed() string {
	o.t.Helper()
	out := mustOutput(o.t, "hamlet", slices.Concat([]string{"eval", "--json", "--kafka", strings.Join(o.cfg.Brokers, ","), "--model", o.model}, o.modelFlags())...)
	return parseResult(o.t, out).ModelSHA256
}

// writers returns how many records of the order log each learner has appended.
func (o *ordered) writers() map[string]int {
	o.t.Helper()
	writers := map[string]int{}
	topic := order.Topic(o.model)
	_, end, err := kafka.Offsets(o.t.Context(), o.cfg, topic)
	if err != nil {
		o.t.Fatal(err)
	}
	err = kafka.ReadRange(o.t.Context(), o.cfg, topic, 0, 0, end[0], func(r *kafka.Record) error {
		d, err := order.Decode(r.Value)
		writers[d.Writer]++
		return err
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return writers
}

// signal sends the process a signal.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// A feed is what a model of several partitions is sent: labels, copies of them in other
// partitions, withdrawals and corrections in other partitions than their labels, and
// records that are no events.
type feed struct {
	t        *testing.T
	producer *kafka.Producer
	topic    string
	random   *rand.Rand
	labels   []stream.Event // of the last labels

	mu   sync.Mutex
	sent int // only one goroutine sends, and it writes this

	// vectors: bodies are vectors of numbers in place of texts. From noise on, two of five
	// labels of ham are wrong.
	vectors bool
	noise   int
}

// send sends n records.
func (f *feed) send(n int) {
	f.t.Helper()
	if err := f.trySend(f.t.Context(), n); err != nil {
		f.t.Fatal(err)
	}
}

func (f *feed) trySend(ctx context.Context, n int) error {
	parts := make([][]kafka.Record, orderedPartitions)
	for range n {
		r := f.record()
		p := f.random.IntN(orderedPartitions)
		parts[p] = append(parts[p], r)
	}
	for p, records := range parts {
		if len(records) == 0 {
			continue
		}
		if err := f.producer.PublishTo(ctx, f.topic, p, records...); err != nil {
			return err
		}
	}
	f.mu.Lock()
	f.sent += n
	f.mu.Unlock()
	return nil
}

// count returns how many records were sent.
func (f *feed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

// flow sends some records again and again until the returned function is called.
func (f *feed) flow(n int, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := f.trySend(context.WithoutCancel(ctx), n); err != nil {
					f.t.Error(err)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

var feedWords = [2][]string{{"lunch", "report", "friday", "thanks", "minutes"}, {"winner", "prize", "cheap", "click", "pills"}}

func (f *feed) record() kafka.Record {
	id := fmt.Sprint("e", f.sent, "-", f.random.Uint32())
	switch k := f.random.IntN(100); {
	case k < 2:
		return kafka.Record{Topic: f.topic, Key: []byte("k"), Value: []byte("no event")}
	case k < 12 && len(f.labels) > 0:
		e := f.labels[f.random.IntN(len(f.labels))]
		switch {
		case k < 7: // a copy
		case k < 9:
			e.ID, e.Of, e.Action = id, e.ID, stream.Unlearn
		case k < 10:
			e.ID, e.Of, e.Action, e.Label = id, e.ID, stream.Relearn, stream.Ham+stream.Spam-e.Label
		default:
			e.ID, e.Action, e.Label = id, stream.Correct, stream.Ham+stream.Spam-e.Label
		}
		return f.encode(&e)
	}
	class := f.random.IntN(2)
	e := stream.Event{ID: id, Source: "s", Tenant: "t", Label: stream.Ham, Body: f.body(class)}
	if class == 1 || f.vectors && f.sent >= f.noise && f.random.IntN(5) < 2 {
		e.Label = stream.Spam
	}
	f.labels = append(f.labels[max(0, len(f.labels)-199):], e)
	return f.encode(&e)
}

// body returns a body of ham, 0, or spam, 1.
func (f *feed) body(class int) stream.Body {
	if f.vectors {
		var v []stream.Number
		for i, name := range strings.Split(denseNames, ",") {
			x := f.random.NormFloat64()
			if i < 4 {
				x += 1.6 * float64(class)
			}
			v = append(v, stream.Number{Name: name, Value: x})
		}
		return stream.Body{Kind: stream.Vector, Vector: v}
	}
	var text strings.Builder
	for range 8 {
		of := class
		if f.random.IntN(4) == 0 {
			of = 1 - of
		}
		fmt.Fprintf(&text, "%s%d ", feedWords[of][f.random.IntN(5)], f.random.IntN(40))
	}
	return stream.Body{Kind: stream.Text, Text: text.String()}
}

func (f *feed) encode(e *stream.Event) kafka.Record {
	value, headers, err := e.EncodeRecord()
	if err != nil {
		panic(err)
	}
	return kafka.Record{Topic: f.topic, Key: []byte(e.ID), Value: value, Headers: headers}
}

// wait waits for a random time below most. A fault at a random time needs it.
func (o *ordered) wait(random *rand.Rand, most time.Duration) {
	timer := time.NewTimer(time.Duration(random.Int64N(int64(most))))
	defer timer.Stop()
	<-timer.C
}
