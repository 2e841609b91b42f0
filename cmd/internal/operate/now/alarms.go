package now

import (
	"context"
	"sync"

	"hamlet/cmd/internal/web/page"
)

// alarms are the open incidents, as they were read last.
type alarms struct {
	cfg *Config

	mu  sync.Mutex
	now Alarms
}

func (a *alarms) get() Alarms {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

// rest says that there is no answer yet. The alarms that were open stay, as last read.
func (a *alarms) rest() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now.Away = natsSilent
}

func (a *alarms) ask(ctx context.Context) {
	now, err := a.cfg.Alarms(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.now = now
	case !a.cfg.NATS.IsConnected():
		a.now.Away = natsAway
	default:
		a.now.Away = page.Sentence(err)
	}
}
