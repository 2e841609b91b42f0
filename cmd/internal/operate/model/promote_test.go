package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/learner"
	"hamlet/cmd/internal/service/learner/learnertest"
	"hamlet/cmd/internal/service/scorer"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/predictions"
	"hamlet/stream/questions"
)

// A beside is a topic with the models default and its shadow clean, and scorers of default.
type beside struct {
	*double
	url  string // of NATS
	conn *natsgo.Conn
}

func newBeside(t *testing.T) *beside {
	t.Helper()
	b := &beside{double: newDouble(t)}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the nats server doesn't listen")
	}
	b.url = s.ClientURL()
	if b.conn, err = nats.Connect(nats.Config{URL: b.url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.conn.Close)
	return b
}

// serve runs a scorer of default until stop is called.
func (b *beside) serve() (stop func()) {
	b.t.Helper()
	conn, err := nats.Connect(nats.Config{URL: b.url})
	if err != nil {
		b.t.Fatal(err)
	}
	questions, err := nats.NewService(conn, nats.ServiceConfig{Metadata: map[string]string{nats.MetadataNumerics: model.CurrentNumerics()}})
	if err != nil {
		b.t.Fatal(err)
	}
	answers := scorer.New(scorer.Config{Questions: questions, Store: b.old, PollInterval: 2 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- answers.Run(ctx) }()
	select {
	case <-answers.Listening():
	case <-time.After(time.Minute):
		b.t.Fatal("the scorer does not listen")
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Error(err)
		}
		conn.Close()
	})
	b.t.Cleanup(stop)
	return stop
}

var errMortal = errors.New("dead")

// A mortal store fails for ever once it is dead, as for a learner that was killed.
type mortal struct {
	learner.Store
	dead *atomic.Bool
}

func (m mortal) Save(ctx context.Context, c *state.Checkpoint) (int64, error) {
	if m.dead.Load() {
		return 0, errMortal
	}
	return m.Store.Save(ctx, c)
}

// shadow runs the shadow of default until it is killed, which saves nothing.
func (b *beside) shadow() (kill func()) {
	b.t.Helper()
	dead := &atomic.Bool{}
	cfg := learnertest.Config(b.t, b.kafka, stream.EventsTopic("default"), mortal{b.clean, dead}, "clean", modelConfig("bad"))
	cfg.Shadow = &learner.Shadow{Of: "default", Promotion: b.old.Promotion, Poll: 5 * time.Millisecond}
	l, err := learner.New(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	kill = sync.OnceFunc(func() {
		dead.Store(true)
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, errMortal) {
			b.t.Error(err)
		}
	})
	b.t.Cleanup(kill)
	return kill
}

// A traffic asks all the time, one request after the other.
type traffic struct {
	mu    sync.Mutex
	names []string // of the models that answered, without repetition
	asked int
	err   error
	ended chan struct{}
	stop  context.CancelFunc
}

func (b *beside) traffic() *traffic {
	b.t.Helper()
	client, err := nats.NewClient(b.conn, "")
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &traffic{ended: make(chan struct{}), stop: cancel}
	go func() {
		defer close(r.ended)
		for ctx.Err() == nil {
			v, err := client.Ask(context.Background(), questions.Question{Body: []byte("CHEAP pills order now"), ContentType: questions.Text})
			r.mu.Lock()
			r.asked++
			if err != nil {
				r.err = errors.Join(r.err, fmt.Errorf("request %d: %w", r.asked, err))
				cancel()
			} else if n := len(r.names); n == 0 || r.names[n-1] != v[0].Model.Name {
				r.names = append(r.names, v[0].Model.Name)
			}
			r.mu.Unlock()
		}
	}()
	b.t.Cleanup(func() { cancel(); <-r.ended })
	return r
}

// until waits until so many models have answered, one after the other.
func (r *traffic) until(t *testing.T, names ...string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(2 * time.Millisecond) {
		r.mu.Lock()
		got, err := slices.Clone(r.names), r.err
		r.mu.Unlock()
		if slices.Equal(got, names) {
			return
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("answers came from %v, want %v; %v", got, names, err)
		}
	}
}

