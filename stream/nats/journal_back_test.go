package nats_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
	"hamlet/stream/nats"
)

// Read from its end, the journal has the same decisions as from its beginning, from any place on.
// Labels and other models stand between them, and more than one step is read.
func TestJournalIsReadBack(t *testing.T) {
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	ctx := patience(t)
	var wanted func([]byte) bool
	back := func(model string, before nats.JournalPosition, since time.Time) (found []nats.JournalLine, bad int) {
		t.Helper()
		for l, err := range nats.ReadJournalBack(ctx, conn, model, before, since, wanted) {
			switch {
			case errors.As(err, new(*nats.MessageError)):
				bad++
			case err != nil:
				t.Fatal(err)
			default:
				found = append(found, l)
			}
		}
		return found, bad
	}
	if found, _ := back("default", nats.JournalPosition{}, time.Time{}); found != nil {
		t.Errorf("without a stream: %+v", found)
	}
	j, other := journal(t, conn, nats.JournalConfig{}), journal(t, conn, nats.JournalConfig{Model: "billing"})
	labels := journal(t, conn, nats.JournalConfig{Labels: true})
	label := stream.JournalEntry{Time: time.Now().UTC(), ID: strings.Repeat("0a", 16), Label: stream.Spam, Source: "users", Model: "default"}
	var want []string
	var middle time.Time
	for i := range 30 { // some 20 KB each
		var batch []stream.JournalEntry
		if i == 15 {
			if err := conn.Publish(nats.JournalSubject("default"), []byte("hello\n")); err != nil { // no line
				t.Fatal(err)
			}
			middle = time.Now()
		}
		for k := range 60 {
			e := entry(fmt.Sprintf("%d.%d.%s", i, k, strings.Repeat("r", 200)))
			batch, want = append(batch, e), append(want, e.Request)
		}
		for _, err := range []error{
			j.Append(ctx, fmt.Sprint(i), batch),
			other.Append(ctx, fmt.Sprint("b", i), []stream.JournalEntry{entry("x")}),
			labels.Append(ctx, fmt.Sprint("l", i), []stream.JournalEntry{label}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Reverse(want)
	requests := func(lines []nats.JournalLine) (all []string) {
		for _, l := range lines {
			all = append(all, l.Request)
		}
		return all
	}
	all, bad := back("default", nats.JournalPosition{}, time.Time{})
	if got := requests(all); !slices.Equal(got, want) || bad != 1 {
		t.Fatalf("%d lines and %d bad ones, want %d and 1", len(got), bad, len(want))
	}
	for _, k := range []int{0, 1, 59, 60, 61, 900, len(all) - 1} {
		rest, _ := back("default", all[k].Position, time.Time{})
		if got := requests(rest); !slices.Equal(got, want[k+1:]) {
			t.Errorf("before line %d: %d lines, want %d", k, len(got), len(want)-k-1)
		}
	}
	if since, _ := back("default", nats.JournalPosition{}, middle); !slices.Equal(requests(since), want[:15*60]) {
		t.Errorf("since the middle: %d lines, want %d", len(since), 15*60)
	}
	if beyond, _ := back("default", nats.JournalPosition{Sequence: 1 << 40}, time.Time{}); len(beyond) != len(want) {
		t.Errorf("before a place beyond the end: %d lines, want %d", len(beyond), len(want))
	}
	wanted = func(line []byte) bool { return bytes.Contains(line, []byte(`"7.`)) }
	some, bad := back("default", nats.JournalPosition{}, time.Time{})
	taken := 0
	for _, l := range some {
		if !l.Passed {
			taken++
		}
		if l.Passed != (l.Request == "") || l.Time.IsZero() {
			t.Fatalf("the line %+v", l)
		}
	}
	if taken != 60 || len(some) != len(want)+1 || bad != 0 {
		t.Errorf("%d lines are taken of %d, %d are bad; want 60 of %d and none", taken, len(some), bad, len(want)+1)
	}
	n := 0
	for l, err := range nats.ReadJournalLabels(ctx, conn, "default", time.Time{}) {
		if err != nil || l.Label != stream.Spam {
			t.Fatalf("label %+v, %v", l, err)
		}
		n++
	}
	if n != 30 {
		t.Errorf("%d labels, want 30", n)
	}
}

// Where old messages are short and new ones long, a step meets more bytes than it may hold. It
// lets the older ones go, and they are read in the next.
func TestJournalBackHoldsLittle(t *testing.T) {
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	ctx := patience(t)
	j := journal(t, conn, nats.JournalConfig{})
	for i := range 400 {
		if err := j.Append(ctx, fmt.Sprint("s", i), []stream.JournalEntry{entry("short")}); err != nil {
			t.Fatal(err)
		}
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	for range 30 { // no lines, as bad ones have no bound of their own
		if _, err := js.Publish(ctx, nats.JournalSubject("default"), bytes.Repeat([]byte("x"), 900<<10)); err != nil {
			t.Fatal(err)
		}
	}
	lines, bad, largest := 0, 0, uint64(0)
	var last nats.JournalPosition
	for l, err := range nats.ReadJournalBack(ctx, conn, "default", nats.JournalPosition{}, time.Time{}, nil) {
		var wrong *nats.MessageError
		switch {
		case errors.As(err, &wrong):
			bad++
			if largest > 0 && wrong.Sequence != largest-1 {
				t.Fatalf("message %d comes after %d", wrong.Sequence, largest)
			}
			largest = wrong.Sequence
		case err != nil:
			t.Fatal(err)
		default:
			if lines++; !l.Position.Before(last) && lines > 1 {
				t.Fatalf("%v comes after %v", l.Position, last)
			}
			last = l.Position
		}
	}
	if lines != 400 || bad != 30 {
		t.Errorf("%d lines and %d bad ones, want 400 and 30", lines, bad)
	}
}
