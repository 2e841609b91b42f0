package now

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// silent is a Kafka that does not answer.
func silent(ctx context.Context) (stream.Bounds, error) {
	<-ctx.Done()
	return stream.Bounds{}, ctx.Err()
}

// ended is the context of a look that does not wait.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A first snapshot says what has not answered yet. It says nowhere that something is not there.
func TestFirstLook(t *testing.T) {
	t.Parallel()
	conn := startNATS(t)
	alerts, err := nats.NewAlerts(conn, nats.AlertsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := alerts.Publish(patience(t), stream.Alert{Incident: 100, Transition: 1, Kind: stream.AlertConcept, State: stream.AlertRaised, Event: 101,
		Body: stream.AlertText, Reading: "something", Model: "default"}); err != nil {
		t.Fatal(err)
	}
	r := miniredis.RunT(t)
	store, err := redis.New(redis.Config{Addr: r.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	cfg := Config{Model: "default", NATS: conn, Alarms: openAt(conn), Store: store, Bounds: silent}
	check := func(s *Snapshot) {
		t.Helper()
		if s.Learnt.LagKnown || s.Learnt.LagAway != kafkaSilent {
			t.Errorf("the lag: %+v", s.Learnt)
		}
		if a := s.Alarms; len(a.Open) == 0 && (a.Away != natsSilent || !a.Unread) {
			t.Errorf("the alarms: %+v", a)
		}
	}
	for i := range 10 {
		f := New(cfg)
		s := f.Look(ended())
		if check(s); s.Learnt.Away != redisSilent || !s.Journal.Reading {
			t.Errorf("before it works: %+v", s)
		}
		f.pace.first = time.Duration(i) * time.Millisecond
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx) }()
		check(f.Look(patience(t)))
		if f.latest.Load() == nil {
			t.Error("a look did not wait for the first snapshot")
		}
		cancel()
		<-done
	}
}

// After a pause no snapshot of the period before is shown, and what it knew is not said to be new.
func TestLookAfterAPause(t *testing.T) {
	t.Parallel()
	conn := startNATS(t)
	r := miniredis.RunT(t)
	store, err := redis.New(redis.Config{Addr: r.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	f := New(Config{Model: "default", NATS: conn, Alarms: openAt(conn), Store: store, Bounds: func(context.Context) (stream.Bounds, error) {
		return stream.Bounds{End: 5}, nil
	}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	await(t, f, "answers", func(s *Snapshot) bool { return s.Learnt.LagKnown && s.Alarms.Away == "" && !s.Journal.Reading })
	cancel()
	<-done
	s := f.Look(ended())
	if s.Learnt.Away != redisSilent || s.Learnt.LagAway != kafkaSilent || s.Learnt.LagKnown || s.Alarms.Away != natsSilent || s.Alarms.Unread || !s.Journal.Reading {
		t.Errorf("after a pause: %+v", s)
	}
	if time.Since(s.At) > 20*time.Second {
		t.Errorf("the snapshot is of %v", s.At)
	}
}