// A shadow answers in the place of the first model and back, while requests come all the time,
// the shadow is killed and the scorer is restarted. No request is lost, answers change their
// model once each way, and what is refused is refused
// once, by the first learner.
func TestPromote(t *testing.T) {
	b := newBeside(t)
	write := func() {
		b.write(40)
		if err := b.log.Append(t.Context(), stream.Record{Value: fmt.Append(nil, "no event ", len(b.written))}); err != nil {
			t.Fatal(err)
		}
		b.written = append(b.written, stream.Event{})
	}
	write()
	b.start("default", b.old, modelConfig())
	kill := b.shadow()
	head := func(store *redis.Store) int64 {
		h, err := store.Heading(t.Context(), state.Head)
		if err != nil {
			return 0
		}
		return h.Next
	}
	for head(b.old) == 0 || head(b.clean) == 0 {
		<-time.After(2 * time.Millisecond)
	}
	stop := b.serve()
	asks := b.traffic()
	asks.until(t, "default")
	servers := " --wait 2m --kafka " + b.kafka.Brokers[0]
	must := func(args string, want ...string) {
		t.Helper()
		out, err := b.run(args)
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("%s: %q is not in\n%s", args, text, out)
			}
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
	must("promote clean --dry-run --nats "+b.url+servers, "answers    clean in the place of default", "of the log (the same)", "without_sources",
		"scorers    1 of default, all of which read numerics", "Nothing was changed")
	write()
	must("promote clean"+servers, "Answers of default come from model clean")
	asks.until(t, "default", "clean")
	must("promote clean"+servers, "come from model clean already")
	must("versions", "answers come from model clean")
	must("promote --back"+servers, "Model default answers by itself again")
	asks.until(t, "default", "clean", "default")
	must("promote --back", "already")
	must("--json promote clean"+servers, `"model":"default","before":"default","answers":"clean"`)
	asks.until(t, "default", "clean", "default", "clean")

	kill()
	write()
	stopOther := b.serve() // another scorer takes over
	stop()
	far := head(b.clean)
	defer b.shadow()()
	for head(b.clean) <= far || head(b.old) > head(b.clean) {
		<-time.After(2 * time.Millisecond)
	}
	asks.stop()
	<-asks.ended
	stopOther()
	if want := []string{"default", "clean", "default", "clean"}; asks.err != nil || !slices.Equal(asks.names, want) {
		t.Errorf("answers came from %v, want %v; of %d requests: %v", asks.names, want, asks.asked, asks.err)
	}
	b.untilLetters(3)
	b.stop["default"]()
	b.onceOnly()
}

