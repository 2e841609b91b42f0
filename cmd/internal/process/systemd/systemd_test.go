package systemd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// patience bounds every wait: these machines may be slow.
const patience = 30 * time.Second

// manager is systemd's end of the socket.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
}

func listen(t *testing.T) *manager {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return &manager{t, conn}
}

// next returns the lines of the next notification.
func (m *manager) next() []string {
	m.t.Helper()
	_ = m.conn.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, 4096)
	size, err := m.conn.Read(b)
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.Split(string(b[:size]), "\n")
}

// await reads until a notification has the line, and returns the lines before it.
func (m *manager) await(line string) (before []string) {
	m.t.Helper()
	for {
		lines := m.next()
		if slices.Contains(lines, line) {
			return before
		}
		before = append(before, lines...)
	}
}

// quiet fails the test if a notification waits.
func (m *manager) quiet() {
	m.t.Helper()
	_ = m.conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	b := make([]byte, 4096)
	if size, err := m.conn.Read(b); err == nil {
		m.t.Errorf("unexpected notification: %q", b[:size])
	}
}

var discard = slog.New(slog.DiscardHandler)

// systemd hears that the service serves, also without a model, what it waits for, and that
// it stops.
func TestNotifications(t *testing.T) {
	m := listen(t)
	var broken atomic.Pointer[error]
	say := func(text string) { err := errors.New(text); broken.Store(&err) }
	say("no model yet:\nthe learner has saved none")
	ready := func() error {
		if err := broken.Load(); err != nil {
			return *err
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	stop := Notify(ctx, ready, discard)
	if lines := m.next(); !slices.Equal(lines, []string{"READY=1", "STATUS=starting"}) {
		t.Errorf("serving without a model is %q", lines)
	}
	if before := m.await("STATUS=not ready: no model yet: the learner has saved none"); len(before) > 0 {
		t.Errorf("before the first status came %q", before)
	}
	broken.Store(nil)
	if lines := m.next(); !slices.Equal(lines, []string{"STATUS=ready"}) {
		t.Errorf("ready is %q", lines)
	}
	cancel()
	if lines := m.next(); !slices.Equal(lines, []string{"STOPPING=1", "STATUS=stopping"}) {
		t.Errorf("stopping is %q", lines)
	}
	stop()
	m.quiet()
}

// The watchdog is fed from the start, also while a server is away, and READY is said once.
func TestWatchdog(t *testing.T) {
	m := listen(t)
	t.Setenv("WATCHDOG_USEC", "3000") // fed each millisecond
	var calls atomic.Int32
	defer Notify(t.Context(), func() error {
		if calls.Add(1) > 2 {
			return errors.New("redis is away")
		}
		return nil
	}, discard)()
	m.await("READY=1")
	ready := 0
	for range 5 {
		for _, line := range m.await("WATCHDOG=1") {
			if line == "READY=1" {
				ready++
			}
		}
	}
	if ready > 0 || calls.Load() < 5 {
		t.Errorf("READY came %d times more, ready was asked %d times", ready, calls.Load())
	}
}

// Before it serves, a service says what it waits for, and is not ready.
func TestStatus(t *testing.T) {
	m := listen(t)
	Status("waiting for Redis", discard)
	if lines := m.next(); !slices.Equal(lines, []string{"STATUS=waiting for Redis"}) {
		t.Errorf("waiting is %q", lines)
	}
}

// Who hangs is not fed for, and the end is told nevertheless.
func TestHangingServiceStarves(t *testing.T) {
	m := listen(t)
	t.Setenv("WATCHDOG_USEC", "3000")
	ctx, cancel := context.WithCancel(t.Context())
	hangs, release := make(chan struct{}), make(chan struct{})
	stop := Notify(ctx, func() error { close(hangs); <-release; return nil }, discard)
	<-hangs
	m.await("STATUS=starting")
	m.quiet()
	cancel()
	if lines := m.next(); !slices.Contains(lines, "STOPPING=1") {
		t.Errorf("behind the hanging came %q", lines)
	}
	close(release)
	stop()
	m.quiet()
}

// A service without a condition is ready at once.
func TestReadyAtOnce(t *testing.T) {
	m := listen(t)
	stop := Notify(t.Context(), nil, discard)
	m.await("READY=1")
	m.await("STATUS=ready")
	stop()
	m.await("STOPPING=1")
}

// Without systemd nothing is asked and nothing runs; and a socket that is not there hinders
// nobody.
func TestWithoutSystemd(t *testing.T) {
	for _, socket := range []string{"", filepath.Join(t.TempDir(), "missing")} {
		t.Setenv("NOTIFY_SOCKET", socket)
		var asked atomic.Bool
		Notify(t.Context(), func() error { asked.Store(true); return nil }, discard)()
		if socket == "" && asked.Load() {
			t.Error("ready was asked without systemd")
		}
	}
}
