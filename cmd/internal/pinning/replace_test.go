package pinning

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"hamlet/algos/algotest/plant"
	"hamlet/algos/model"
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/learner"
	"hamlet/cmd/internal/learner/learnertest"
	"hamlet/cmd/internal/replay"
	"hamlet/cmd/internal/settings"
	"hamlet/cmd/internal/source"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/kafka"
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
	k, err := embedded.StartKafka(embedded.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	s, err := embedded.StartRedis(embedded.RedisOptions{})
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
	err = g.Model.Run(d.t.Context(), rest, &out, io.Discard)
	return out.String(), err
}

// A model without a source takes the place of one with it, under running learners, while
// events come. Served is what eval makes of the log without the source, before and after
// more events, and after the learner was replaced by one with the old flags.
func TestReplace(t *testing.T) {
	d := newDouble(t)
	d.write(200)
	d.start("default", d.old, modelConfig())
	d.want(d.await(d.old, state.Head))
	if _, err := d.run("replace --by clean --wait 0"); err == nil || !strings.Contains(err.Error(), "does its learner run?") && !strings.Contains(err.Error(), "start its learner with --events-of default") {
		t.Errorf("by a model that is not there: %v", err)
	}
	d.start("clean", d.clean, modelConfig("bad"))
	d.await(d.clean, state.Head)
	written := make(chan struct{})
	go func() {
		defer close(written)
		for range 20 {
			d.write(10)
		}
	}()
	out, err := d.run("replace --by clean --wait 2m --kafka " + d.kafka.Brokers[0])
	<-written
	if err != nil || !strings.Contains(out, "which it replaces, is kept for 30 days") {
		t.Fatalf("%v: %s", err, out)
	}
	d.write(20)
	d.want(d.await(d.old, state.Served), "bad")
	d.stop["clean"]()
	d.write(30) // the learner of default goes on alone
	d.want(d.await(d.old, state.Served), "bad")
	if out, err := d.run("replace --by clean --kafka " + d.kafka.Brokers[0]); err != nil || !strings.Contains(out, "nothing to replace") {
		t.Errorf("once more: %v: %s", err, out)
	}
	d.stop["default"]()
	d.start("default", d.old, modelConfig())
	d.write(30)
	d.want(d.await(d.old, state.Served), "bad")

	// The version that was replaced is still there.
	list, err := d.old.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		if !v.Replaced {
			continue
		}
		if err := d.old.Pin(t.Context(), v.Version); err != nil {
			t.Fatal(err)
		}
		c, _, err := d.old.Load(t.Context(), state.Served)
		if err != nil || bytes.Contains(c.Config, []byte("without_sources")) {
			t.Errorf("%v; pinned is %s", err, c.Config)
		}
		return
	}
	t.Errorf("none of %+v was replaced", list)
}

// A learner that leaves out some sources goes on with a model that leaves out more. A model
// that leaves out fewer is refused: the learner of the old one would stop.
func TestReplaceByAModelWithoutMore(t *testing.T) {
	d := newDouble(t)
	d.write(60)
	d.start("default", d.old, modelConfig("the other"))
	d.start("clean", d.clean, modelConfig("bad"))
	d.await(d.old, state.Head)
	d.await(d.clean, state.Head)
	replace := "replace --by clean --wait 2m --kafka " + d.kafka.Brokers[0]
	if _, err := d.run(replace); err == nil || !strings.Contains(err.Error(), `model clean learns from "the other", which default leaves out`) {
		t.Errorf("by a model that learns from more: %v", err)
	}
	d.stop["clean"]()

	wide, err := redis.New(redis.Config{Addr: d.redis, Model: "wide"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = wide.Close() })
	d.start("wide", wide, modelConfig("the other", "bad"))
	d.await(wide, state.Head)
	out, err := d.run(strings.Replace(replace, "clean", "wide", 1))
	if want := "learner of default: --without-source bad --without-source 'the other'\n"; err != nil || !strings.Contains(out, want) {
		t.Fatalf("%v: %s, want %q", err, out, want)
	}
	d.write(20)
	d.want(d.await(d.old, state.Served), "the other", "bad")
}

// An event of a source that one model leaves out makes the program panic in the other, which sets it
// aside. The first can take the place all the same, under the learner that has set the event aside.
func TestReplaceByAModelThatSetsNothingAside(t *testing.T) {
	plant.Learning(t, "e21")
	d := newDouble(t)
	d.write(30)
	d.start("default", d.old, modelConfig())
	d.start("clean", d.clean, modelConfig("bad"))
	if c := d.await(d.old, state.Head); !bytes.Contains(c.Config, []byte("set_aside")) {
		t.Fatalf("nothing is set aside: %s", c.Config)
	}
	d.await(d.clean, state.Head)
	if _, err := d.run("replace --by clean --wait 2m --kafka " + d.kafka.Brokers[0]); err != nil {
		t.Fatal(err)
	}
	d.write(10)
	d.want(d.await(d.old, state.Served), "bad")
}

