package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/nats-io/nats-server/v2/server"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	operate "hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/advice"
	"hamlet/cmd/internal/service/scorer"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// A pins is a Redis with a model that is saved by hand.
type pins struct {
	t      *testing.T
	server *miniredis.Miniredis
	store  *redis.Store
	epoch  int64
	next   int64
	model  *model.Model
}

func newPins(t *testing.T) *pins {
	t.Helper()
	r := &pins{t: t, server: miniredis.RunT(t)}
	var err error
	if r.store, err = redis.New(redis.Config{Addr: r.server.Addr(), Keep: 5, Daily: new(0)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.store.Close() })
	if r.model, err = model.New(model.Config{TableBits: 8, DuplicateWindow: 10}); err != nil {
		t.Fatal(err)
	}
	return r
}

// save saves a version that has learnt one more message, after noon by the seconds given.
func (r *pins) save(seconds int) {
	r.t.Helper()
	if r.epoch == 0 {
		var err error
		lease, err := r.store.Seize(r.t.Context(), "w")
		if err != nil {
			r.t.Fatal(err)
		}
		r.epoch = lease.Epoch
	}
	ex := model.Example{ID: fmt.Sprint(r.model.Events()), Source: "test", Spam: true,
		Body: model.Body{Tenant: "test", Message: &feature.Message{Body: []byte("prize"), BodyBytes: 5}}}
	if _, err := r.model.Apply(&ex); err != nil {
		r.t.Fatal(err)
	}
	b, err := r.model.AppendBinary(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.next++
	c := &state.Checkpoint{Schema: 1, Numerics: r.model.Numerics(), Config: r.model.Config().JSON(), Epoch: r.epoch,
		Events: r.model.Events(), Position: state.Position{Next: r.next}, Model: b, Saved: noon.Add(time.Duration(seconds) * time.Second)}
	if _, err := r.store.Save(r.t.Context(), c); err != nil {
		r.t.Fatal(err)
	}
}

// run runs `hamlet model` with the arguments.
func (r *pins) run(args string) (string, error) {
	r.t.Helper()
	var g struct {
		Model operate.Command `cmd:""`
	}
	var out, errs bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}
	command, err := settings.Parse("hamlet", "", &g, append([]string{"model", "--redis", r.server.Addr()}, strings.Fields(args)...), stdio)
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(command.Command(), " ")
	err = g.Model.Run(r.t.Context(), cli.Subcommand(rest), cli.IO{Out: &out, Err: &errs})
	if errs.Len() > 0 {
		r.t.Errorf("%s: standard error %q", args, errs.String())
	}
	return out.String(), err
}

// must runs a command that succeeds and prints what is wanted.
func (r *pins) must(args string, want ...string) {
	r.t.Helper()
	out, err := r.run(args)
	if err != nil {
		r.t.Fatalf("%s: %v", args, err)
	}
	for _, text := range want {
		if !strings.Contains(out, text) {
			r.t.Errorf("%s: printed %q, want %q in it", args, out, text)
		}
	}
}

// fails runs a command that ends with a status and says what is wanted.
func (r *pins) fails(args string, status int, want string) {
	r.t.Helper()
	_, err := r.run(args)
	err = advice.Add(err) // as main does
	if cli.Status(err) != status || err == nil || !strings.Contains(err.Error(), want) {
		r.t.Errorf("%s: %v, status %d; want %q and %d", args, err, cli.Status(err), want, status)
	}
}

// served wants a version to be served and another, or none, to be pinned.
func (r *pins) served(version, pin int64) {
	r.t.Helper()
	h, err := r.store.Heading(r.t.Context(), state.Served)
	if err != nil || h.Version != version || h.Pinned != pin {
		r.t.Errorf("version %d is served and %d pinned, %v; want %d and %d", h.Version, h.Pinned, err, version, pin)
	}
}

