package logtest

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"hamlet/stream"
)

// A Memory is a log in memory, for tests of what reads a log. It keeps the laws, except where a
// test breaks them with Cut, Replace, Retain and Fail. Its zero value is empty.
type Memory struct {
	ID string // of the log; "": it cannot tell itself from another

	mu      sync.Mutex
	first   int64
	end     int64
	records []stream.Record
	failure error
	stuck   bool
	moved   chan struct{} // closed and renewed at every change; nil: nobody waits
	reads   int
}

func (m *Memory) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	if m.moved != nil {
		close(m.moved)
		m.moved = nil
	}
}

// Append implements [stream.Appender].
func (m *Memory) Append(ctx context.Context, records ...stream.Record) (err error) {
	m.change(func() {
		if err = m.failure; err != nil {
			return
		}
		for _, r := range records {
			if r.Offset = m.end; r.Time.IsZero() {
				r.Time = time.Now()
			}
			r.Time = r.Time.Truncate(time.Millisecond)
			r.Key, r.Value = slices.Clone(r.Key), slices.Clone(r.Value)
			m.records = append(m.records, r)
			m.end++
		}
	})
	return err
}

// Bounds implements [stream.Log].
func (m *Memory) Bounds(context.Context) (stream.Bounds, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return stream.Bounds{First: m.first, End: m.end, ID: m.ID}, m.failure
}

// Since implements [stream.Log].
func (m *Memory) Since(_ context.Context, t time.Time) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if !r.Time.Before(t) {
			return r.Offset, m.failure
		}
	}
	return m.end, m.failure
}

// Read implements [stream.Log].
func (m *Memory) Read(ctx context.Context, from int64, most stream.Limit, wait time.Duration) (
	records []stream.Record, end int64, err error) {
	waited := time.NewTimer(wait)
	defer waited.Stop()
	for over := wait <= 0; ; {
		m.mu.Lock()
		records, end, err = m.read(from, most)
		if m.moved == nil {
			m.moved = make(chan struct{})
		}
		moved, stuck := m.moved, m.stuck && wait > 0
		m.mu.Unlock()
		if !stuck && (err != nil || len(records) > 0 || over) {
			return records, end, err
		}
		select {
		case <-moved:
		case <-waited.C:
			over = true
		case <-ctx.Done():
			return nil, 0, fmt.Errorf("%w: %w", stream.ErrAway, ctx.Err())
		}
		if stuck && over {
			<-ctx.Done()
			return nil, 0, fmt.Errorf("%w: %w", stream.ErrAway, ctx.Err())
		}
	}
}

func (m *Memory) read(from int64, most stream.Limit) (records []stream.Record, end int64, err error) {
	switch m.reads++; {
	case m.failure != nil:
		return nil, 0, m.failure
	case from < m.first:
		return nil, 0, fmt.Errorf("%w: offset %d, the log begins at %d", stream.ErrGone, from, m.first)
	case from > m.end:
		return nil, 0, fmt.Errorf("%w: offset %d, the log ends at %d", stream.ErrBeyond, from, m.end)
	}
	size := 0
	for _, r := range m.records[sort.Search(len(m.records), func(i int) bool { return m.records[i].Offset >= from }):] {
		size += r.Size()
		if n := len(records); n > 0 && (most.Bytes > 0 && size > most.Bytes || most.Records > 0 && n == most.Records) {
			break
		}
		records = append(records, r)
	}
	return records, m.end, nil
}

// Retain deletes the records below an offset.
func (m *Memory) Retain(first int64) {
	m.change(func() {
		m.first = first
		m.records = slices.DeleteFunc(m.records, func(r stream.Record) bool { return r.Offset < first })
	})
}

// Compact takes the records at these offsets out of the log. Its bounds stay.
func (m *Memory) Compact(offsets ...int64) {
	m.change(func() {
		m.records = slices.DeleteFunc(m.records, func(r stream.Record) bool { return slices.Contains(offsets, r.Offset) })
	})
}

// Cut loses the records from an offset on, as a power failure does.
func (m *Memory) Cut(end int64) {
	m.change(func() {
		m.records = slices.DeleteFunc(m.records, func(r stream.Record) bool { return r.Offset >= end })
		m.end = end
	})
}

// Replace deletes the log and makes another one with these records, all at once.
func (m *Memory) Replace(id string, records ...stream.Record) {
	other := new(Memory)
	_ = other.Append(context.Background(), records...)
	m.change(func() { m.ID, m.first, m.end, m.records = id, 0, other.end, other.records })
}

// Fail makes every call fail, until Fail(nil).
func (m *Memory) Fail(err error) { m.change(func() { m.failure = err }) }

// Stick makes a Read that waits hang until its context ends, while stuck.
func (m *Memory) Stick(stuck bool) { m.change(func() { m.stuck = stuck }) }

// Reads returns how often the log was read.
func (m *Memory) Reads() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads
}
