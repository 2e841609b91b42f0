package kafka

import (
	"context"
	"errors"
	"net"
	"sync"

	kafkago "github.com/segmentio/kafka-go"
)

// wires holds the connections that a kafka-go reader or group opens, so that
// they can be cut: both otherwise sit out a long poll, a join or a dead broker's
// timeout before they close.
type wires struct {
	ctx    context.Context // ends when they are cut
	cancel context.CancelFunc

	mu   sync.Mutex
	open map[*wire]struct{}
}

func newWires() *wires {
	w := &wires{open: make(map[*wire]struct{})}
	w.ctx, w.cancel = context.WithCancel(context.Background())
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

var errCut = errors.New("connections are cut")

func (w *wires) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	conn, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, network, address)
	switch {
	case w.ctx.Err() != nil:
		if err == nil {
			conn.Close()
		}
		return nil, errCut
	case err != nil:
		return nil, err
	}
	return w.keep(conn)
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
		Timeout:       requestTimeout,
		TLS:           cfg.TLS,
		SASLMechanism: cfg.SASL,
		DialFunc:      w.dial,
	}
}
