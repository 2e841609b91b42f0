package endtoend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
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
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
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
	t.Skip("faults of a model with several learners: HAMLET_NIGHTLY=1, HAMLET_ROUNDS=N or real servers run it")
	return 0
}

// asked is HAMLET_ROUNDS. It is read before TestMain removes the variables of this name.
var asked, _ = strconv.Atoi(os.Getenv("HAMLET_ROUNDS"))

// The replicas are the learners of one model, and what they are sent.
type replicas struct {
	t       *testing.T
	model   string
	topic   string
	cfg     kafka.Config // of the tests themselves
	servers servers      // of the learners
	*feed
}

// servers are where the learners find Kafka and Redis.
type servers struct {
	kafka, redis string
	sentinel     string // the master's name, where redis names Sentinels
}

// replicated counts the models, whose names are shorter than those of their tests.
var replicated atomic.Int64

// newReplicas makes the topics of a new model.
func newReplicas(t *testing.T) *replicas {
	t.Helper()
	return newReplicasOn(t, servers{kafka: kafkaAddr, redis: redisAddr}, kafkaAs(t, "learner"))
}

func newReplicasOn(t *testing.T, at servers, cfg kafka.Config) *replicas {
	t.Helper()
	o := &replicas{t: t, model: fmt.Sprintf("%.40s-%d-%s", strings.TrimSuffix(modelName(t), "-"+run), replicated.Add(1), run), cfg: cfg, servers: at}
	o.topic = stream.EventsTopic(o.model)
	topic := settings.Topic{Replication: -1, Retention: time.Hour}
	if err := topic.Ensure(t.Context(), cfg, o.model); err != nil {
		t.Fatal(err)
	}
	if passwords != nil {
		o.cfg = kafkaAs(t, admin)
	}
	o.feed = &feed{t: t, topic: o.topic, random: rand.New(rand.NewPCG(19, 4))}
	o.log = logOf(t, o.cfg, o.topic)
	return o
}

// modelFlags make a small model, so that a learner saves it often.
func (o *replicas) modelFlags() []string {
	flags := []string{"--experts", "lean", "--table-bits", "10"}
	if o.vectors {
		flags = append(flags, "--dense", denseNames)
	}
	return flags
}

// config is what modelFlags make.
func (o *replicas) config() model.Config {
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
func (o *replicas) learner(more ...string) *process { return o.learnerAt(o.servers.kafka, more...) }

// learnerAt starts a learner that finds Kafka elsewhere, for instance at a proxy.
func (o *replicas) learnerAt(kafka string, more ...string) *process {
	o.t.Helper()
	return o.learnerFrom(bin, kafka, more...)
}

// learnerFrom is learnerAt with the programs of another folder.
func (o *replicas) learnerFrom(folder, kafka string, more ...string) *process {
	o.t.Helper()
	return startFrom(o.t, folder, "learner", slices.Concat([]string{"--model", o.model, "--kafka", kafka, "--redis", o.servers.redis,
		"--http", "127.0.0.1:0", "--save-every", "100ms"}, o.modelFlags(), more)...)
}

// awaitActive waits until one of several learners says twice in a row that it is active, and
// returns which.
func (o *replicas) awaitActive(learners ...*process) int {
	o.t.Helper()
	seen := -1
	await(o.t, "a learner is active", func() bool {
		before := seen
		seen = activeOf(learners)
		return seen >= 0 && seen == before
	})
	return seen
}

// activeOf returns which of several learners says that it is active; −1: none.
func activeOf(learners []*process) int {
	var found atomic.Int64
	found.Store(-1)
	var asking sync.WaitGroup
	for k, p := range learners {
		if addr := p.knownAddr(); addr != "" {
			asking.Go(func() {
				if strings.Contains(readiness(addr), "active, ") {
					found.Store(int64(k))
				}
			})
		}
	}
	asking.Wait()
	return int(found.Load())
}

// readiness returns what a service says at /readyz, "" if it does not answer at once.
func readiness(addr string) string {
	client := http.Client{Timeout: 300 * time.Millisecond}
	response, err := client.Get("http://" + addr + "/readyz")
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// end returns where the log ends.
func (o *replicas) end() int64 {
	o.t.Helper()
	return boundsOf(o.t, o.cfg, o.topic).End
}

// awaitSaved waits until the saved model has taken all that the log holds.
func (o *replicas) awaitSaved() {
	o.t.Helper()
	end, last := o.end(), int64(-1)
	defer func() {
		if o.t.Failed() {
			o.t.Logf("the saved model stands at %d, the log ends at %d", last, end)
		}
	}()
	await(o.t, "the saved model has taken all events", func() bool {
		if c := o.head(); c != nil {
			last = c.Position.Next
		}
		return last == end
	})
}

// head returns the saved checkpoint, nil before the first.
func (o *replicas) head() *state.Checkpoint {
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

// logged returns the records of the log up to a checkpoint.
func (o *replicas) logged(c *state.Checkpoint) []stream.Record {
	o.t.Helper()
	return recordsOf(o.t, o.cfg, o.topic, 0, c.Position.Next)
}

// wantReplayed fails unless the saved model is what the logs say, and has taken as many
// records as were sent. It returns them.
func (o *replicas) wantReplayed() []stream.Record {
	o.t.Helper()
	o.awaitSaved()
	head := o.head()
	saved := fmt.Sprintf("%x", head.ModelSHA256)
	records := o.logged(head)
	if replayed := o.replayed(); saved != replayed {
		o.t.Errorf("the saved model is %s, the log makes %s", saved, replayed)
	}
	if len(records) < o.sent {
		o.t.Errorf("the log has %d records, %d were sent", len(records), o.sent)
	}
	o.t.Logf("model_sha256 %.12s… of the learner and of the replay: %d records", saved, len(records))
	return records
}

// replayed returns the SHA-256 of the model that the logs make.
func (o *replicas) replayed() string {
	o.t.Helper()
	out := mustOutput(o.t, "hamlet", slices.Concat([]string{"eval", "--json", "--kafka", strings.Join(o.cfg.Brokers, ","), "--model", o.model}, o.modelFlags())...)
	return parseResult(o.t, out).ModelSHA256
}

// signal sends the process a signal.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// A feed is what a model is sent: labels, copies of them, withdrawals, corrections, and records
// that are no events.
type feed struct {
	t      *testing.T
	log    *kafka.Log
	topic  string
	random *rand.Rand
	labels []stream.Event // of the last labels

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
	records := make([]stream.Record, n)
	for i := range records {
		records[i] = f.record()
	}
	if err := f.log.Append(ctx, records...); err != nil {
		return err
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

func (f *feed) record() stream.Record {
	id := fmt.Sprint("e", f.sent, "-", f.random.Uint32())
	switch k := f.random.IntN(100); {
	case k < 2:
		return stream.Record{Key: []byte("k"), Value: []byte("no event")}
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

func (f *feed) encode(e *stream.Event) stream.Record {
	value, headers, err := e.EncodeRecord()
	if err != nil {
		panic(err)
	}
	return stream.Record{Key: []byte(e.ID), Value: value, Headers: headers}
}

// wait waits for a random time below most. A fault at a random time needs it.
func (o *replicas) wait(random *rand.Rand, most time.Duration) {
	timer := time.NewTimer(time.Duration(random.Int64N(int64(most))))
	defer timer.Stop()
	<-timer.C
}

// awaitStandby waits until a learner stands by.
func (o *replicas) awaitStandby(p *process) {
	o.t.Helper()
	addr := p.httpAddr()
	await(o.t, "a learner stands by", func() bool { return strings.Contains(readiness(addr), "standby, ") })
}
