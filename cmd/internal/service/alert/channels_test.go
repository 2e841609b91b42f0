package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"hamlet/stream"
	"hamlet/stream/alerttest"
)

// memory is a channel that keeps the alerts of one process.
type memory struct {
	mu     sync.Mutex
	alerts []stream.Alert
	closed bool
}

func (m *memory) publish(ctx context.Context, alerts ...stream.Alert) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, a := range alerts {
		a.Time = alerttest.Now()
		if _, err := a.AppendJSON(nil); err != nil || a.Model == "" || a.Incident == 0 {
			return fmt.Errorf("%w: %w", stream.ErrAlerts, err)
		}
		if !slices.ContainsFunc(m.alerts, func(b stream.Alert) bool { return a.MessageID() == b.MessageID() }) {
			m.alerts = append(m.alerts, a)
		}
	}
	return nil
}

func (m *memory) channel() Channel {
	return Channel{Publish: m.publish, Close: func() { m.closed = true }}
}

// Several channels together obey the laws of one.
func TestChannelsLaws(t *testing.T) {
	alerttest.Run(t, func(t *testing.T) alerttest.Subject {
		var a, b memory
		return alerttest.Subject{Notices: Channels{a.channel(), b.channel()}, Published: func() []stream.Alert { return b.alerts }}
	})
}

// A channel that fails holds up no other, and its error is the whole's.
func TestChannelsReportEveryError(t *testing.T) {
	var m memory
	down := errors.New("down")
	all := Channels{
		{Publish: func(context.Context, ...stream.Alert) error { return down }, Close: func() {}},
		{Publish: func(context.Context, ...stream.Alert) error { return stream.ErrAlerts }, Close: func() {}},
		m.channel(),
	}
	a := noise()
	a.Model = "default"
	if err := all.Publish(t.Context(), a); !errors.Is(err, down) || !errors.Is(err, stream.ErrAlerts) {
		t.Errorf("error %v, want those of both channels", err)
	}
	if len(m.alerts) != 1 {
		t.Errorf("the third channel has %d alerts, want 1", len(m.alerts))
	}
	if all.Close(); !m.closed {
		t.Error("a channel was not closed")
	}
}
