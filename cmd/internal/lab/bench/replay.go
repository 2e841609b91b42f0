package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/data/source"
	"hamlet/stream"
)

// A message is one message of the mailbox, with the filters' state.
type message struct {
	ordinal    int    // in the source, from 0
	number     int    // among those that can be classified, from 0
	index      int    // among those that hamlet accepted, from 0; -1 until then
	raw        []byte // the bytes for the other filters
	event      stream.Event
	truth      bool // spam
	taughtSpam bool // the label that filters learn
	parsed     parsedMessage
}

// A schedule says which messages are taught, and when.
type schedule struct {
	delay      int    // messages classified before this one is taught
	teachFirst int    // only this many first messages are taught; 0: all
	recipient  string // only mail to this recipient is taught; "": all
}

// teaches reports whether m is taught at all.
func (s *schedule) teaches(m *message) bool {
	return (s.teachFirst == 0 || m.number < s.teachFirst) && (s.recipient == "" || isTo(m.raw, s.recipient))
}

// A step classifies a message or teaches it.
type step struct {
	m     *message
	teach bool
}

// blockSize is how many steps a filter takes in a row. Blocks bound the memory and keep
// other filters from running during hamlet's steps.
const blockSize = 256

// A mailReplay is the replay of one mailbox through all filters.
type mailReplay struct {
	schedule  schedule
	own       *ownFilter
	external  []*externalFilter
	outcomes  []*outcome // hamlet's, then the others' in order
	truth     []bool
	taught    int
	idle      time.Duration // CPU time per message of an adapter that does nothing
	rejected  func(error)
	rejects   int
	progress  func(classified int)
	late      []*message // classified, not yet taught
	processed int        // messages scheduled
}

// run replays items through hamlet and the other filters in blocks, each filter in the
// order of the schedule.
func (r *mailReplay) run(ctx context.Context, items iter.Seq2[source.Item, error]) error {
	steps := make([]step, 0, 2*blockSize)
	for item, err := range items {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var rejection *source.Rejection
		switch {
		case errors.As(err, &rejection):
			r.reject(err)
			continue
		case err != nil:
			return err
		}
		m, err := messageOf(&item)
		if err != nil {
			r.reject(err)
			continue
		}
		steps = append(steps, step{m: m})
		m.number = r.processed
		r.processed++
		if r.schedule.teaches(m) {
			r.late = append(r.late, m)
		}
		for len(r.late) > 0 && r.late[0].number+r.schedule.delay <= m.number {
			steps = append(steps, step{m: r.late[0], teach: true})
			r.late[0] = nil
			r.late = r.late[1:]
		}
		if len(steps) >= blockSize {
			if err := r.block(ctx, steps); err != nil {
				return err
			}
			steps = steps[:0]
		}
	}
	return r.block(ctx, steps)
}

// block runs the steps through hamlet alone, then through the others concurrently.
func (r *mailReplay) block(ctx context.Context, steps []step) error {
	own := r.outcomes[0]
	start := time.Now()
	taken := make([]step, 0, len(steps))
	for i, s := range steps {
		atOnce := i+1 < len(steps) && steps[i+1] == step{s.m, true}
		ok, err := r.own.step(s, atOnce, own)
		if err != nil {
			r.reject(err)
		}
		if !ok {
			continue
		}
		if s.teach {
			r.taught++
		} else {
			r.truth = append(r.truth, s.m.truth)
		}
		taken = append(taken, s)
	}
	own.wall += time.Since(start)
	g, ctx := errgroup.WithContext(ctx)
	for i, o := range r.external {
		g.Go(func() error { return o.steps(ctx, taken, r.outcomes[i+1]) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if r.progress != nil {
		r.progress(len(r.truth))
	}
	return nil
}

// finish ends the servers and notes the memory of each filter.
func (r *mailReplay) finish(ctx context.Context) error {
	r.outcomes[0].memory = processMemory()
	var errs []error
	for i, o := range r.external {
		if o.serves {
			errs = append(errs, o.stopServer(ctx))
		}
		r.outcomes[i+1].memory = o.memory
	}
	return errors.Join(errs...)
}

func (r *mailReplay) reject(err error) {
	r.rejects++
	if r.rejected != nil {
		r.rejected(err)
	}
}

// steps runs the filter through steps. The time of teaching counts for the message
// taught.
func (o *externalFilter) steps(ctx context.Context, steps []step, out *outcome) error {
	start := time.Now()
	for _, s := range steps {
		if s.teach {
			cpu, err := o.train(ctx, s.m)
			if err != nil {
				return err
			}
			out.cpu[s.m.index] += cpu
			continue
		}
		v, cpu, err := o.classify(ctx, s.m)
		if err != nil {
			return err
		}
		out.add(v.spam, v.score)
		out.cpu[s.m.index] += cpu
	}
	out.wall += time.Since(start)
	return nil
}

// messageOf returns an item with the bytes that all filters get. A plain text becomes
// the body of a message without headers.
func messageOf(item *source.Item) (*message, error) {
	e := &item.Event
	m := &message{ordinal: item.Ordinal, index: -1, event: *e, truth: item.Truth == stream.Spam,
		taughtSpam: e.Label == stream.Spam}
	refused := func(format string, args ...any) error {
		return fmt.Errorf("event %d: "+format, append([]any{item.Ordinal + 1}, args...)...)
	}
	switch {
	case e.Action != stream.Learn:
		return nil, refused("a mailbox holds labelled messages only, and this event withdraws one: remove it")
	case e.Body.Kind == stream.Mail:
		m.raw = e.Body.Mail
	case e.Body.Kind == stream.Text:
		m.raw = append([]byte("\n"), e.Body.Text...)
	default:
		return nil, refused("other filters read mail and text, and this is a vector")
	}
	return m, nil
}

// probabilities turns the scores into log-odds if all lie in [0, 1].
func (o *outcome) probabilities() {
	for _, s := range o.logOdds {
		if s < 0 || s > 1 {
			return
		}
	}
	o.proper = true
	for i, s := range o.logOdds {
		o.logOdds[i] = math.Log(s / (1 - s))
	}
}

// isTo reports whether a header of delivery (Delivered-To, X-Original-To,
// Envelope-To, To, Cc) of a message contains the text, in any case.
func isTo(raw []byte, text string) bool {
	text = strings.ToLower(text)
	delivery := false // inside a header of delivery, which may be folded
	for len(raw) > 0 {
		line, rest, _ := bytes.Cut(raw, []byte{'\n'})
		raw = rest
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if len(line) == 0 {
			return false
		}
		if line[0] != ' ' && line[0] != '\t' {
			name, value, _ := bytes.Cut(line, []byte{':'})
			line, delivery = value, delivers(string(name))
		}
		if delivery && strings.Contains(strings.ToLower(string(line)), text) {
			return true
		}
	}
	return false
}

func delivers(header string) bool {
	switch strings.ToLower(strings.TrimSpace(header)) {
	case "delivered-to", "x-original-to", "envelope-to", "to", "cc":
		return true
	}
	return false
}
