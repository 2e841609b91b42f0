package withdraw

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/algos/trust"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/learner"
	"hamlet/cmd/internal/service/learner/learnertest"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// awaitAll is more time than any step needs on a slow machine.
const awaitAll = 2 * time.Minute

var config = model.Config{TableBits: 8, TextExperts: []string{"lean"}, Alarms: model.Alarms{Off: true}}

// A rig is a Kafka, a Redis, a topic and a learner of it.
type rig struct {
	t     *testing.T
	kafka kafka.Config
	redis string
	store *redis.Store
	log   *kafka.Log

	mu      sync.Mutex
	offsets []int64 // of the model's events, in order
}

func newRig(t *testing.T) *rig {
	t.Helper()
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	s, err := servertest.StartRedis(servertest.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	r := &rig{t: t, kafka: kafka.Config{Brokers: []string{k.Addr()}}, redis: s.Addr()}
	if err := (settings.Topic{Replication: 1}).Ensure(t.Context(), r.kafka, "default"); err != nil {
		t.Fatal(err)
	}
	if r.store, err = redis.New(redis.Config{Addr: r.redis}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.store.Close() })
	if r.log, err = kafka.NewLog(r.kafka, stream.EventsTopic("default")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.log.Close() })
	return r
}

// label is an event; what it is about says what it is, and a lie says otherwise.
func label(i int, source string, lie bool) stream.Event {
	random := rand.New(rand.NewPCG(3, uint64(i)))
	spam := random.IntN(2) == 1
	words := []string{"lunch", "report", "friday", "thanks"}
	if spam {
		words = []string{"winner", "prize", "cheap", "click"}
	}
	var b strings.Builder
	for range 5 {
		fmt.Fprintf(&b, "%s%d ", words[random.IntN(4)], random.IntN(20))
	}
	e := stream.Event{ID: fmt.Sprint("e", i), Source: source, Tenant: "t", Label: stream.Ham, Body: stream.Body{Kind: stream.Text, Text: b.String()}}
	if spam != lie {
		e.Label = stream.Spam
	}
	return e
}

func (r *rig) write(events ...stream.Event) {
	r.t.Helper()
	var records []stream.Record
	for i := range events {
		value, headers, err := events[i].EncodeRecord()
		if err != nil {
			r.t.Fatal(err)
		}
		records = append(records, stream.Record{Key: []byte("t"), Value: value, Headers: headers})
	}
	if err := r.log.Append(r.t.Context(), records...); err != nil {
		r.t.Fatal(err)
	}
}

// start runs a learner until stop.
func (r *rig) start() (stop func()) {
	r.t.Helper()
	cfg := learnertest.Config(r.t, r.kafka, stream.EventsTopic("default"), r.store, "default", config)
	cfg.Observe = func(a learner.Applied) {
		if a.Outcome != learner.DeadLettered && a.Outcome != learner.Duplicate {
			r.mu.Lock()
			r.offsets = append(r.offsets, a.Offset)
			r.mu.Unlock()
		}
	}
	l, err := learner.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Error(err)
		}
	}
}

// learn learns all that is in the log.
func (r *rig) learn() {
	r.t.Helper()
	stop := r.start()
	defer stop()
	all := Plan{Until: r.end()}
	if saved, err := all.Saved(r.t.Context(), Servers{Store: r.store}, awaitAll); err != nil || !saved {
		r.t.Fatal(saved, err)
	}
}

func (r *rig) end() int64 {
	r.t.Helper()
	bounds, err := r.log.Bounds(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return bounds.End
}

func (r *rig) head() *state.Checkpoint {
	r.t.Helper()
	c, _, err := r.store.Load(r.t.Context(), state.Head)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func (r *rig) run(args string) (string, error) {
	r.t.Helper()
	var g struct {
		Withdraw Command `cmd:""`
	}
	var out bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}
	all := append([]string{"withdraw", "--kafka", r.kafka.Brokers[0], "--redis", r.redis}, strings.Fields(args)...)
	if _, err := settings.Parse("hamlet", "", &g, all, stdio); err != nil {
		return "", err
	}
	err := g.Withdraw.Run(r.t.Context(), stdio)
	return out.String(), err
}

// does runs a withdrawal that must succeed, and returns what it says in JSON.
func (r *rig) does(args string) result {
	r.t.Helper()
	out, err := r.run(args + " --json")
	if err != nil {
		r.t.Fatalf("%s: %v", args, err)
	}
	var got result
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		r.t.Fatalf("%s: %v in %s", args, err, out)
	}
	return got
}

