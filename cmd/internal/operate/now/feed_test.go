package now

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func patience(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func startNATS(t testing.TB) *natsgo.Conn {
	t.Helper()
	server, err := embedded.StartNATS(embedded.NATSOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	conn, err := nats.Connect(nats.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// follow runs a feed until the test ends.
func follow(t testing.TB, cfg Config) *Feed {
	t.Helper()
	f := New(cfg)
	f.pace = pace{linger: time.Minute, first: usual.first, poll: 20 * time.Millisecond, kafka: 20 * time.Millisecond, retry: 20 * time.Millisecond, missing: 20 * time.Millisecond}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f
}

// await looks until the snapshot is as wanted.
func await(t testing.TB, f *Feed, what string, wanted func(*Snapshot) bool) *Snapshot {
	t.Helper()
	ctx := patience(t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s := f.Look(ctx)
		if wanted(s) {
			return s
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: the last snapshot is %+v", what, s)
		}
	}
}

// openAt finds one open incident where alerts were written.
func openAt(conn *natsgo.Conn) func(context.Context) (Alarms, error) {
	return func(ctx context.Context) (Alarms, error) {
		end, _, err := nats.AlertsEnd(ctx, conn)
		return Alarms{Open: make([]Alarm, min(end, 1))}, err
	}
}

func id(n int) string { return fmt.Sprintf("%032x", n) }

func decision(n int, verdict stream.Decision, p float64, door string) stream.JournalEntry {
	return stream.JournalEntry{Time: time.Now().UTC(), ID: id(n), Verdict: verdict, P: p, Low: p, High: p, Model: "default/0123456789ab", Door: door, Tenant: "default", MS: 2}
}

func label(n int, label stream.Label) stream.JournalEntry {
	return stream.JournalEntry{Time: time.Now().UTC(), ID: id(n), Label: label, Source: "users", Model: "default"}
}

func appendTo(t testing.TB, conn *natsgo.Conn, name string, labels bool, lines ...stream.JournalEntry) {
	t.Helper()
	j, err := nats.NewJournal(conn, nats.JournalConfig{Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	// An attempt has two seconds. The server drops a second message of this id.
	ctx := patience(t)
	for err = j.Append(ctx, name, lines); err != nil && ctx.Err() == nil; err = j.Append(ctx, name, lines) {
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What is not there says so, and the snapshot comes all the same.
func TestNothingIsConfigured(t *testing.T) {
	t.Parallel()
	s := follow(t, Config{Model: "default"}).Look(patience(t))
	for _, away := range []string{s.Journal.Away, s.Labels.Away, s.Alarms.Away, s.Learnt.Away, s.Learnt.LagAway} {
		if !strings.HasSuffix(away, ".") {
			t.Errorf("no sentence: %q", away)
		}
	}
	if s.Journal.Reading {
		t.Error("a journal that is not there is being read")
	}
}

// The journal's past and present are counted by verdict and door; labels make figures;
// incidents that are open stand there.
func TestJournalAndAlarms(t *testing.T) {
	t.Parallel()
	conn := startNATS(t)
	var incidents atomic.Int64
	f := follow(t, Config{Model: "default", NATS: conn, Alarms: func(context.Context) (Alarms, error) {
		return Alarms{Open: make([]Alarm, incidents.Load())}, nil
	}})
	if s := f.Look(patience(t)); !s.Journal.None || s.Journal.Away != "" || s.Alarms.Away != "" || s.Labels.Labelled != 0 {
		t.Fatalf("without a journal: %+v", s)
	}
	old := decision(0, stream.DecideSpam, .99, "milter")
	old.Time = old.Time.Add(-25 * time.Hour)
	appendTo(t, conn, "1", false, old, decision(1, stream.DecideSpam, .99, "milter"), decision(2, stream.DecideHam, .1, "milter"),
		decision(3, stream.DecideUnsure, .6, "spamd"), decision(4, stream.DecideSpam, .95, "spamd"))
	s := await(t, f, "the past", func(s *Snapshot) bool { return s.Journal.Hour.Total() == 4 })
	if s.Journal.Hour != (Counts{Spam: 2, Ham: 1, Unsure: 1}) || s.Journal.LastMinute != 4 || s.Journal.OneOf != 1 || s.Journal.Estimated || len(s.Journal.Minutes) != 60 {
		t.Errorf("%+v", s.Journal)
	}
	if d := s.Journal.Doors; len(d) != 2 || d[0].Name != "milter" || d[0].Counts != (Counts{Spam: 1, Ham: 1}) || math.Abs(d[0].Half/2-1) > .1 || d[1].Unsure != 1 {
		t.Errorf("doors: %+v", d)
	}
	appendTo(t, conn, "2", true, label(1, stream.Ham), label(2, stream.Ham), label(3, stream.Spam), label(9, stream.Spam))
	s = await(t, f, "labels", func(s *Snapshot) bool { return s.Labels.Labelled == 3 })
	if s.Labels.Corrected != 1 || s.Labels.Unsure != 1 || math.Abs(float64(s.Labels.Error.Value)-1./3) > 1e-12 || !s.Labels.LogLoss.Low.Defined() {
		t.Errorf("%+v", s.Labels)
	}
	appendTo(t, conn, "3", true, label(1, stream.Spam)) // the label was wrong
	await(t, f, "a changed label", func(s *Snapshot) bool { return s.Labels.Labelled == 3 && s.Labels.Corrected == 0 })
	if all := f.Matches(); len(all) != 3 {
		t.Errorf("labelled answers are %+v", all)
	}
	incidents.Store(2)
	await(t, f, "two incidents", func(s *Snapshot) bool { return len(s.Alarms.Open) == 2 })
}

// Redis says which versions there are, Kafka how many records they lack. Each may go away
// and come back.
func TestModelsAndLag(t *testing.T) {
	t.Parallel()
	r := miniredis.RunT(t)
	store, err := redis.New(redis.Config{Addr: r.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	var away atomic.Bool
	f := follow(t, Config{Model: "default", Store: store, Bounds: func(context.Context) (stream.Bounds, error) {
		if away.Load() {
			return stream.Bounds{}, errors.New("no broker answers")
		}
		return stream.Bounds{First: 2, End: 12}, nil
	}})
	s := await(t, f, "before the first save", func(s *Snapshot) bool { return s.Learnt.LagKnown })
	if m := s.Learnt; m.Away != "" || m.Version != 0 || m.Lag != 10 {
		t.Errorf("before the first save: %+v", m)
	}
	lease, err := store.Seize(patience(t), "w")
	if err != nil {
		t.Fatal(err)
	}
	var position state.Position
	save := func(next int64) int64 {
		t.Helper()
		position = position.Advance(next, nil, fmt.Append(nil, next))
		v, err := store.Save(patience(t), &state.Checkpoint{Schema: 1, Numerics: "1", Config: []byte("{}"), Epoch: lease.Epoch, Events: uint64(next), Position: position,
			Model: []byte{byte(next)}, Saved: time.Now().UTC()})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	first := save(4)
	last := save(9)
	s = await(t, f, "two versions", func(s *Snapshot) bool { return s.Learnt.Events == 9 })
	if m := s.Learnt; m.Version != last || m.Served != last || m.Pinned || m.Lag != 2 {
		t.Errorf("%+v", m)
	}
	// A save of the same bytes further in the log takes the version's place, under its number.
	position = position.Advance(10, nil, []byte("a copy"))
	again, err := store.Save(patience(t), &state.Checkpoint{Schema: 1, Numerics: "1", Config: []byte("{}"), Epoch: lease.Epoch, Events: 9,
		Position: position, Model: []byte{9}, Saved: time.Now().UTC()})
	if err != nil || again != last {
		t.Fatalf("version %d, %v; want %d again", again, err, last)
	}
	await(t, f, "the same version, further", func(s *Snapshot) bool { return s.Learnt.Version == last && s.Learnt.Lag == 1 })
	if err := store.Pin(patience(t), first); err != nil {
		t.Fatal(err)
	}
	s = await(t, f, "a pin", func(s *Snapshot) bool { return s.Learnt.Pinned })
	if p := s.Learnt; p.Served != first || p.Version != last {
		t.Errorf("%+v", p)
	}
	away.Store(true)
	await(t, f, "no Kafka", func(s *Snapshot) bool {
		return strings.Contains(s.Learnt.LagAway, "no broker answers") && !s.Learnt.LagKnown
	})
	away.Store(false)
	r.SetError("LOADING it")
	await(t, f, "no Redis", func(s *Snapshot) bool { return s.Learnt.Away != "" && s.Learnt.Version == last })
	r.SetError("")
	await(t, f, "Redis is back", func(s *Snapshot) bool { return s.Learnt.Away == "" && s.Learnt.LagKnown })

	await(t, f, "nobody beats", func(s *Snapshot) bool { return s.Learnt.Idle })
	await(t, f, "a learner beats", func(s *Snapshot) bool {
		if lease, err = store.Beat(patience(t), lease); err != nil {
			t.Fatal(err)
		}
		return !s.Learnt.Idle
	})
	if _, err := store.Release(patience(t), lease); err != nil {
		t.Fatal(err)
	}
	await(t, f, "the lease is free", func(s *Snapshot) bool { return s.Learnt.Idle })
}
