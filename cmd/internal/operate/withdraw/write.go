package withdraw

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
	"hamlet/stream"
)

// chunk is how many records are written before they are acknowledged: at most 100 MiB.
const chunk = 100

// Write appends the withdrawals of the plan to the log. It returns how many are acknowledged.
// After an error, Write again writes all: a copy changes nothing.
func (p *Plan) Write(ctx context.Context, servers Servers, progress func(Progress)) (written int, err error) {
	log, err := servers.log(p.Model)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	if written, err = p.write(ctx, log, progress); err != nil {
		return written, fmt.Errorf("after %d of %d withdrawals: %w", written, len(p.offsets), err)
	}
	bounds, err := follow.Bounds(ctx, log.follow)
	if err != nil {
		return written, fmt.Errorf("all %d withdrawals are written, but not known is where the log ends: %w", written, err)
	}
	p.Until = bounds.End
	return written, nil
}

func (p *Plan) write(ctx context.Context, log eventLog, progress func(Progress)) (written int, err error) {
	report := reporting(progress, "writing", p.To)
	var records []stream.Record
	flush := func() error {
		if err := log.Append(ctx, records...); err != nil {
			return err
		}
		written, records = written+len(records), records[:0]
		return nil
	}
	err = p.labels(ctx, log, func(r *record, e *stream.Event) error {
		report(r.Offset)
		value, headers, err := e.EncodeRecord()
		if err != nil {
			return err
		}
		records = append(records, stream.Record{Key: r.Key, Value: value, Headers: headers})
		if len(records) < chunk {
			return nil
		}
		return flush()
	})
	if err != nil || len(records) == 0 {
		return written, err
	}
	return written, flush()
}

// labels calls each with the labels of the plan and their withdrawals. Another record in
// the place of one ends it.
func (p *Plan) labels(ctx context.Context, log eventLog, each func(r *record, e *stream.Event) error) error {
	found := 0
	err := log.readThese(ctx, p.offsets, func(r *record) error {
		e := withdrawal(log.topic, r)
		if p.offsets[found] != r.Offset || p.ids[found] != e.ID {
			return fmt.Errorf("topic %s has another record at offset %d than the plan found there", log.topic, p.offsets[found])
		}
		found++
		return each(r, &e)
	})
	if err == nil && found < len(p.offsets) {
		err = fmt.Errorf("topic %s no longer has the label at offset %d", log.topic, p.offsets[found])
	}
	return err
}

// withdrawal returns the event that withdraws what r, of a topic, taught. Its id is a function of
// r's place, so that the same withdrawal twice is one event and a copy of it. The 0 is the
// partition: an id is what it was in hamlet 0.1.0.
func withdrawal(topic string, r *record) stream.Event {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n0\n%d\n%s", topic, r.Offset, r.Event.ID))
	return stream.Event{
		ID: "withdraw-" + hex.EncodeToString(sum[:16]), Source: r.Event.Source, Tenant: r.Event.Tenant,
		Action: stream.Unlearn, Of: r.Event.ID, OwnOnly: true, Body: r.Event.Body,
	}
}

// Learnt reports whether the saved model has learnt what Write wrote.
func (p *Plan) Learnt(ctx context.Context, store state.Store) (bool, error) {
	h, err := store.Heading(ctx, state.Head)
	return err == nil && h.Next >= p.Until, err
}

// Saved waits until the learner has saved a model with what Write wrote. It returns false
// if that takes longer than patience.
func (p *Plan) Saved(ctx context.Context, servers Servers, patience time.Duration) (bool, error) {
	expired := time.After(patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		learnt, err := p.Learnt(ctx, servers.Store)
		if learnt || err != nil && !errors.Is(err, state.ErrTransient) && !errors.Is(err, state.ErrNone) {
			return learnt, err
		}
		select {
		case <-tick.C:
		case <-expired:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
