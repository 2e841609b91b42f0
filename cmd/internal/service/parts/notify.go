package parts

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"hamlet/cmd/internal/process/systemd"
)

// startsWithin is how long a boot waits for a process that waits for a server.
const startsWithin = 5 * time.Second

// A notice tells systemd how the process stands, before it serves and then. A wait for Kafka
// may have no end. A long one counts as started, or the machine's boot would wait as well.
type notice struct {
	patience time.Duration // of a boot
	log      *slog.Logger

	mu    sync.Mutex
	doing string       // while ready is nil
	ready func() error // of what serves
	stop  func()       // not nil once systemd knows that the process is started
}

// WaitFor tells systemd what the process waits for, until done is called.
func (n *notice) WaitFor(ctx context.Context, server string) (done func()) {
	n.set("waiting for " + server)
	timer := time.AfterFunc(n.patience, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.doing != "starting" && n.ready == nil {
			n.begin(ctx)
		}
	})
	return func() {
		timer.Stop()
		n.set("starting")
	}
}

func (n *notice) set(doing string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.doing = doing
	if n.stop == nil {
		systemd.Status(doing, n.log)
	}
}

// begin has systemd hear of the process until ctx ends or stop is called. It needs mu.
func (n *notice) begin(ctx context.Context) {
	if n.stop == nil {
		n.stop = systemd.Notify(ctx, n.condition, n.log)
	}
}

// condition is that of /readyz, once there is one.
func (n *notice) condition() error {
	n.mu.Lock()
	ready, doing := n.ready, n.doing
	n.mu.Unlock()
	if ready == nil {
		return errors.New(doing)
	}
	return ready()
}

// close tells systemd that the process stops.
func (n *notice) close() {
	n.mu.Lock()
	stop := n.stop
	n.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// Notify tells systemd that the process serves, and how it stands: see package systemd. It
// takes the place of what was told until now. A nil ready is ready.
func (n *notice) Notify(ctx context.Context, ready func() error) (stop func()) {
	if ready == nil {
		ready = func() error { return nil }
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ready = ready
	n.begin(ctx)
	return n.stop
}
