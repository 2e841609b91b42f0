package learner

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/logtest"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/leak"
	"hamlet/stream/servertest/loopback"
)

func TestMain(m *testing.M) { leak.Main(m) }

// small is the models' configuration.
var small = model.Config{TableBits: 10, DuplicateWindow: 5000}

// patience is more time than any learner needs on a slow machine.
const patience = 2 * time.Minute

// A rig is a log in memory, others for what a learner writes, and a Redis.
type rig struct {
	t        *testing.T
	topic    string
	events   *logtest.Memory
	dead     *logtest.Memory // dead letters
	receipts *logtest.Memory
	redis    *servertest.Redis
	options  servertest.RedisOptions
	store    *redis.Store
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{
		t: t, topic: stream.EventsTopic("default"), events: new(logtest.Memory), dead: new(logtest.Memory), receipts: new(logtest.Memory),
		options: servertest.RedisOptions{Addr: loopback.Hold(t)}, // the same after a restart
	}
	r.startRedis()
	t.Cleanup(func() { _ = r.redis.Close() })
	var err error
	if r.store, err = redis.New(redis.Config{Addr: r.options.Addr, Model: "default"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.store.Close() })
	return r
}

func (r *rig) startRedis() {
	r.t.Helper()
	var err error
	if r.redis == nil {
		r.redis, err = servertest.StartRedis(r.options)
	} else {
		err = r.redis.Restart()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) produce(records ...stream.Record) {
	r.t.Helper()
	if err := r.events.Append(r.t.Context(), records...); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) config() Config {
	return Config{
		Follow: follow.Config{Log: r.events, Name: "topic " + r.topic, PollInterval: 20 * time.Millisecond},
		Topic:  r.topic, Letters: r.dead, Receipts: r.receipts, Store: r.store, Name: "default", Writer: "w",
		Model:     small,
		SaveEvery: 50 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	}
}

// learn runs a learner until it is active and has read up to end.
func (r *rig) learn(cfg Config, end int64) {
	r.t.Helper()
	if err := r.try(cfg, end); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) try(cfg Config, end int64) error {
	r.t.Helper()
	p := r.run(cfg)
	if err := p.await(func(s Status) bool { return s.Active && s.Next >= end }); err != nil {
		return err
	}
	return p.stop()
}

// A running is a learner that runs.
type running struct {
	l     *Learner
	stop  func() error // as an orderly end, and again without effect
	ended chan struct{}
}

func (r *rig) run(cfg Config) *running {
	r.t.Helper()
	l, err := New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &running{l: l, ended: make(chan struct{})}
	var result error
	go func() {
		defer close(p.ended)
		result = l.Run(ctx)
	}()
	p.stop = func() error { cancel(); <-p.ended; return result }
	r.t.Cleanup(func() { _ = p.stop() })
	return p
}

// await returns when the status is as it should be, or the learner's error if it ends before.
func (p *running) await(holds func(Status) bool) error {
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds(p.l.Status()) {
		select {
		case <-p.ended:
			return fmt.Errorf("the learner ended early: %w", p.stop())
		case <-deadline:
			return fmt.Errorf("not within %v: %+v", patience, p.l.Status())
		case <-tick.C:
		}
	}
	return nil
}

// until is await, and fails the test.
func (p *running) until(t *testing.T, what string, holds func(Status) bool) {
	t.Helper()
	if err := p.await(holds); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (r *rig) head() *state.Checkpoint {
	r.t.Helper()
	c, _, err := r.store.Load(r.t.Context(), state.Head)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// saveOther saves another model in place of the saved one, as an operator does: it counts one event
// more. It returns that count.
func (r *rig) saveOther() (events uint64) {
	r.t.Helper()
	c := r.head()
	seized, err := r.store.Seize(r.t.Context(), "operator")
	if err == nil {
		c.Epoch, c.Writer, c.Events, c.Saved = seized.Epoch, seized.Writer, c.Events+1, time.Now()
		_, err = r.store.Save(r.t.Context(), c)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return c.Events
}

// client returns a client of the rig's Redis.
func (r *rig) client() *goredis.Client {
	r.t.Helper()
	client := goredis.NewClient(&goredis.Options{Addr: r.options.Addr, DisableIdentity: true})
	r.t.Cleanup(func() { _ = client.Close() })
	return client
}

// key returns the name of a key of the model.
func key(name string) string { return "hamlet:{default}:0:" + name }

func (r *rig) set(name, value string) {
	r.t.Helper()
	if err := r.client().Set(r.t.Context(), key(name), value, 0).Err(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) del(name string) {
	r.t.Helper()
	if err := r.client().Del(r.t.Context(), key(name)).Err(); err != nil {
		r.t.Fatal(err)
	}
}

// forget empties the state.
func (r *rig) forget() {
	r.t.Helper()
	if err := r.client().FlushAll(r.t.Context()).Err(); err != nil {
		r.t.Fatal(err)
	}
}

// letters returns the dead letters and receipts, and how often each was written.
func (r *rig) letters() map[string]int {
	r.t.Helper()
	written := map[string]int{}
	for name, log := range map[string]*logtest.Memory{"dead letter": r.dead, "receipt": r.receipts} {
		for _, rec := range all(r.t, log) {
			written[fmt.Sprintf("%s %s", name, rec.Value)]++
		}
	}
	return written
}

// all returns the records of a log.
func all(t *testing.T, log *logtest.Memory) []stream.Record {
	t.Helper()
	b, err := log.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	records, _, err := log.Read(t.Context(), b.First, stream.Limit{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func textRecord(i int, spam bool, text string) stream.Record {
	e := stream.Event{ID: fmt.Sprint("e", i), Source: "s", Tenant: "t", Label: stream.Ham, Body: stream.Body{Kind: stream.Text, Text: text}}
	if spam {
		e.Label = stream.Spam
	}
	value, headers, err := e.EncodeRecord()
	if err != nil {
		panic(err)
	}
	return stream.Record{Key: []byte("t"), Value: value, Headers: headers}
}

// texts returns n labelled texts, and the model that has learnt them in order.
func texts(t *testing.T, n int) ([]stream.Record, *model.Model) {
	t.Helper()
	m, err := model.New(small)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	words := [2][]string{{"lunch", "report", "friday", "thanks"}, {"winner", "prize", "cheap", "click"}}
	var records []stream.Record
	for i := range n {
		spam := random.IntN(2)
		var b strings.Builder
		for range 6 {
			of := spam
			if random.IntN(4) == 0 {
				of = 1 - of
			}
			fmt.Fprintf(&b, "%s%d ", words[of][random.IntN(4)], random.IntN(30))
		}
		records = append(records, textRecord(i, spam == 1, b.String()))
		body := []byte(b.String())
		if _, err := m.Apply(&model.Example{
			ID: fmt.Sprint("e", i), Source: "s", Spam: spam == 1,
			Identity: identityOf(&stream.Event{Tenant: "t", Body: stream.Body{Kind: stream.Text, Text: b.String()}}),
			Body:     model.Body{Tenant: "t", Message: &feature.Message{Body: body, BodyBytes: len(body)}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	return records, m
}

// identityOf returns the identity of an event's text or vector.
func identityOf(e *stream.Event) string { return example.Identity(e, nil) }

func sum(t *testing.T, m *model.Model) [32]byte {
	t.Helper()
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}

// The model does not depend on the size of fetches, on copies in the log, or on
// restarts.
func TestModelIsAFunctionOfTheLog(t *testing.T) {
	r := newRig(t)
	const n = 600
	records, m := texts(t, n)
	want := sum(t, m)
	var log []stream.Record
	for i, record := range records {
		log = append(log, record)
		if i%20 == 7 { // 5 % are produced twice, some at once, some later
			log = append(log, records[i/2], record)
		}
	}
	r.produce(log...)
	end := int64(len(log))
	for _, batch := range []int{1, 7, 128} {
		t.Run(fmt.Sprintf("batch=%d", batch), func(t *testing.T) {
			r.forget()
			cfg := r.config()
			cfg.Follow.MaxBatch = batch
			counts := map[Outcome]int{}
			cfg.Observe = func(a Applied) { counts[a.Outcome]++ }
			r.learn(cfg, end)
			c := r.head()
			if c.ModelSHA256 != want {
				t.Errorf("the model differs from the one that saw each event once, in order")
			}
			if c.Events != n || c.Position.Next != end {
				t.Errorf("%d events at offset %d, want %d at %d", c.Events, c.Position.Next, n, end)
			}
			if counts[Learned] != n || counts[Duplicate] != len(log)-n {
				t.Errorf("counted %v, want %d learned and %d duplicates", counts, n, len(log)-n)
			}
		})
	}
	t.Run("restarts", func(t *testing.T) {
		r.forget()
		for _, at := range []int64{50, 51, 200, 400, end} {
			cfg := r.config()
			cfg.Follow.MaxBatch = 20
			r.learn(cfg, at)
		}
		if c := r.head(); c.ModelSHA256 != want {
			t.Errorf("after restarts the model differs")
		}
	})
}

// A learner with another configuration refuses, names the differences, and goes on only
// with AdoptConfig. What cannot be adopted is not offered.
func TestAnotherConfigurationIsRefused(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 50)
	r.produce(records...)
	r.learn(r.config(), 50)
	other := r.config()
	other.Model.LabelTrust = model.TrustNone
	err := r.try(other, 51)
	var made *ConfigError
	if !errors.As(err, &made) || !strings.Contains(err.Error(), "label_trust") || made.Err != nil {
		t.Fatalf("got %v, want another configuration, which can be adopted, and label_trust", err)
	}
	for _, adopt := range []bool{false, true} {
		tables := other
		tables.Model.TableBits, tables.AdoptConfig = 12, adopt
		err := r.try(tables, 51)
		if refused := errors.As(err, &made); err == nil || refused == adopt || refused && made.Err == nil ||
			!strings.Contains(err.Error(), "table_bits: 12 here, 10 in the model") {
			t.Errorf("other tables (adopt: %v): %v", adopt, err)
		}
	}
	r.produce(textRecord(50, true, "winner"))
	other.AdoptConfig = true
	r.learn(other, 51)
	if c := r.head(); !strings.Contains(string(c.Config), `"none"`) {
		t.Errorf("the adopted configuration was not saved: %s", c.Config)
	}
	if err := r.try(r.config(), 52); err == nil || !strings.Contains(err.Error(), "label_trust") {
		t.Errorf("the old configuration is now the other one: got %v", err)
	}
}