// The command withdraws what the window holds, says before what that does, and does nothing
// when it runs again: before and after the learner has learnt it.
func TestWithdraw(t *testing.T) {
	r := newRig(t)
	m, err := model.New(config)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(e stream.Event) model.Effect {
		ex, _, err := example.Of(&e)
		if err != nil {
			t.Fatal(err)
		}
		effect, err := m.Apply(&ex)
		if err != nil {
			t.Fatal(err)
		}
		return effect
	}
	var events []stream.Event
	for i := range 2700 {
		source := "desk"
		if i < 100 || i >= 2600 && i%2 == 0 {
			source = "liar"
		}
		events = append(events, label(i, source, source == "liar" && i > 100))
	}
	r.write(events...)
	for _, e := range events {
		apply(e)
	}
	r.learn()

	dry := r.does("--source liar --since 1 --dry-run --recent 50")
	p := dry.Plan
	if p.Labels != 150 || p.Withdrawable != 50 || p.Beyond != 100 || p.Withdrawn != 0 || dry.Written != 0 || p.Answers.Events != 50 || r.end() != 2700 {
		t.Errorf("dry run: %+v", p)
	}
	if got := r.does("--source liar --since 2651 --dry-run"); got.Labels != 25 || got.From != 2650 {
		t.Errorf("since event 2651: %+v", got)
	}
	if got := r.does("--source liar --since default.0.2601 --until 2650 --dry-run"); got.Labels != 25 || got.To != 2650 {
		t.Errorf("until event 2650: %+v", got)
	}
	if got := r.does("--source liar --since 1h --dry-run"); got.Labels != 150 {
		t.Errorf("since an hour ago: %+v", got)
	}
	text, err := r.run("--source liar --since 1 --dry-run")
	for _, want := range []string{"50", "100 labels", "--events-of default --shadow --without-source liar", "AdaGrad experts", "last 1000 events of other sources", "dry run"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v; %q is not in\n%s", err, want, text)
		}
	}
	if _, err := r.run("--source liar --since 1"); cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), "say --yes") || r.end() != 2700 {
		t.Errorf("without --yes: %v", err)
	}

	if got := r.does("--source liar --since 2601 --until 2640 --yes --wait 0"); got.Written != 20 || got.Saved {
		t.Errorf("the first part: %+v", got)
	}
	stop := r.start()
	got := r.does("--source liar --since 1 --yes --wait 2m")
	stop()
	if got.Written != 30 || got.Withdrawn != 20 || !got.Saved || r.end() != 2750 {
		t.Errorf("the rest: %+v %+v", got, got)
	}
	if got := r.does("--source liar --since 1 --yes"); got.Written != 0 || got.Withdrawn != 50 || r.end() != 2750 {
		t.Errorf("once more: %+v %+v", got, got)
	}

	// The learner has done what the command showed.
	before, after := bytesOf(t, m), 0.0
	for i := 2600; i < 2700; i += 2 {
		e := withdrawal(stream.EventsTopic("default"), &record{Record: &stream.Record{Offset: int64(i)}, Incoming: example.Incoming{Event: events[i]}})
		if apply(e).Receipt == nil {
			t.Fatal("a withdrawal of the test did nothing")
		}
	}
	for i := 2601; i < 2700; i += 2 {
		ex, _, err := example.Of(&events[i])
		if err != nil {
			t.Fatal(err)
		}
		prediction, err := m.NewPredictor().Predict(&ex.Body)
		if err != nil {
			t.Fatal(err)
		}
		after += eval.LogLoss(ex.Spam, prediction.LogOdds) / 50
	}
	if !bytes.Equal(r.head().Model, bytesOf(t, m)) || bytes.Equal(before, bytesOf(t, m)) {
		t.Error("the saved model is not the one with these withdrawals")
	}
	if a := p.Answers; a.LogLossAfter < after-1e-9 || a.LogLossAfter > after+1e-9 || a.LogLossAfter >= a.LogLossBefore || a.LargestChange == 0 {
		t.Errorf("shown %+v, the model's log loss is %v", a, after)
	}
}

