package alert

import (
	"context"
	"errors"
	"sync"

	"hamlet/stream"
)

// A Channel is one way for alerts to leave the process.
type Channel struct {
	// Publish returns when the channel has acknowledged the alerts. It tries again
	// until ctx ends, unless stream.ErrAlerts says that this is of no use. Package
	// alerttest has its laws.
	Publish func(ctx context.Context, alerts ...stream.Alert) error
	Close   func() // nil: there is nothing to close
	Hint    string // the command that shows the channel's alerts; "" if there is none
}

// Channels publish each alert to all of their channels.
type Channels []Channel

// Publish gives the alerts to all channels at once. It returns nil when every channel
// has acknowledged every alert. After an error all alerts may be given again: a channel
// drops those that it has. The learner gives one alert at a time, so the alerts behind
// it wait until the slowest channel has it.
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
		if c[i].Close != nil {
			c[i].Close()
		}
	}
}
