// Package logtest has the laws of a [stream.Log], and a log in memory.
// Every adapter runs the laws.
package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hamlet/stream"
)

// A Subject is an empty log under test, and what can be done to it. What is nil cannot be done, and
// its laws are not tried.
type Subject struct {
	Log      stream.Log
	Appender stream.Appender

	// Open returns the log as another client sees it.
	Open func(t *testing.T) (stream.Log, stream.Appender)

	Restart func(t *testing.T)               // stops what keeps the log, and starts it again
	Retain  func(t *testing.T) int64         // deletes records at the beginning, and returns the first one that is left
	Replace func(t *testing.T)               // deletes the log and makes an empty one of the same name
	Away    func(t *testing.T) (back func()) // makes the log unreachable

	TooLarge int // a value of this size is over the limit
}

// Run tries the laws. open makes a log for each.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for _, law := range []struct {
		name string
		try  func(*testing.T, Subject)
	}{
		{"01 what was appended is read", appendedIsRead},
		{"02 offsets ascend and are the same for all", offsetsAreTheSame},
		{"03 records of one Append keep their order", orderIsKept},
		{"04 nothing below the offset", nothingBelow},
		{"05 at the end Read waits", waitsAtTheEnd},
		{"06 outside the log is an error", outsideIsAnError},
		{"07 the bounds never fall", boundsNeverFall},
		{"08 a replaced log is another one", replacedIsAnother},
		{"09 a cancelled Append is never torn", cancelledIsNotTorn},
		{"10 a record that is too large is refused", tooLargeIsRefused},
		{"11 the limit bounds a Read", limitBounds},
		{"12 a log that is away leaves nothing behind", awayLeavesNothing},
		{"13 a time is an offset", timeIsAnOffset},
		{"14 what is acknowledged is in the log", acknowledgedIsIn},
	} {
		t.Run(law.name, func(t *testing.T) { law.try(t, open(t)) })
	}
}

// patience is how long a log may take for what it has to do.
const patience = 30 * time.Second

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// numbered returns records with the values first, first+1, …
func numbered(first, n int) []stream.Record {
	records := make([]stream.Record, n)
	for i := range records {
		records[i] = stream.Record{Key: fmt.Appendf(nil, "k%d", i%3), Value: fmt.Append(nil, first+i)}
	}
	return records
}

func add(t *testing.T, a stream.Appender, records ...stream.Record) {
	t.Helper()
	if err := a.Append(within(t, patience), records...); err != nil {
		t.Fatal(err)
	}
}

// bounds asks until the log answers.
func bounds(t *testing.T, log stream.Log) stream.Bounds {
	t.Helper()
	for ctx := within(t, patience); ; {
		b, err := log.Bounds(ctx)
		if err == nil {
			return b
		}
		if !errors.Is(err, stream.ErrAway) || ctx.Err() != nil {
			t.Fatal(err)
		}
		pause()
	}
}

// all reads from an offset to the log's end, and asks until the log answers.
func all(t *testing.T, log stream.Log, from int64, most stream.Limit) (records []stream.Record) {
	t.Helper()
	end := bounds(t, log).End
	for ctx := within(t, patience); from < end; {
		got, _, err := log.Read(ctx, from, most, time.Second)
		if errors.Is(err, stream.ErrAway) && ctx.Err() == nil {
			pause()
			continue
		}
		if err != nil {
			t.Fatalf("read from %d of %d: %v", from, end, err)
		}
		if len(got) == 0 {
			t.Fatalf("nothing at %d of a log that ends at %d", from, end)
		}
		records = append(records, got...)
		from = got[len(got)-1].Offset + 1
	}
	return records
}

func pause() { <-time.After(20 * time.Millisecond) }

func values(records []stream.Record) string {
	var b strings.Builder
	for _, r := range records {
		fmt.Fprintf(&b, "%s ", r.Value)
	}
	return b.String()
}

func same(a, b stream.Record) bool {
	return a.Offset == b.Offset && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && a.Time.Equal(b.Time) &&
		slices.EqualFunc(a.Headers, b.Headers, func(a, b stream.Header) bool {
			return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
		})
}