func bytesOf(t *testing.T, m *model.Model) []byte {
	t.Helper()
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Events are found behind copies and dead letters.
func TestEventsBehindCopies(t *testing.T) {
	r := newRig(t)
	var events []stream.Event
	for i := range 60 {
		source := []string{"desk", "liar"}[i%2]
		e := label(i, source, source == "liar")
		events = append(events, e)
		if i%7 == 0 {
			events = append(events, e)
		}
		if i%11 == 3 {
			e.ID, e.Action, e.Of = e.ID+"x", stream.Unlearn, "nobody"
			e.Source = "desk"
			events = append(events, e)
		}
		if i%11 == 5 { // the message is forgotten, corrected, and assumed
			e.ID, e.Source = e.ID+"f", "desk"
			for _, action := range []stream.Action{stream.Unlearn, stream.Unlearn, stream.Correct, stream.Assume} {
				e.ID, e.Action = e.ID+"+", action
				events = append(events, e)
			}
		}
	}
	r.write(events...)
	if err := r.log.Append(t.Context(), stream.Record{Key: []byte("t"), Value: []byte("{")}); err != nil {
		t.Fatal(err)
	}
	r.write(label(60, "desk", false))
	r.learn()
	r.wantOffsets(1, 2, 30, 59, 60)
	end := r.end()
	if _, err := r.run("--source liar --since 99 --dry-run"); err == nil || !strings.Contains(err.Error(), "event 99 is not learnt and saved yet: the saved model has 76") {
		t.Errorf("an event to come: %v", err)
	}
	got := r.does("--source liar --since 31 --yes --wait 0")
	if added := r.end() - end; got.Withdrawable != 16 || got.Written != 16 || added != 16 {
		t.Errorf("withdrawn are %d, written %d, the log has %d more; want 16", got.Withdrawable, got.Written, added)
	}
}

// wantOffsets wants these events of the model where its learner saw them.
func (r *rig) wantOffsets(events ...uint64) {
	r.t.Helper()
	l, err := Servers{Kafka: r.kafka, Store: r.store}.open(r.t.Context(), "default")
	if err != nil {
		r.t.Fatal(err)
	}
	defer l.Close()
	for _, n := range events {
		if got, err := l.offsetOf(r.t.Context(), n); err != nil || got != r.offsets[n-1] {
			r.t.Errorf("event %d at offset %d (%v), want %d", n, got, err, r.offsets[n-1])
		}
	}
}

// A dry run counts the events that the model counts, also where a message is forgotten by its
// identity, corrected, or assumed to be what the model answered.
func TestADryRunCountsAsTheModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 7))
	cfg := config
	cfg.Standing = model.StandingNone
	m, err := model.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.SetRole("anchor", trust.Anchor); err != nil {
		t.Fatal(err)
	}
	if err := m.SetRole("muted", trust.Muted); err != nil {
		t.Fatal(err)
	}
	counts, differ := map[string]int{}, 0
	var examples []model.Example
	for i := range 4000 {
		e := label(random.IntN(60), []string{"desk", "liar", "anchor", "muted"}[random.IntN(4)], random.IntN(4) == 0)
		identity := example.Identity(&e, nil)
		if i%50 == 0 {
			e.ID += "x" // an id that is nowhere else
		}
		e.Action, e.OwnOnly = stream.Action(random.IntN(5)), random.IntN(2) == 0
		switch {
		case e.Action == stream.Learn:
			e.ID, e.OwnOnly = fmt.Sprint(e.ID, ".", random.IntN(4)), false
		case e.Action == stream.Relearn || e.Action == stream.Unlearn && random.IntN(2) == 0:
			e.Of, e.ID = fmt.Sprint(e.ID, ".", random.IntN(4)), fmt.Sprint("r", i)
		case random.IntN(2) == 0:
			e.Of, e.ID = identity, fmt.Sprint("i", i)
		default:
			e.ID = fmt.Sprint("b", i)
		}
		aside := i%40 == 39
		if aside {
			e.ID = fmt.Sprint("aside", i)
		}
		ex, _, err := example.Of(&e)
		if err != nil {
			t.Fatal(err)
		}
		if aside {
			if err := m.SetAside(ex.Key()); err != nil {
				t.Fatal(err)
			}
		}
		examples = append(examples, ex)
	}
	dry := m.NewDryRun(true)
	for i, ex := range examples {
		got := dry.Counts(&ex)
		before := m.Events()
		_, err := m.Apply(&ex)
		want := m.Events() > before
		counts[fmt.Sprint(stream.Action(ex.Action), " ", want)]++
		if got != want {
			differ++
			t.Logf("record %d, %v of %q, is an event: %v, want %v (%v)", i, stream.Action(ex.Action), ex.Of, got, want, err)
		}
	}
	if differ > 0 {
		t.Errorf("%d of 4000 records differ", differ)
	}
	for _, k := range []string{"learn true", "learn false", "relearn true", "relearn false", "unlearn true", "unlearn false", "correct true", "assume true"} {
		if counts[k] < 20 {
			t.Errorf("counted %v: too few of %s", counts, k)
		}
	}
}

