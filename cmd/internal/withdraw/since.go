package withdraw

import (
	"context"
	"regexp"
	"strconv"
	"time"

	"hamlet/cmd/internal/cli"
	"hamlet/stream/kafka"
)

// A Bound is an event of a partition, or a time. The zero Bound is none.
type Bound struct {
	name      string // of the flag or field, for errors
	event     uint64 // the model's event count, from 1; 0: at counts
	partition int    // whose event it is; −1: the only one
	at        time.Time
}

func (b Bound) given() bool { return b.event != 0 || !b.at.IsZero() }

var (
	plainEvent = regexp.MustCompile(`^\d+$`)
	ofPart     = regexp.MustCompile(`^(\d+):(\d+)$`)
	ofIncident = regexp.MustCompile(`^([a-z0-9-]+)\.(\d+)\.(\d+)$`) // model, partition, event
)

// ParseBound reads the value of a flag or field: an event such as 5210 or 1:5210 of partition
// 1, the id of an incident of the model, a duration before now, or a time.
func ParseBound(name, text, model string, now time.Time) (Bound, error) {
	if m := ofIncident.FindStringSubmatch(text); m != nil {
		if m[1] != model {
			return Bound{}, cli.Usagef("%s: %s is an incident of model %s, not of %s", name, text, m[1], model)
		}
		return eventBound(name, text, m[2], m[3])
	}
	if m := ofPart.FindStringSubmatch(text); m != nil {
		return eventBound(name, text, m[1], m[2])
	}
	if plainEvent.MatchString(text) {
		return eventBound(name, text, "", text)
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return Bound{name: name, at: now.Add(-d)}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return Bound{name: name, at: t}, nil
		}
	}
	return Bound{}, cli.Usagef("%s: %q is neither an event such as 5210 or 1:5210 (of partition 1), nor an incident such as %s.0.5210, "+
		"nor a duration such as 24h, nor a time such as 2026-11-20T10:00:00Z", name, text, model)
}

// eventBound reads an event, and the partition if it is not "".
func eventBound(name, text, partition, event string) (b Bound, err error) {
	b.name, b.partition = name, -1
	if partition != "" {
		if b.partition, err = strconv.Atoi(partition); err != nil {
			return b, cli.Usagef("%s: %q names no partition", name, text)
		}
	}
	if b.event, err = strconv.ParseUint(event, 10, 63); err != nil || b.event == 0 {
		return b, cli.Usagef("%s: %q: a model's events are numbered from 1", name, text)
	}
	return b, nil
}

// resolve calls set with the offset at which b lies in each part: that of the event, plus
// after, or of the first record that was written at the time or later. In the other
// partitions an event means the time at which it was written.
func (b Bound) resolve(ctx context.Context, parts []*part, after int64, set func(p *part, offset int64)) error {
	named, err := b.part(parts)
	if err != nil || !b.given() {
		return err
	}
	at := b.at
	if named != nil {
		offset, written, err := named.offsetOf(ctx, b.event)
		if err != nil {
			return err
		}
		set(named, offset+after)
		if len(parts) == 1 {
			return nil
		}
		at = written
	}
	since, err := kafka.OffsetsSince(ctx, parts[0].kafka, parts[0].topic, at)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p != named {
			set(p, since[p.number])
		}
	}
	return nil
}

// part returns the part whose event b names, nil if b is a time.
func (b Bound) part(parts []*part) (*part, error) {
	if b.event == 0 {
		return nil, nil
	}
	for _, p := range parts {
		if b.partition == p.number || b.partition < 0 && len(parts) == 1 {
			return p, nil
		}
	}
	if b.partition < 0 {
		return nil, cli.Usagef("%s: the model has %d partitions, and each counts its events by itself: name one with PARTITION:%d, or give a time",
			b.name, len(parts), b.event)
	}
	return nil, cli.Usagef("%s: the model has no partition %d", b.name, b.partition)
}