func appendedIsRead(t *testing.T, s Subject) {
	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	large := bytes.Repeat([]byte("0123456789abcdef"), 900_000/16)
	records := []stream.Record{
		{Key: []byte("k"), Value: []byte("v"), Time: at},
		{},
		{Key: []byte{}, Value: []byte{},
			Headers: []stream.Header{{Key: "h"}, {Key: "h", Value: []byte("2")}, {Key: "a", Value: []byte{0}}}},
		{Key: []byte("k"), Value: large, Time: at.Add(time.Second)},
		{Value: []byte("last"), Time: at.Add(2 * time.Second)},
	}
	before := time.Now().Truncate(time.Millisecond)
	add(t, s.Appender, records...)
	got := all(t, s.Log, 0, stream.Limit{})
	if len(got) != len(records) {
		t.Fatalf("%d records, want %d", len(got), len(records))
	}
	for i, r := range records {
		r.Offset = got[i].Offset
		if r.Time.IsZero() {
			if r.Time = got[i].Time; r.Time.Before(before) || r.Time.After(time.Now()) {
				t.Errorf("record %d has the time %v, and was appended after %v", i, r.Time, before)
			}
		}
		if !same(r, got[i]) {
			t.Errorf("record %d is another one: key %q, %d bytes, headers %q, at %v",
				i, got[i].Key, len(got[i].Value), got[i].Headers, got[i].Time)
		}
	}
}

func offsetsAreTheSame(t *testing.T, s Subject) {
	for i := range 5 {
		add(t, s.Appender, numbered(100*i, 100)...)
	}
	want := all(t, s.Log, 0, stream.Limit{})
	if len(want) != 500 {
		t.Fatalf("%d records, want 500", len(want))
	}
	for i := range want[1:] {
		if want[i+1].Offset <= want[i].Offset {
			t.Fatalf("offset %d after %d", want[i+1].Offset, want[i].Offset)
		}
	}
	other, _ := s.Open(t)
	if got := all(t, other, 0, stream.Limit{Records: 7}); !slices.EqualFunc(got, want, same) {
		t.Error("another client reads other records")
	}
	if s.Restart != nil {
		s.Restart(t)
		if got := all(t, s.Log, 0, stream.Limit{}); !slices.EqualFunc(got, want, same) {
			t.Error("after a restart there are other records")
		}
	}
}

