package withdraw

import (
	"context"
	"regexp"
	"strconv"
	"sync"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/follow"
)

// A Bound is an event, or a time. The zero Bound is no bound.
type Bound struct {
	event uint64 // the model's event count, from 1; 0: at counts
	at    time.Time
}

func (b Bound) given() bool { return b.event != 0 || !b.at.IsZero() }

var (
	plainEvent = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:(\d+):)?(\d+)$`) // a partition, as in hamlet 0.1.0; event
	})
	ofIncident = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([a-z0-9-]+)\.(\d+)\.(\d+)$`) // model, partition, event
	})
)

// ParseBound reads the value of a flag or field: an event such as 5210, the id of an incident of
// the model, a duration before now, or a time.
func ParseBound(name, text, model string, now time.Time) (Bound, error) {
	if m := ofIncident().FindStringSubmatch(text); m != nil {
		if m[1] != model {
			return Bound{}, cli.Usagef("%s: %s is an incident of model %s, not of %s", name, text, m[1], model)
		}
		return eventBound(name, text, m[2], m[3])
	}
	if m := plainEvent().FindStringSubmatch(text); m != nil {
		return eventBound(name, text, m[1], m[2])
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return Bound{at: now.Add(-d)}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return Bound{at: t}, nil
		}
	}
	return Bound{}, cli.Usagef("%s: %q is neither an event such as 5210, nor an incident such as %s.0.5210, "+
		"nor a duration such as 24h, nor a time such as 2026-11-20T10:00:00Z", name, text, model)
}

// eventBound reads an event. Partition is "" or 0.
func eventBound(name, text, partition, event string) (b Bound, err error) {
	if partition != "" && partition != "0" {
		return b, cli.Usagef("%s: %q is an event of partition %s, and the log of a model has one partition, 0: give a time",
			name, text, partition)
	}
	if b.event, err = strconv.ParseUint(event, 10, 63); err != nil || b.event == 0 {
		return b, cli.Usagef("%s: %q: a model's events are numbered from 1", name, text)
	}
	return b, nil
}

// offset returns where b lies in the log: at its event, or at the first record that was written
// at its time or later.
func (b Bound) offset(ctx context.Context, l *savedModel) (int64, error) {
	if b.event == 0 {
		return follow.Since(ctx, l.follow, b.at)
	}
	return l.offsetOf(ctx, b.event)
}
