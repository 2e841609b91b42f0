package alert

import (
	"context"
	"errors"
	"sync"

	"hamlet/stream"
)

// A Channel is one way for alerts to leave the process.
type Channel struct {
	// Publish returns when the channel has acknowledged the alerts. Package
	// alerttest has its laws.
	Publish func(ctx context.Context, alerts ...stream.Alert) error
	Close   func()
	Hint    string // the command that shows the channel's alerts; may be empty
}

// Channels publish each alert to all of their channels.
type Channels []Channel

// Publish returns nil when every channel has acknowledged every alert. After an
// error all alerts may be given again: a channel drops those that it has.
func (c Channels) Publish(ctx context.Context, alerts ...stream.Alert) error {
	errs := make([]error, len(c))
	var wg sync.WaitGroup
	for i := range c {
		wg.Go(func() { errs[i] = c[i].Publish(ctx, alerts...) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Close closes all channels.
func (c Channels) Close() {
	for i := range c {
		c[i].Close()
	}
}