func orderIsKept(t *testing.T, s Subject) {
	const writers, calls, n = 4, 20, 10
	_, second := s.Open(t)
	var wg sync.WaitGroup
	for w := range writers {
		a := []stream.Appender{s.Appender, second}[w%2]
		wg.Go(func() {
			for c := range calls {
				records := make([]stream.Record, n)
				for i := range records {
					records[i] = stream.Record{Key: []byte{byte('a' + w)}, Value: fmt.Append(nil, c*n+i)}
				}
				if err := a.Append(within(t, patience), records...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if s.Restart != nil {
		s.Restart(t)
	}
	wg.Wait()
	next := map[string]int{}
	for _, r := range all(t, s.Log, 0, stream.Limit{}) {
		var v int
		if _, err := fmt.Sscan(string(r.Value), &v); err != nil {
			t.Fatal(err)
		}
		// Less: it was appended again, because its acknowledgement was lost.
		if key := string(r.Key); v > next[key] {
			t.Fatalf("writer %s: %d, want %d", key, v, next[key])
		} else if v == next[key] {
			next[key]++
		}
	}
	for w := range writers {
		if got := next[string(rune('a'+w))]; got != calls*n {
			t.Errorf("writer %c: %d records, want %d", 'a'+w, got, calls*n)
		}
	}
}

func nothingBelow(t *testing.T, s Subject) {
	add(t, s.Appender, numbered(0, 50)...) // one batch
	add(t, s.Appender, numbered(50, 50)...)
	for _, from := range []int64{99, 0, 1, 49, 50, 51, 75} {
		got := all(t, s.Log, from, stream.Limit{Records: 9})
		if int64(len(got)) != 100-from || got[0].Offset != from {
			t.Errorf("from %d: %d records", from, len(got))
		}
	}
}

func waitsAtTheEnd(t *testing.T, s Subject) {
	add(t, s.Appender, numbered(0, 3)...)
	const wait = 300 * time.Millisecond
	for range 2 {
		began := time.Now()
		got, end, err := s.Log.Read(within(t, patience), 3, stream.Limit{}, wait)
		if took := time.Since(began); err != nil || len(got) > 0 || end != 3 || took < wait*9/10 ||
			took > wait+10*time.Second {
			t.Fatalf("%d records, end %d, %v after %v", len(got), end, err, took)
		}
	}
	done := make(chan error, 1)
	go func() {
		got, end, err := s.Log.Read(within(t, patience), 3, stream.Limit{}, patience)
		if err == nil && (len(got) != 1 || end != 4) {
			err = fmt.Errorf("%d records, end %d", len(got), end)
		}
		done <- err
	}()
	pause()
	began := time.Now()
	add(t, s.Appender, numbered(3, 1)...)
	if err := <-done; err != nil || time.Since(began) > patience/2 {
		t.Errorf("a new record did not end the wait: %v after %v", err, time.Since(began))
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _, err := s.Log.Read(ctx, 4, stream.Limit{}, patience)
		done <- err
	}()
	pause()
	began = time.Now()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || time.Since(began) > 5*time.Second {
		t.Errorf("a cancelled Read: %v after %v", err, time.Since(began))
	}
	if got := all(t, s.Log, 2, stream.Limit{}); values(got) != "2 3 " {
		t.Errorf("then it reads %s", values(got))
	}
}

func outsideIsAnError(t *testing.T, s Subject) {
	add(t, s.Appender, numbered(0, 20)...)
	if got, _, err := s.Log.Read(within(t, patience), 21, stream.Limit{}, 0); !errors.Is(err, stream.ErrBeyond) {
		t.Errorf("beyond the end: %d records, %v", len(got), err)
	}
	if s.Retain == nil {
		return
	}
	first := s.Retain(t)
	if b := bounds(t, s.Log); first <= 0 || b.First != first || b.End < 20 {
		t.Fatalf("the log goes from %d to %d, want from %d", b.First, b.End, first)
	}
	for _, from := range []int64{0, first - 1} {
		if got, _, err := s.Log.Read(within(t, patience), from, stream.Limit{}, 0); !errors.Is(err, stream.ErrGone) {
			t.Errorf("at %d, which is gone: %d records, %v", from, len(got), err)
		}
	}
	add(t, s.Appender, numbered(20, 5)...)
	if got := all(t, s.Log, first, stream.Limit{}); len(got) == 0 || !strings.HasSuffix(values(got), "20 21 22 23 24 ") {
		t.Errorf("what is left is %s", values(got))
	}
}

func boundsNeverFall(t *testing.T, s Subject) {
	last := bounds(t, s.Log)
	if last.First != 0 || last.End != 0 {
		t.Fatalf("an empty log goes from %d to %d", last.First, last.End)
	}
	see := func() {
		t.Helper()
		b := bounds(t, s.Log)
		if b.ID != last.ID || b.First < last.First || b.End < last.End {
			t.Fatalf("the bounds are %+v after %+v", b, last)
		}
		last = b
	}
	for i := range 3 {
		add(t, s.Appender, numbered(10*i, 10)...)
		see()
	}
	if last.End != 30 {
		t.Errorf("the end is %d, want 30", last.End)
	}
	if s.Retain != nil {
		s.Retain(t)
		see()
	}
	if s.Restart != nil {
		s.Restart(t)
		see()
	}
}

func replacedIsAnother(t *testing.T, s Subject) {
	if s.Replace == nil {
		t.Skip("it cannot be replaced")
	}
	add(t, s.Appender, numbered(0, 10)...)
	was, id := all(t, s.Log, 0, stream.Limit{}), bounds(t, s.Log).ID
	s.Replace(t)
	add(t, s.Appender, numbered(100, 20)...)
	now := all(t, s.Log, 0, stream.Limit{})
	if b := bounds(t, s.Log); b.ID == id && (len(now) != 20 || slices.EqualFunc(now[:10], was, same)) {
		t.Errorf("the log has the ID %q as before, and the records %s", b.ID, values(now))
	}
}

func cancelledIsNotTorn(t *testing.T, s Subject) {
	next := 0
	for i := range 30 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(i)*100*time.Microsecond, cancel)
		_ = s.Appender.Append(ctx, numbered(next, 5)...)
		cancel()
		next += 5
	}
	add(t, s.Appender, numbered(next, 1)...)
	times, last := map[int]int{}, -1
	for _, r := range all(t, s.Log, 0, stream.Limit{}) {
		var v int
		if _, err := fmt.Sscan(string(r.Value), &v); err != nil {
			t.Fatalf("a torn record: %q", r.Value)
		}
		if times[v]++; times[v] > 2 {
			t.Errorf("record %d is in the log %d times", v, times[v])
		}
		if v < last && times[v] == 1 {
			t.Errorf("record %d after %d", v, last)
		}
		last = max(last, v)
	}
	if times[next] != 1 {
		t.Errorf("what was appended last is in the log %d times", times[next])
	}
}

func tooLargeIsRefused(t *testing.T, s Subject) {
	if s.TooLarge == 0 {
		t.Skip("it has no limit")
	}
	add(t, s.Appender, numbered(0, 1)...)
	large := stream.Record{Value: make([]byte, s.TooLarge)}
	if err := s.Appender.Append(within(t, patience), large); !errors.Is(err, stream.ErrTooLarge) {
		t.Errorf("Append = %v, want ErrTooLarge", err)
	}
	add(t, s.Appender, numbered(1, 1)...)
	if got := all(t, s.Log, 0, stream.Limit{}); len(got) != 2 {
		t.Errorf("the log has %d records, want those two that are not too large", len(got))
	}
}

func limitBounds(t *testing.T, s Subject) {
	var records []stream.Record
	for i := range 60 {
		records = append(records, stream.Record{
			Key: []byte("key"), Value: bytes.Repeat([]byte{byte('a' + i%26)}, 100*(i%10)),
			Headers: []stream.Header{{Key: "h", Value: []byte("12")}},
		})
	}
	records[30].Value = bytes.Repeat([]byte("large"), 10_000)
	add(t, s.Appender, records...)
	for _, most := range []stream.Limit{{Records: 1}, {Records: 7}, {Bytes: 1}, {Bytes: 1000},
		{Records: 3, Bytes: 1200}, {}} {
		count := 0
		for from := int64(0); from < 60; {
			got, _, err := s.Log.Read(within(t, patience), from, most, time.Second)
			if err != nil || len(got) == 0 {
				t.Fatalf("limit %+v, from %d: %d records, %v", most, from, len(got), err)
			}
			size := 0
			for i := range got {
				size += got[i].Size()
				if got[i].Offset != from+int64(i) {
					t.Fatalf("limit %+v, from %d: offset %d at place %d", most, from, got[i].Offset, i)
				}
			}
			if most.Records > 0 && len(got) > most.Records || most.Bytes > 0 && size > most.Bytes && len(got) > 1 {
				t.Errorf("limit %+v, from %d: %d records of %d bytes", most, from, len(got), size)
			}
			count += len(got)
			from = got[len(got)-1].Offset + 1
		}
		if count != len(records) {
			t.Errorf("limit %+v: %d records, want %d", most, count, len(records))
		}
	}
}

func awayLeavesNothing(t *testing.T, s Subject) {
	if s.Away == nil {
		t.Skip("it cannot be away")
	}
	add(t, s.Appender, numbered(0, 10)...)
	if got := all(t, s.Log, 0, stream.Limit{}); len(got) != 10 {
		t.Fatalf("%d records, want 10", len(got))
	}
	back := s.Away(t)
	fail := func() {
		t.Helper()
		ctx := within(t, patience)
		if _, err := s.Log.Bounds(ctx); !errors.Is(err, stream.ErrAway) {
			t.Errorf("Bounds = %v, want ErrAway", err)
		}
		if _, _, err := s.Log.Read(ctx, 5, stream.Limit{}, 0); !errors.Is(err, stream.ErrAway) {
			t.Errorf("Read = %v, want ErrAway", err)
		}
	}
	fail()
	before := runtime.NumGoroutine()
	for range 20 {
		fail()
	}
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > before+5 {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines after 20 failures, %d after the first", runtime.NumGoroutine(), before)
		}
		pause()
	}
	back()
	if got := all(t, s.Log, 5, stream.Limit{}); len(got) != 5 {
		t.Errorf("%d records, want 5", len(got))
	}
}

// Since finds the first record of a time or later, and the end where there is none.
func timeIsAnOffset(t *testing.T, s Subject) {
	first := time.Now().Add(-30 * time.Minute).UTC().Truncate(time.Second) // Kafka takes no record of the future
	for i := range 5 {
		add(t, s.Appender, stream.Record{Value: []byte("x"), Time: first.Add(time.Duration(i) * time.Minute)})
	}
	for after, want := range map[time.Duration]int64{-time.Hour: 0, 0: 0, time.Second: 1, 3 * time.Minute: 3,
		time.Hour: 5} {
		if got, err := s.Log.Since(within(t, patience), first.Add(after)); err != nil || got != want {
			t.Errorf("%v after the first: %d (%v), want %d", after, got, err, want)
		}
	}
}