func TestBounds(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]Bound{
		"7":                    {event: 7},
		"0:7":                  {event: 7},
		"news-2.0.7":           {event: 7},
		"90m":                  {at: now.Add(-90 * time.Minute)},
		"2026-11-20":           {at: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)},
		"2026-11-20T10:00:00Z": {at: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)},
	} {
		if got, err := ParseBound("--since", text, "news-2", now); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"0": "numbered from 1", "": "is neither", "other.0.7": "an incident of model other", "-3h": "is neither",
		"99999999999999999999": "numbered from 1", "1:7": "an event of partition 1, and", "news-2.3.7": "has one partition, 0: give a time", "yesterday": "is neither",
	} {
		if _, err := ParseBound("--since", text, "news-2", now); cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// An id is for ever: a withdrawal that hamlet 0.1.0 wrote is not written as another one.
func TestTheIDOfAWithdrawal(t *testing.T) {
	r := record{Record: &stream.Record{Offset: 7}, Incoming: example.Incoming{Event: stream.Event{ID: "e7"}}}
	if got := withdrawal("hamlet.events.default", &r).ID; got != "withdraw-f738b588c4e1bc7df0f91ab5457eb5a6" {
		t.Errorf("it is %s", got)
	}
}

// A topic that is not the model's log is refused.
func TestAnotherLog(t *testing.T) {
	r := newRig(t)
	r.write(label(1, "desk", false), label(2, "liar", true))
	r.learn()
	c := r.head()
	c.Position = state.Position{}.Advance(0, nil, []byte("x")).Advance(1, nil, []byte("y"))
	lease, err := r.store.Seize(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	c.Epoch, c.Writer = lease.Epoch, lease.Writer
	if _, err := r.store.Save(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := r.run("--source liar --since 1 --yes"); err == nil || !strings.Contains(err.Error(), "it is not the model's log") {
		t.Errorf("another record: %v", err)
	}
	c.Position.Next = 5
	if _, err := r.store.Save(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := r.run("--source liar --since 1 --yes"); err == nil || !strings.Contains(err.Error(), "ends at 2") || errors.Is(err, io.EOF) {
		t.Errorf("a shorter log: %v", err)
	}
}

// In the folder of a hamlet up that does not run nobody learns: it refuses before it writes. It shows a plan,
// and writes where nobody waits.
func TestStoppedFolder(t *testing.T) {
	data := t.TempDir()
	dir, err := machine.Open(t.Context(), data, machine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := (settings.Topic{}).Ensure(t.Context(), dir, "default"); err != nil {
		t.Fatal(err)
	}
	log, err := dir.Open(stream.EventsTopic("default"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		e := label(i, "liar", false)
		value, headers, err := e.EncodeRecord()
		if err == nil {
			err = log.Append(t.Context(), stream.Record{Value: value, Headers: headers})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	store, err := dir.Store("default")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), awaitAll)
	defer cancel()
	l, err := learner.New(learner.Config{Follow: follow.Topic(log, dir), Topic: stream.EventsTopic("default"), Store: store, Model: config,
		SaveEvery: time.Millisecond, Letters: log, Receipts: log, Name: "default", Writer: "w", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	learning, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.Run(learning) }()
	for l.Status().SavedEnd < 4 && ctx.Err() == nil && len(ended) == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := errors.Join(<-ended, ctx.Err(), dir.Close()); err != nil {
		t.Fatal(err)
	}
	run := func(args string) (string, error) {
		var g struct {
			Withdraw Command `cmd:""`
		}
		var out bytes.Buffer
		stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}
		all := append([]string{"withdraw", "--data", data, "--source", "liar", "--since", "1", "--recent", "0"}, strings.Fields(args)...)
		if _, err := settings.Parse("hamlet", "", &g, all, stdio); err != nil {
			return "", err
		}
		err := g.Withdraw.Run(ctx, stdio)
		return out.String(), err
	}
	for _, c := range []struct {
		args string
		err  string // "": none
		end  int64
	}{
		{"--yes", "start hamlet up --data " + data + ", then run this command again", 4},
		{"--dry-run", "", 4},
		{"--yes --wait 0", "", 8},
	} {
		out, err := run(c.args)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v; %s", c.args, err, out)
		}
		dir, err := machine.Open(t.Context(), data, machine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		log, err := dir.Open(stream.EventsTopic("default"))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := log.Bounds(t.Context()); err != nil || b.End != c.end {
			t.Errorf("%s: the log ends at %d, want %d (%v)", c.args, b.End, c.end, err)
		}
		if err := dir.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
