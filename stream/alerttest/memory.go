package alerttest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"hamlet/stream"
)

// A Memory is a [stream.AlertPublisher] that keeps alerts in memory. It knows copies for ever. The
// zero value is ready, and it may be used concurrently.
type Memory struct {
	mu     sync.Mutex
	alerts []stream.Alert // in the order of publication
	known  map[string]bool
}

// Publish keeps alerts that are no copies.
func (m *Memory) Publish(ctx context.Context, alerts ...stream.Alert) error {
	for _, a := range alerts {
		if err := m.publish(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

func (m *Memory) publish(ctx context.Context, a stream.Alert) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.Time = Now()
	if err := stream.CheckModelName(a.Model); err != nil {
		return fmt.Errorf("%w: %w", stream.ErrAlerts, err)
	}
	if a.Incident == 0 {
		return fmt.Errorf("%w: no incident", stream.ErrAlerts)
	}
	if _, err := a.AppendJSON(nil); err != nil {
		return fmt.Errorf("%w: %w", stream.ErrAlerts, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[string]bool{}
	}
	if id := a.MessageID(); !m.known[id] {
		m.known[id] = true
		m.alerts = append(m.alerts, a)
	}
	return nil
}

// Published returns the alerts of a model in the order of their publication.
func (m *Memory) Published(model string) []stream.Alert {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.alerts), func(a stream.Alert) bool { return a.Model != model })
}
