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
	"hamlet/cmd/internal/example"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/embedded/leak"
	"hamlet/stream/embedded/loopback"
	"hamlet/stream/kafka"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience is more time than any learner needs on a slow machine.
const patience = 2 * time.Minute

// A rig is a Kafka, a Redis and a topic.
type rig struct {
	t        *testing.T
	kafka    kafka.Config
	redis    *embedded.Redis
	options  embedded.RedisOptions
	store    *redis.Store
	producer *kafka.Producer
	topic    string
}

func newRig(t *testing.T, partitions int) *rig {
	t.Helper()
	return newRigWith(t, partitions, embedded.KafkaOptions{})
}

func newRigWith(t *testing.T, partitions int, options embedded.KafkaOptions) *rig {
	t.Helper()
	k, err := embedded.StartKafka(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	r := &rig{
		t: t, kafka: kafka.Config{Brokers: []string{k.Addr()}}, topic: stream.EventsTopic("default"),
		options: embedded.RedisOptions{Dir: t.TempDir(), Addr: loopback.Hold(t)}, // the same after a restart
	}
	r.startRedis()
	t.Cleanup(func() { _ = r.redis.Close() })
	for _, topic := range []string{r.topic, stream.DeadLetterTopic} {
		if err := kafka.EnsureTopic(t.Context(), r.kafka, topic, partitions, 0, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if r.store, err = redis.New(redis.Config{Addr: r.options.Addr, Model: "default"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.store.Close() })
	if r.producer, err = kafka.NewProducer(r.kafka); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.producer.Close() })
	return r
}

func (r *rig) startRedis() {
	r.t.Helper()
	var err error
	if r.redis, err = embedded.StartRedis(r.options); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) produce(records ...kafka.Record) {
	r.t.Helper()
	if err := r.producer.Publish(r.t.Context(), records...); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) config(group string) Config {
	return Config{
		Consumer: kafka.ConsumerConfig{
			Config: r.kafka, Topic: r.topic, Group: group, SessionTimeout: time.Minute, PollInterval: 20 * time.Millisecond,
		},
		DeadLetters: r.producer, Store: r.store, Model: model.Config{TableBits: 10, DuplicateWindow: 5000}, Name: "default",
		SaveEvery: 50 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	}
}

// learn runs a learner until it has read up to end.
func (r *rig) learn(cfg Config, end int64) {
	r.t.Helper()
	if err := r.try(cfg, end); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) try(cfg Config, end int64) error {
	r.t.Helper()
	l, err := New(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for l.Status()[0].Next < end {
		select {
		case err := <-done:
			return fmt.Errorf("the learner ended early: %w", err)
		case <-tick.C:
		}
	}
	cancel()
	return <-done
}

func (r *rig) head() *state.Checkpoint {
	r.t.Helper()
	c, _, err := r.store.Load(r.t.Context(), state.Head)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func textRecord(topic string, i int, spam bool, text string) kafka.Record {
	e := stream.Event{ID: fmt.Sprint("e", i), Source: "s", Tenant: "t", Label: stream.Ham, Body: stream.Body{Kind: stream.Text, Text: text}}
	if spam {
		e.Label = stream.Spam
	}
	value, headers, err := e.EncodeRecord()
	if err != nil {
		panic(err)
	}
	return kafka.Record{Topic: topic, Key: []byte("t"), Value: value, Headers: headers}
}

// texts returns n labelled texts, and the model that has learnt them in order.
func texts(t *testing.T, topic string, n int) ([]kafka.Record, *model.Model) {
	t.Helper()
	m, err := model.New(model.Config{TableBits: 10, DuplicateWindow: 5000})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	words := [2][]string{{"lunch", "report", "friday", "thanks"}, {"winner", "prize", "cheap", "click"}}
	var records []kafka.Record
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
		records = append(records, textRecord(topic, i, spam == 1, b.String()))
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
	r := newRig(t, 1)
	const n = 600
	records, m := texts(t, r.topic, n)
	want := sum(t, m)
	var log []kafka.Record
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
			cfg := r.config(fmt.Sprint("g", batch))
			cfg.Consumer.MaxBatch = batch
			counts := map[Outcome]int{}
			cfg.Observe = func(a Applied) { counts[a.Outcome]++ }
			r.learn(cfg, end)
			c := r.head()
			if c.ModelSHA256() != want {
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
			r.learn(r.config("restarts"), at)
		}
		if c := r.head(); c.ModelSHA256() != want {
			t.Errorf("after restarts the model differs")
		}
	})
}

// forget empties the state.
func (r *rig) forget() {
	r.t.Helper()
	client := goredis.NewClient(&goredis.Options{Addr: r.options.Addr, DisableIdentity: true})
	defer client.Close()
	if err := client.FlushAll(r.t.Context()).Err(); err != nil {
		r.t.Fatal(err)
	}
}

// A learner with another configuration refuses, names the differences, and goes on only
// with AdoptConfig. What cannot be adopted is not offered.
func TestAnotherConfigurationIsRefused(t *testing.T) {
	r := newRig(t, 1)
	records, _ := texts(t, r.topic, 50)
	r.produce(records...)
	r.learn(r.config("g"), 50)
	other := r.config("g")
	other.Model.LabelTrust = model.TrustNone
	err := r.try(other, 51)
	if err == nil || !strings.Contains(err.Error(), "label_trust") || !strings.Contains(err.Error(), "--adopt-config") {
		t.Fatalf("got %v, want an error that names label_trust and --adopt-config", err)
	}
	for _, adopt := range []bool{false, true} {
		tables := other
		tables.Model.TableBits, tables.AdoptConfig = 12, adopt
		err := r.try(tables, 51)
		if err == nil || !strings.Contains(err.Error(), "table_bits: 12 here, 10 in the model") ||
			strings.Contains(err.Error(), "or with --adopt-config") || strings.Contains(err.Error(), "cannot change all of that") == adopt {
			t.Errorf("other tables (--adopt-config: %v): %v", adopt, err)
		}
	}
	r.produce(textRecord(r.topic, 50, true, "winner"))
	other.AdoptConfig = true
	r.learn(other, 51)
	if c := r.head(); !strings.Contains(string(c.Config), `"none"`) {
		t.Errorf("the adopted configuration was not saved: %s", c.Config)
	}
	if err := r.try(r.config("g"), 52); err == nil || !strings.Contains(err.Error(), "label_trust") {
		t.Errorf("the old configuration is now the other one: got %v", err)
	}
}

// Without Redis the learner goes on; when it is back, it saves.
func TestSavingWaitsForRedis(t *testing.T) {
	r := newRig(t, 1)
	const n = 300
	records, m := texts(t, r.topic, n)
	r.produce(records[:100]...)
	cfg := r.config("g")
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	await := func(what string, reached func(Status) bool) {
		t.Helper()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for !reached(l.Status()[0]) {
			select {
			case err := <-done:
				t.Fatalf("the learner ended: %v", err)
			case <-tick.C:
			}
		}
	}
	await("saved", func(s Status) bool { return s.SavedEnd == 100 })
	if err := r.redis.Close(); err != nil {
		t.Fatal(err)
	}
	r.produce(records[100:]...)
	await("read", func(s Status) bool { return s.Next == n })
	if s := l.Status()[0]; s.SavedEnd != 100 {
		t.Errorf("saved up to %d without a Redis", s.SavedEnd)
	}
	r.startRedis()
	await("saved again", func(s Status) bool { return s.SavedEnd == n })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if r.head().ModelSHA256() != sum(t, m) {
		t.Error("the model differs")
	}
}

// Of two learners on one partition, the later one saves. The other reloads. Nothing is
// learnt twice.
func TestZombieLosesTheRace(t *testing.T) {
	r := newRig(t, 1)
	const n = 400
	records, m := texts(t, r.topic, n)
	r.produce(records...)
	// Different groups: Kafka gives both the partition.
	errs := make(chan error, 2)
	for _, group := range []string{"a", "b"} {
		go func() { errs <- r.try(r.config(group), n) }()
	}
	for range 2 {
		if err := <-errs; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	c := r.head()
	if c.ModelSHA256() != sum(t, m) || c.Position.Next != n {
		t.Errorf("the head is at %d with another model", c.Position.Next)
	}
}
