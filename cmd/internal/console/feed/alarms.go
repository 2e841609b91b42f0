package feed

import (
	"context"
	"slices"
	"sync"

	incidents "hamlet/cmd/internal/alarms"
	"hamlet/cmd/internal/alert"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// alarms reads the alerts again when the stream has grown.
type alarms struct {
	cfg  *Config
	end  uint64 // the stream's last sequence when it was read; only ask uses it
	read bool

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

// ask reads the open incidents, if something was written.
func (a *alarms) ask(ctx context.Context) {
	end, err := nats.AlertsEnd(ctx, a.cfg.NATS)
	var now Alarms
	switch {
	case err == nil && a.read && end == a.end:
		a.mu.Lock()
		a.now.Away = ""
		a.mu.Unlock()
		return
	case err == nil:
		now, err = a.open(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.now, a.end, a.read = now, end, true
		return
	}
	a.now.Away = sentence(err)
	if !a.cfg.NATS.IsConnected() {
		a.now.Away = natsAway
	}
}

// open returns the open incidents, the newest first.
func (a *alarms) open(ctx context.Context) (now Alarms, err error) {
	all, damaged, err := incidents.Read(ctx, a.cfg.NATS, a.cfg.Model)
	now.Damaged = damaged
	for _, i := range all {
		if !i.Open() {
			continue
		}
		last := i.Last()
		o := Alarm{ID: i.ID(), Kind: last.Kind, Since: i.First().Time, Sentence: alert.Sentence(last)}
		if o.Kind == stream.AlertUnknown {
			o.Kind = ""
		}
		now.Open = append(now.Open, o)
	}
	slices.Reverse(now.Open)
	return now, err
}