// A scorer follows a pin and a rollback, and returns to the head after unpin. The learner
// goes on saving in the meantime.
func TestAScorerFollows(t *testing.T) {
	r := newPins(t)
	for i := range 3 {
		r.save(3 * i)
	}
	info := r.scorer()
	await := func(events uint64, pinned bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var got stream.Info
		for ctx.Err() == nil {
			var err error
			if got, err = info.Info(ctx); err == nil && got.Events == events && got.Pinned == pinned {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Millisecond):
			}
		}
		t.Fatalf("the scorer answers from %d events, pinned %v; want %d, %v", got.Events, got.Pinned, events, pinned)
	}
	await(3, false)
	r.must("pin 2", "answers come from version 2 of 2026-11-21T12:00:03Z, 2 events; before: version 3", "Pinned: learning goes on")
	await(2, true)
	r.save(9)
	r.must("rollback", "version 1 of", "before: version 2", "until `hamlet model unpin`")
	await(1, true)
	r.save(12)
	r.must("unpin", "version 5 of", "Nothing is pinned")
	await(5, false)
	r.must("rollback", "version 4 of")
	await(4, true)
}

// scorer runs a scorer of the pins's Redis and returns who asks it.
func (r *pins) scorer() *nats.Client {
	t := r.t
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the nats server doesn't listen")
	}
	conn, err := nats.Connect(nats.Config{URL: s.ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	questions, err := nats.NewService(conn, nats.ServiceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	answers := scorer.New(scorer.Config{Questions: questions, Store: r.store, PollInterval: time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- answers.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	client, err := nats.NewClient(conn, "")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// What is not kept is refused, and a rollback goes back by one version.
func TestPinAndRollBack(t *testing.T) {
	r := newPins(t)
	for _, seconds := range []int{0, 600, 1200} { // versions 1, 2 and 3
		r.save(seconds)
	}
	r.fails("pin 9", 1, "version 9 of model default is not kept: kept are 3, 2, 1")
	r.fails("pin 0", 2, "numbered from 1")
	r.served(3, 0)
	r.must("pin 2", "Pinned: learning")
	r.served(2, 2)
	r.must("rollback")
	r.served(1, 1)
	r.fails("rollback", 1, "no version before the served one, 1, is kept")
	r.must("unpin", "Nothing is pinned")
	r.served(3, 0)
}

// The alerting rule for bad labels names commands that list, pin and unpin.
func TestThePageTellsHowToPin(t *testing.T) {
	b, err := os.ReadFile("../../../../deploy/prometheus/hamlet.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	r := newPins(t)
	r.save(0)
	r.save(3)
	told := regexp.MustCompile(`"hamlet model ([^"]+)"`).FindAllStringSubmatch(string(b), -1)
	if len(told) != 3 {
		t.Fatalf("the rules name %q, want versions, pin and unpin", told)
	}
	r.must(told[0][1], "served")
	r.must(strings.Replace(told[1][1], " V", " 1", 1), "Pinned:")
	r.served(1, 1)
	r.must(told[2][1], "Nothing is pinned")
}

// What versions prints, and what it says of a lost pin.
func TestVersions(t *testing.T) {
	r := newPins(t)
	r.fails("versions", 1, "the store keeps no version of model default")
	r.fails("rollback", 1, "the store keeps no version")
	r.save(0)
	r.fails("rollback", 1, "no version before the served one, 1, is kept")
	r.save(3)
	r.must("pin 1")
	r.must("versions", "version  saved                 events  position  sha256",
		"2        2026-11-21T12:00:03Z  2       2         ", "  head\n", "  served, pinned\n", "Pinned:")
	out, err := r.run("versions --json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Partitions []struct {
			Head, Served, Pinned int64
			PinLost              bool `json:"pin_lost"`
			Versions             []struct {
				Version  int64
				Saved    time.Time
				Events   uint64
				Position int64
				SHA256   string
				Head     bool
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if p := got.Partitions[0]; p.Head != 2 || p.Served != 1 || p.Pinned != 1 || p.PinLost || len(p.Versions) != 2 ||
		!p.Versions[0].Head || len(p.Versions[0].SHA256) != 64 || !p.Versions[1].Saved.Equal(noon) || p.Versions[1].Events != 1 || p.Versions[1].Position != 1 {
		t.Errorf("--json: %s", out)
	}

	r.server.Del("hamlet:{default}:0:version:1")
	r.server.ZRem("hamlet:{default}:0:versions", "1")
	r.save(6)
	r.must("versions", "Version 1 was pinned, and the store has lost it", "head, served\n")
	r.must("versions --json", `"pinned":1,"pin_lost":true`)
	r.must("unpin", "Nothing is pinned")
	r.served(3, 0)
	r.fails("", 2, "say what to do")
	r.fails("pin", 2, "version")
}