var errKilled = errors.New("killed")

// A replacement that is killed before any of its writes leaves whole models. Run again, it finishes.
func TestReplaceIsKilled(t *testing.T) {
	d := newDouble(t)
	d.write(60)
	d.start("default", d.old, modelConfig())
	d.start("clean", d.clean, modelConfig("bad"))
	d.await(d.old, state.Head)
	d.await(d.clean, state.Head)
	r := replacement{old: d.old, by: d.clean, oldName: "default", name: "clean", patience: 2 * time.Minute,
		kafka: func() (kafka.Config, error) { return d.kafka, nil }}
	for _, at := range []string{"mark", "take", "save", "unpin"} {
		r.step = func(step string) error {
			if step == at {
				return errKilled
			}
			return nil
		}
		if _, err := r.run(t.Context()); !errors.Is(err, errKilled) {
			t.Fatalf("killed at %s: %v", at, err)
		}
		c, _, err := d.old.Load(t.Context(), state.Served)
		if err != nil || at != "unpin" && bytes.Contains(c.Config, []byte("without_sources")) {
			t.Fatalf("killed at %s, served is %s, %v", at, c.Config, err)
		}
		d.write(7)
	}
	r.step = nil
	if _, err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.write(10)
	d.want(d.await(d.old, state.Served), "bad")
	if h, err := d.old.Heading(t.Context(), state.Served); err != nil || h.Pinned != 0 {
		t.Errorf("version %d is pinned, %v", h.Pinned, err)
	}
}

// Models that differ in more than their sources, or have learnt another log, are refused
// before anything is written.
func TestReplaceRefuses(t *testing.T) {
	d := newDouble(t)
	d.write(30)
	d.start("default", d.old, modelConfig())
	cfg := modelConfig("bad")
	cfg.TableBits = 9
	d.start("clean", d.clean, cfg)
	before := d.await(d.old, state.Head)
	d.await(d.clean, state.Head)
	replace := "replace --by clean --wait 1s --kafka " + d.kafka.Brokers[0]
	if _, err := d.run(replace); err == nil || !strings.Contains(err.Error(), "table_bits: 8 here, 9 in the model") {
		t.Errorf("other tables: %v", err)
	}
	for _, stop := range []string{"default", "clean"} {
		d.stop[stop]()
	}
	other := *before
	other.Config = modelConfig("bad").JSON()
	for want, position := range map[string]state.Position{
		"has learnt another log than default": state.Position{Next: 29}.Advance(29, nil, []byte("x")),
		"has not learnt as far as default":    {Next: 3},
	} {
		store, err := redis.New(redis.Config{Addr: d.redis, Model: "clean" + fmt.Sprint(position.Next)})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		lease, err := store.Seize(t.Context(), "w")
		if err != nil {
			t.Fatal(err)
		}
		other.Epoch, other.Writer = lease.Epoch, lease.Writer
		other.Position = position
		if _, err := store.Save(t.Context(), &other); err != nil {
			t.Fatal(err)
		}
		if _, err := d.run(strings.Replace(replace, "clean", "clean"+fmt.Sprint(position.Next), 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	twin, err := redis.New(redis.Config{Addr: d.redis, Model: "twin"})
	if err != nil {
		t.Fatal(err)
	}
	defer twin.Close()
	for want, position := range map[string]state.Position{
		"":                                    before.Position,
		"has learnt another log than default": state.Position{Next: 29}.Advance(29, nil, []byte("x")),
	} {
		same := *before
		same.Position = position
		lease, err := twin.Seize(t.Context(), "w")
		if err != nil {
			t.Fatal(err)
		}
		same.Epoch, same.Writer = lease.Epoch, lease.Writer
		if _, err := twin.Save(t.Context(), &same); err != nil {
			t.Fatal(err)
		}
		out, err := d.run(strings.Replace(replace, "clean", "twin", 1))
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("an equal configuration: got %v, want %q", err, want)
		case want == "" && (err != nil || out != "both have the same configuration: nothing to replace\n"):
			t.Errorf("the same model: %v, %s", err, out)
		}
	}
	if c, _, err := d.old.Load(t.Context(), state.Head); err != nil || c.Epoch != before.Epoch {
		t.Errorf("the model was taken: epoch %d, %v", c.Epoch, err)
	}
	for args, want := range map[string]string{
		"replace --by default": "is not the name of another model", "replace --by A": "is not the name", "replace": "--by",
	} {
		if _, err := d.run(args); cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
