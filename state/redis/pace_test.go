package redis

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"hamlet/state"
)

// Limits follow the speed, are never below the least, and double after a transfer that
// met its limit.
func TestLimitsFollowTheSpeed(t *testing.T) {
	const mib = 1 << 20
	p := pace{least: 10 * time.Second}
	for _, step := range []struct {
		n        int
		took     time.Duration
		timedOut bool
		limit    time.Duration // of 28 MiB
		window   int
	}{
		{0, 0, false, 10 * time.Second, 1},                 // not measured
		{100, time.Hour, false, 10 * time.Second, 1},       // too small to say anything
		{mib, time.Second / 2, false, 56 * time.Second, 2}, // 2 MiB/s: 14 s, four times
		{mib, 10 * time.Second, true, 20 * 28 * time.Second, 1},
		{mib, 20 * time.Second, true, 40 * 28 * time.Second, 1},
		{mib, 5 * time.Second, true, 40 * 28 * time.Second, 1}, // a dial met its own limit: nothing is known to be faster
	} {
		if step.n > 0 {
			p.note(step.n, step.took, step.timedOut)
		}
		if got := p.limit(28 * mib); (got-step.limit).Abs() > time.Millisecond || p.window() != step.window {
			t.Errorf("after %d bytes in %v, timed out %v: limit %v, window %d; want %v and %d",
				step.n, step.took, step.timedOut, got, p.window(), step.limit, step.window)
		}
	}
	if fast := (pace{least: time.Second, speed: 1e18}); fast.window() != pipelined || fast.limit(mib) != time.Second {
		t.Errorf("at full speed: window %d, limit %v", fast.window(), fast.limit(mib))
	}
}

// However slow Redis is, some attempt at a save is given enough time, and so is a load.
// Here a chunk takes half a second, and the first limit is 40 ms.
func TestNoSpeedIsTooSlow(t *testing.T) {
	m := miniredis.RunT(t)
	srv := connect(t, m.Addr(), m.FastForward)
	slow := server{addr: slowly(t, m.Addr(), 2*state.ChunkSize), model: srv.model}.open(t, nil)
	slow.writing.least, slow.reading.least = 40*time.Millisecond, 40*time.Millisecond
	c := checkpoint(take(t, slow), 1, "a")
	failed := 0
	for {
		_, err := slow.Save(t.Context(), c)
		if err == nil {
			break
		}
		if failed++; !errors.Is(err, state.ErrTransient) || failed > 20 {
			t.Fatalf("attempt %d: %v", failed, err)
		}
	}
	for tries := 1; ; tries++ {
		_, _, err := slow.Load(t.Context(), state.Head)
		if err == nil {
			break
		}
		if !errors.Is(err, state.ErrTransient) || tries > 20 {
			t.Fatalf("load, attempt %d: %v", tries, err)
		}
	}
	if failed == 0 {
		t.Error("the first limit was long enough: the test misses its point")
	}
	checkInvariants(t, srv)
}

// slowly is a proxy to addr that passes a number of bytes a second in each direction.
func slowly(t *testing.T, addr string, rate int) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var relays sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		relays.Wait()
	})
	forward := func(to, from net.Conn) {
		defer to.Close()
		b := make([]byte, 16<<10)
		for {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			time.Sleep(time.Duration(float64(n) / float64(rate) * float64(time.Second)))
			if _, err := io.Writer(to).Write(b[:n]); err != nil {
				return
			}
		}
	}
	relays.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", addr)
			if err != nil {
				client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, upstream)
			mu.Unlock()
			relays.Go(func() { forward(upstream, client) })
			relays.Go(func() { forward(client, upstream) })
		}
	})
	return l.Addr().String()
}
