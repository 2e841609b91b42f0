package learner

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hamlet/state"
	"hamlet/state/redis"
)

// A link is a TCP proxy that limits how fast bytes go to the server.
type link struct {
	addr string
	rate atomic.Int64 // bytes a second to the server; 0: no limit; below 0: none go through
}

func newLink(t *testing.T, server string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{addr: listener.Addr().String()}
	var relays sync.WaitGroup
	ended := make(chan struct{})
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		close(ended)
		listener.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		relays.Wait()
	})
	relays.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, upstream)
			mu.Unlock()
			relays.Go(func() { io.Copy(client, upstream); client.Close() })
			relays.Go(func() { l.forward(upstream, client, ended); upstream.Close() })
		}
	})
	return l
}

// forward copies pieces, each of which takes its share of a second.
func (l *link) forward(to, from net.Conn, ended <-chan struct{}) {
	b := make([]byte, 8<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		for rate := l.rate.Load(); rate != 0; rate = l.rate.Load() {
			pause := 5 * time.Millisecond
			if rate > 0 {
				pause = time.Duration(float64(n) / float64(rate) * float64(time.Second))
			}
			select {
			case <-time.After(pause):
			case <-ended:
				return
			}
			if rate > 0 {
				break
			}
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// through returns a store behind a link to the rig's Redis.
func (r *rig) through() (*redis.Store, *link) {
	r.t.Helper()
	l := newLink(r.t, r.options.Addr)
	s, err := redis.New(redis.Config{Addr: l.addr, Model: "default"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = s.Close() })
	return s, l
}

// While a save stands still, learning goes on. What is saved lags, and that shows. When
// Redis answers again, everything is saved.
func TestLearningGoesOnWhileASaveStandsStill(t *testing.T) {
	r := newRig(t)
	records, m := texts(t, 120)
	store, line := r.through()
	cfg := r.config()
	cfg.Store, cfg.SaveEvery = store, 1
	p := opened(t, cfg)
	if err := handle(t, p, records[:20], 0); err != nil {
		t.Fatal(err)
	}
	settled(t, p)

	line.rate.Store(-1)
	learnt := make(chan error, 1)
	go func() {
		for from := 20; from < 120; from += 20 {
			if err := handle(t, p, records[from:from+20], int64(from)); err != nil {
				learnt <- err
				return
			}
		}
		learnt <- nil
	}()
	select {
	case err := <-learnt:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("learning waits for a save: it has come to %d", p.l.Status().Next)
	}
	if s := p.l.Status(); s.Next != 120 || s.SavedEnd != 20 {
		t.Errorf("learnt up to %d, saved up to %d; want 120 and 20", s.Next, s.SavedEnd)
	}
	if p.unsavedSince.IsZero() {
		t.Error("nothing shows that what is saved lags")
	}

	line.rate.Store(0)
	settled(t, p)
	if c := r.head(); c.Position.Next != 120 || c.ModelSHA256 != sum(t, m) {
		t.Errorf("the head is at %d, or another model", c.Position.Next)
	}
	if !p.unsavedSince.IsZero() {
		t.Errorf("all is saved, and records are shown as not saved since %v", p.unsavedSince)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The copy that is saved has the model and the position of one moment, whatever is
// learnt while it is written.
func TestASaveIsOfOneMoment(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 60)
	_, first := texts(t, 20)
	store, line := r.through()
	cfg := r.config()
	cfg.Store, cfg.SaveEvery = store, 1
	p := opened(t, cfg)
	line.rate.Store(-1)
	for from := 0; from < 60; from += 20 {
		if err := handle(t, p, records[from:from+20], int64(from)); err != nil {
			t.Fatal(err)
		}
	}
	line.rate.Store(0)
	awaitRunning(t, p)
	if c := r.head(); c.Position.Next != 20 || c.Events != 20 || c.ModelSHA256 != sum(t, first) {
		t.Errorf("saved at %d with %d events, want the model of the first 20", c.Position.Next, c.Events)
	}
	settled(t, p)
	if c := r.head(); c.Position.Next != 60 {
		t.Errorf("then saved at %d, want 60", c.Position.Next)
	}
}

// A learner that stops saves everything, though that takes longer than Drain.
func TestAStopSavesOverASlowLink(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	records, m := texts(t, 100)
	r.produce(records...)
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	store, line := r.through()
	cfg := r.config()
	cfg.Store, cfg.SaveEvery = store, time.Hour
	cfg.Follow.Drain = 50 * time.Millisecond
	line.rate.Store(int64(len(b))) // a second for all
	r.learn(cfg, 100)
	if c := r.head(); c.Position.Next != 100 || c.ModelSHA256 != sum(t, m) {
		t.Errorf("the head is at %d, or another model", c.Position.Next)
	}
}

// A learner that ends because its log failed for good does not wait for a slow save.
func TestAFailedLogDoesNotWaitForASlowSave(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	records, _ := texts(t, 20)
	store, line := r.through()
	cfg := r.config()
	cfg.Store, cfg.SaveEvery = store, 1
	p := opened(t, cfg)
	line.rate.Store(-1)
	if err := handle(t, p, records, 0); err != nil {
		t.Fatal(err)
	}
	running := p.running
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the time to drain", err)
	}
	line.rate.Store(0)
	<-running.done
}

// A save that is still running when another learner has taken the lease changes nothing.
func TestARunningSaveOfALostLeaseIsHarmless(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 20)
	store, line := r.through()
	cfg := r.config()
	cfg.Store, cfg.SaveEvery = store, 1
	p := opened(t, cfg)
	line.rate.Store(-1)
	if err := handle(t, p, records, 0); err != nil {
		t.Fatal(err)
	}
	taken, err := r.store.Seize(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	theirs := &state.Checkpoint{Schema: 1, Numerics: "1/test", Epoch: taken.Epoch, Writer: taken.Writer, Position: state.Position{Next: 5}, Model: []byte("theirs"), Saved: time.Now().UTC()}
	version, err := r.store.Save(t.Context(), theirs)
	if err != nil {
		t.Fatal(err)
	}
	line.rate.Store(0)
	awaitRunning(t, p)
	if err := p.Idle(t.Context()); err != nil || p.phase != standby {
		t.Errorf("the learner that lost the lease is %v, %v; want a standby", p.phase, err)
	}
	c, got, err := r.store.Load(t.Context(), state.Head)
	if err != nil || got != version || c.Position.Next != 5 {
		t.Errorf("the head is version %d at %d, %v; want the other learner's %d at 5", got, c.Position.Next, err, version)
	}
}
