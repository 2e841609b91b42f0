package kafka

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// wires holds the connections that a kafka-go reader or group opens, so that
// they can be cut: both otherwise sit out a long poll, a join or a dead broker's
// timeout before they close.
type wires struct {
	hold   time.Duration // how long to keep trying to connect
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc

	holding context.Context // ends before ctx: connect at once or not at all
	release context.CancelFunc

	mu   sync.Mutex
	open map[*wire]struct{}
}

func newWires(hold time.Duration, log *slog.Logger) *wires {
	w := &wires{hold: hold, log: log, open: make(map[*wire]struct{})}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.holding, w.release = context.WithCancel(w.ctx)
	return w
}

// cut closes every connection; further ones are refused.
func (w *wires) cut() {
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		c.Conn.Close()
	}
	clear(w.open)
}

// stopHolding makes connections that cannot be had at once fail from now on.
func (w *wires) stopHolding() { w.release() }

var errCut = errors.New("connections are cut")

// dial connects. With hold set it does not take no for an answer so long: a
// consumer group gives up its membership at the first connection that fails, and
// then waits a whole session timeout for its own ghost to leave the group, so
// outlasting a broker's restart here saves that time.
func (w *wires) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	d := net.Dialer{Timeout: connectTimeout}
	pause := newPause()
	var lines gate
	for start := time.Now(); ; {
		conn, err := d.DialContext(ctx, network, address)
		switch {
		case err == nil:
			return w.keep(conn)
		case w.ctx.Err() != nil:
			return nil, errCut
		case ctx.Err() != nil || w.holding.Err() != nil || time.Since(start) >= w.hold:
			return nil, err
		}
		if n, ok := lines.open(); ok {
			w.log.Warn("kafka: connecting again", "broker", address, "error", err, "times", n)
		}
		wait(w.holding, pause)
	}
}

func (w *wires) keep(conn net.Conn) (net.Conn, error) {
	c := &wire{Conn: conn, of: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		conn.Close()
		return nil, errCut
	}
	w.open[c] = struct{}{}
	return c, nil
}

// A wire is a connection that its wires know of.
type wire struct {
	net.Conn
	of *wires
}

func (c *wire) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// dialer returns a dialer whose connections w holds.
func (cfg *Config) dialer(w *wires) *kafkago.Dialer {
	return &kafkago.Dialer{
		ClientID:      cfg.ClientID,
		Timeout:       w.hold + requestTimeout,
		TLS:           cfg.TLS,
		SASLMechanism: cfg.SASL,
		DialFunc:      w.dial,
	}
}
