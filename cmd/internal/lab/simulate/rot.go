package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hamlet/stream"
)

// This file has the medium of a log in files, which changes a bit of what it keeps:
//
//   - The log names the offset that the bit has damaged, and no other one.
//   - No other acknowledged label is lost.
//   - Learners that come to it end, until an operator leaves it out of the log.
//   - The model is then the replay of a log without the record, or with it if a learner had read it
//     before. All that this replay publishes is out.

// A rotten is a record with a bit that is another one.
type rotten struct {
	stream.Record
	left bool // the operator has left it out
}

// mostRotten is how many records of a world become rotten: a model may have learnt any of them or not, and
// each of these models is looked for.
const mostRotten = 3

// markedAfter is how long after an append the log proves by itself that it was durable. Damage within that
// time looks like a write that was cut off.
const markedAfter = 2 * time.Second

// rots changes a bit of the record that is N before the log's end, or of one before that. Half of the
// times the learners are killed with it, so that they come to it again. For later an operator leaves out what
// the log names.
func (w *World) rots(i Incident) {
	if !w.plan.Files {
		return
	}
	before, err := all(&w.events)
	_ = sleep(w.ctx, markedAfter)
	if err != nil { // an earlier bit is not left out yet, or the power is off
		return
	}
	r := random(w.plan.Seed, "rot "+i.At.String())
	if !w.rot(before[:max(0, len(before)-i.N)], r.IntN) {
		return
	}
	if r.IntN(2) == 0 {
		for _, name := range learners {
			w.endProcess(name, time.Second, true)
		}
	}
	_ = sleep(w.ctx, i.For)
	i.N = 0
	for w.ctx.Err() == nil && !w.command(i, "leave out", func(ctx context.Context, o operator) (err error) {
		return errors.Join(o.call(ctx, portLog, "Skip", func() error {
			err = w.leaveOut(ctx)
			return nil
		}), err)
	}) {
	}
}

// rot changes a bit of the last record that teaches a label.
func (w *World) rot(records []stream.Record, draw func(int) int) bool {
	w.rotting.Lock()
	defer w.rotting.Unlock()
	at := len(records) - 1
	for ; at >= len(w.base.records) && !isLabel(&records[at]); at-- {
	}
	if at < len(w.base.records) || len(w.rotten) == mostRotten || !w.events.files.Load().flip(&records[at], draw) {
		return false
	}
	w.lose(records[at : at+1])
	w.rotten = append(w.rotten, rotten{Record: records[at]})
	w.tell("==", fmt.Sprintf("a bit of offset %d is another one", records[at].Offset))
	return true
}

// isLabel reports whether a record teaches a label: what withdraws others, or gives a source a role, has laws
// of its own that compare the log with the model.
func isLabel(r *stream.Record) bool {
	if stream.IsStanding(r.Headers) {
		return false
	}
	e, err := stream.DecodeRecord(r.Headers, r.Value)
	return err == nil && e.Action == stream.Learn && e.Label != stream.Unlabelled
}

// leaveOut compares the damage that the log names with what is rotten, and leaves it out.
func (w *World) leaveOut(ctx context.Context) error {
	w.rotting.Lock()
	defer w.rotting.Unlock()
	f := w.events.files.Load()
	damaged, err := f.Verify(ctx)
	if err != nil {
		return unplugged(err)
	}
	var named []int64
	for _, d := range damaged {
		for offset := d.From; offset < d.To; offset++ {
			named = append(named, offset)
		}
	}
	var want []int64
	for _, r := range w.rotten {
		if !r.left {
			want = append(want, r.Offset)
		}
	}
	known := func(offset int64) bool { // damage reaches as far as the next record that is whole
		return slices.ContainsFunc(w.rotten, func(r rotten) bool { return r.left && r.Offset == offset })
	}
	if slices.Sort(want); !slices.Equal(slices.DeleteFunc(slices.Clone(named), known), want) {
		w.violate("the medium has changed bits of the offsets %v, and the log names %v as damaged", want, named)
	}
	for _, d := range damaged {
		if d.From == d.To { // a mark
			continue
		}
		if err := f.Skip(d.From, d.To); err != nil {
			return unplugged(err)
		}
	}
	for k := range w.rotten {
		w.rotten[k].left = true
	}
	if len(want) > 0 {
		w.effect(Rot)
	}
	return nil
}

// frameSize is how many bytes a frame has before its record. See frame.go of stream/filelog.
const frameSize = 24

// flip changes a bit of a record, or of its frame. Where a record was appended twice it changes nothing.
func (f *onFiles) flip(r *stream.Record, draw func(int) int) bool {
	f.disk.Lock()
	copies := 0
	for _, file := range f.disk.Files {
		copies += bytes.Count(file.Now, r.Value)
	}
	f.disk.Unlock()
	return copies == 1 && f.disk.Flip(func(b []byte) int64 {
		at := bytes.Index(b, r.Value)
		if at < 0 {
			return -1
		}
		return int64(8*(at-frameSize) + draw(8*(len(r.Value)+frameSize)))
	})
}

// replays returns the models that may come of the log: for each record that became rotten, with it and without
// it. records are those that the log still has.
func (w *World) replays(records []stream.Record, dir string) func(yield func(*calmed, error) bool) {
	return func(yield func(*calmed, error) bool) {
		for without := range 1 << len(w.rotten) {
			whole := slices.Clone(records)
			var holes []int64
			for k := range w.rotten {
				whole = append(whole, w.rotten[k].Record)
				if without&(1<<k) != 0 {
					holes = append(holes, w.rotten[k].Offset)
				}
			}
			slices.SortFunc(whole, func(a, b stream.Record) int { return int(a.Offset - b.Offset) })
			if !yield(w.calm(whole, fmt.Sprint(dir, " ", without), holes...)) {
				return
			}
		}
	}
}
