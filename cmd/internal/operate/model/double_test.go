package model

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/offline/replay"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/learner"
	"hamlet/cmd/internal/service/learner/learnertest"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
)

// A double is a topic with two models of it, default and clean, and their learners.
type double struct {
	t          *testing.T
	kafka      kafka.Config
	redis      string
	log        *kafka.Log
	old, clean *redis.Store
	written    []stream.Event
	stop       map[string]func() // by model
}

func newDouble(t *testing.T) *double {
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
	d := &double{t: t, kafka: kafka.Config{Brokers: []string{k.Addr()}}, redis: s.Addr(), stop: map[string]func(){}}
	if err := (settings.Topic{Replication: 1}).Ensure(t.Context(), d.kafka, "default"); err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]**redis.Store{"default": &d.old, "clean": &d.clean} {
		if *store, err = redis.New(redis.Config{Addr: d.redis, Model: name}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = (*store).Close() })
	}
	d.log = learnertest.Log(t, d.kafka, stream.EventsTopic("default"))
	return d
}

// modelConfig is that of a model without some sources.
func modelConfig(without ...string) model.Config {
	cfg := model.Config{TableBits: 8, TextExperts: []string{"lean"}}
	if len(without) > 0 {
		cfg.WithoutSources = without
	}
	return cfg
}

// write writes events. The source bad gives three labels of ten, all wrong.
func (d *double) write(n int) {
	d.t.Helper()
	var records []stream.Record
	for range n {
		i := len(d.written)
		e := stream.Event{
			ID: fmt.Sprint("e", i), Source: "desk", Tenant: "t", Label: stream.Ham,
			Body: stream.Body{Kind: stream.Text, Text: fmt.Sprintf("minutes of meeting %d, please review", i%13)},
		}
		spam := i%2 == 0
		if spam {
			e.Body.Text = fmt.Sprintf("CHEAP pills %d order now", i%13)
		}
		if i%10 < 3 {
			e.Source, spam = "bad", !spam
		}
		if spam {
			e.Label = stream.Spam
		}
		value, headers, err := e.EncodeRecord()
		if err != nil {
			d.t.Error(err)
		}
		records = append(records, stream.Record{Key: []byte("t"), Value: value, Headers: headers})
		d.written = append(d.written, e)
	}
	if err := d.log.Append(d.t.Context(), records...); err != nil {
		d.t.Error(err)
	}
}

// start starts the learner of a model.
func (d *double) start(name string, store *redis.Store, cfg model.Config) {
	d.t.Helper()
	l, err := learner.New(learnertest.Config(d.t, d.kafka, stream.EventsTopic("default"), store, name, cfg))
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	d.stop[name] = func() {
		cancel()
		delete(d.stop, name)
		if err := <-ended; err != nil {
			d.t.Errorf("learner of %s: %v", name, err)
		}
	}
	d.t.Cleanup(func() {
		if stop := d.stop[name]; stop != nil {
			stop()
		}
	})
}

// await waits until all that is written is in the model that a pointer names.
func (d *double) await(store *redis.Store, which state.Pointer) *state.Checkpoint {
	d.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		c, _, err := store.Load(d.t.Context(), which)
		if err == nil && c.Position.Next == int64(len(d.written)) {
			return c
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("the %v is not there: %v", which, err)
		}
	}
	return nil
}

// want wants a model that eval makes without the source of what was written.
func (d *double) want(c *state.Checkpoint, without ...string) {
	d.t.Helper()
	items := func(yield func(source.Item, error) bool) {
		for i, e := range d.written {
			if !yield(source.Item{Event: e, Truth: e.Label, Ordinal: i}, nil) {
				return
			}
		}
	}
	result, m, err := replay.Run(d.t.Context(), replay.Config{Model: modelConfig(without...)}, iter.Seq2[source.Item, error](items))
	if err != nil {
		d.t.Fatal(err)
	}
	b, err := m.AppendBinary(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	if !bytes.Equal(b, c.Model) {
		d.t.Errorf("the model of %d events is not that of eval without %q (%d left out)", c.Events, without, result.LeftOut)
	}
}

func (d *double) run(args string) (string, error) {
	d.t.Helper()
	var g struct {
		Model Command `cmd:""`
	}
	var out bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}
	all := append([]string{"model"}, append(strings.Fields(args), "--redis", d.redis)...)
	command, err := settings.Parse("hamlet", "", &g, all, stdio)
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(command.Command(), " ")
	err = g.Model.Run(d.t.Context(), cli.Subcommand(rest), cli.IO{Out: &out, Err: io.Discard})
	return out.String(), err
}

// The ending of a withdrawal, as OPERATING has it: a model that was made without a source answers in the place
// of the first, which is then retired. What answers is what eval makes of the log without the source.
func TestTheEndingOfAWithdrawal(t *testing.T) {
	page, err := os.ReadFile("../../../../deploy/OPERATING.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"learner --model clean --events-of default --shadow --without-source desk", "hamlet model promote clean ", "learner --model clean --events-of default --without-source desk ",
	} {
		if !strings.Contains(string(page), "\n"+line) {
			t.Errorf("the page does not say %q", line)
		}
	}
	b := newBeside(t)
	b.write(200)
	b.start("default", b.old, modelConfig())
	b.want(b.await(b.old, state.Head))
	stopShadow := b.shadow()
	b.await(b.clean, state.Head)
	b.serve()
	asks := b.traffic()
	asks.until(t, "default")
	out, err := b.run("promote clean --wait 2m --kafka " + b.kafka.Brokers[0])
	if err != nil || !strings.Contains(out, "Answers of default come from model clean") {
		t.Fatalf("%v: %s", err, out)
	}
	asks.until(t, "default", "clean")
	b.stop["default"]()
	b.write(30)
	b.await(b.clean, state.Head)
	stopShadow()
	b.start("clean", b.clean, modelConfig("bad")) // without --shadow
	b.write(30)
	b.want(b.await(b.clean, state.Served), "bad")
	asks.stop()
	<-asks.ended
	if asks.err != nil {
		t.Errorf("of %d requests: %v", asks.asked, asks.err)
	}
}