// untilLetters waits until there are so many dead letters.
func (b *beside) untilLetters(n int64) {
	b.t.Helper()
	letters := learnertest.Log(b.t, b.kafka, stream.DeadLetterTopic)
	for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(5 * time.Millisecond) {
		all, err := letters.Bounds(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		if all.End >= n {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%d dead letters, want %d", all.End, n)
		}
	}
}

// onceOnly wants each dead letter once.
func (b *beside) onceOnly() {
	b.t.Helper()
	times := map[string]int{}
	letters := follow.Topic(learnertest.Log(b.t, b.kafka, stream.DeadLetterTopic), b.kafka)
	all, err := follow.Bounds(b.t.Context(), letters)
	if err != nil {
		b.t.Fatal(err)
	}
	err = follow.Range(b.t.Context(), letters, 0, all.End, func(r *stream.Record) error { times[string(r.Value)]++; return nil })
	if err != nil || len(times) != 3 {
		b.t.Errorf("dead letters %v, %v; want 3", times, err)
	}
	for letter, n := range times {
		if n != 1 {
			b.t.Errorf("%q came %d times", letter, n)
		}
	}
}

// What may not answer in the place of a model is refused in words, and nothing changes.
func TestPromotionsThatAreRefused(t *testing.T) {
	b := newBeside(t)
	servers := " --wait 1s --kafka " + b.kafka.Brokers[0]
	fails := func(args string, status int, want string) {
		t.Helper()
		out, err := b.run(args)
		if cli.Status(err) != status || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, status %d; want %q and %d\n%s", args, err, cli.Status(err), want, status, out)
		}
		if p, err := b.old.Promotion(t.Context()); !errors.Is(err, state.ErrNone) {
			t.Fatalf("%s: promoted %+v, %v", args, p, err)
		}
	}
	fails("promote", 2, "name the model that is to answer")
	fails("promote default", 2, `"default" is not the name of another model`)
	fails("promote Default", 2, "is not the name")
	fails("promote clean --back", 2, "it names no candidate")
	fails("promote clean --for 0s", 2, "--for")
	fails("promote clean --promote-when better --since then", 2, "--since")
	fails("promote clean"+servers, 1, "the store keeps no version of model clean")
	b.write(40)
	b.start("default", b.old, modelConfig())
	b.await(b.old, state.Head)
	fails("promote clean --wait 10m", 1, "the store keeps no version of model clean")
	b.start("clean", b.clean, modelConfig("bad"))
	first := b.await(b.clean, state.Head)
	b.stop["clean"]()
	fails("promote clean --promote-when better"+servers, 1, "there is no topic hamlet.predictions.default")

	b.write(20)
	b.await(b.old, state.Head)
	fails("promote clean"+servers, 1, "model clean has learnt up to 40 of the log, and default up to 60")
	save := func(change func(*state.Checkpoint)) {
		t.Helper()
		c := *first
		var err error
		lease, err := b.clean.Seize(t.Context(), "w")
		if err != nil {
			t.Fatal(err)
		}
		c.Epoch, c.Writer = lease.Epoch, lease.Writer
		change(&c)
		if _, err := b.clean.Save(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	}
	other := func(c *state.Checkpoint) { c.Position.Next, c.Position.Chain[0] = 60, 1 }
	save(other)
	fails("promote clean"+servers, 1, "model clean has learnt another log than default")
	fails("promote clean --promote-when better"+servers, 1, "model clean has learnt another log than default")
	save(func(c *state.Checkpoint) { other(c); c.Model = []byte("no model") })
	fails("promote clean --accept-lost-beginning"+servers, 1, "which would answer, cannot be read")
	save(func(c *state.Checkpoint) { other(c); c.Numerics = "999" })
	stop := b.serve()
	fails("promote clean --accept-lost-beginning --nats "+b.url+servers, 1, "1 of 1 scorers of default do not read models of numerics 999: upgrade them first")
	stop()
	old, err := nats.NewService(b.conn, nats.ServiceConfig{}) // of a version before
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- old.Serve(ctx, nil, nil) }()
	<-old.Ready()
	fails("promote clean --accept-lost-beginning --nats "+b.url+servers, 1, "of a version that follows no promotion")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if out, err := b.run("promote clean --dry-run --accept-lost-beginning" + servers); err != nil || !strings.Contains(out, "(not compared)") || !strings.Contains(out, "not asked, without --nats") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A candidate is promoted once it is shown to be better, and not before.
func TestPromoteWhenBetter(t *testing.T) {
	b := newBeside(t)
	b.write(40)
	for name, store := range map[string]*redis.Store{"default": b.old, "clean": b.clean} {
		b.start(name, store, modelConfig())
		b.await(store, state.Head)
		if err := b.kafka.Ensure(t.Context(), predictions.Topic(name), 1, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	// predict writes what a model predicted of n events from an offset on; it is right in 19 of 20.
	predict := func(model string, from, n int, z float32) {
		t.Helper()
		var records []stream.Record
		for at := from; at < from+n; at += predictions.MaxEvents {
			block := predictions.Block{Model: model, Events: stream.EventsTopic("default")}
			for i := at; i < min(at+predictions.MaxEvents, from+n); i++ {
				p := predictions.Prediction{Offset: int64(i), Spam: i%2 == 0, LogOdds: -z}
				if p.Spam {
					p.LogOdds = z
				}
				if i/2%20 == 0 {
					p.Spam = !p.Spam
				}
				block.Predictions = append(block.Predictions, p)
			}
			value, err := block.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, stream.Record{Value: value})
		}
		if err := learnertest.Log(t, b.kafka, predictions.Topic(model)).Append(t.Context(), records...); err != nil {
			t.Fatal(err)
		}
	}
	predict("default", 0, 4000, 1)
	predict("clean", 0, 1010, 2.9)
	var out bytes.Buffer
	p := &promotion{model: "default", candidate: "clean", store: b.old, by: b.clean, stdout: &out, every: 5 * time.Millisecond, log: slog.New(slog.DiscardHandler),
		kafka: func() (stream.Logs, error) { return b.kafka, nil }}
	err := p.untilBetter(t.Context(), "default", 2*time.Second)
	if cli.Status(err) != cli.StatusFailed || !strings.Contains(err.Error(), "was not shown to be better than default, after 10 common events") {
		t.Errorf("too few events: %v\n%s", err, out.String())
	}
	p.stdout = io.Discard
	predict("clean", 1010, 2990, 2.9)
	if err := p.untilBetter(t.Context(), "default", time.Minute); err != nil {
		t.Error(err)
	}
	p.since = time.Now().Add(time.Hour)
	if err := p.untilBetter(t.Context(), "default", 50*time.Millisecond); err == nil {
		t.Error("predictions before --since count")
	}
	said, err := b.run("promote clean --promote-when better --since 24h --kafka " + b.kafka.Brokers[0])
	if err != nil || !strings.Contains(said, "Answers of default come from model clean") {
		t.Errorf("%v\n%s", err, said)
	}
	if a, err := ReadAnswers(t.Context(), b.old, "default"); err != nil || a == nil || a.Model != "clean" || a.By == "" {
		t.Errorf("%+v, %v", a, err)
	}
}
