package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

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
	at := map[string]int{} // in now.Open
	for al, err := range nats.ReadAlerts(ctx, a.cfg.NATS, a.cfg.Model, time.Time{}) {
		switch {
		case errors.As(err, new(*nats.AlertError)):
			now.Damaged++
			continue
		case err != nil:
			return now, err
		}
		id := cmp.Or(al.IncidentID(), fmt.Sprintf("%d %s %s", al.Partition, al.Kind, al.Body)) // of a program without incidents
		i, known := at[id]
		if !known {
			i = len(now.Open)
			at[id], now.Open = i, append(now.Open, Alarm{ID: al.IncidentID(), Partition: al.Partition, Since: al.Time})
		}
		o := &now.Open[i]
		o.Kind, o.Sentence = "", alert.Sentence(&al)
		if al.Kind != stream.AlertUnknown {
			o.Kind = al.Kind
		}
		o.open = al.State == stream.AlertSuspected || al.State == stream.AlertRaised
	}
	now.Open = slices.DeleteFunc(now.Open, func(o Alarm) bool { return !o.open })
	slices.Reverse(now.Open)
	return now, nil
}
