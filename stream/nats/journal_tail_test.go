package nats_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hamlet/stream"
	"hamlet/stream/nats"
)

// A tail reads the newest part of the past and what comes, and goes on where it ended. What
// its bound leaves out, it says.
func TestJournalTail(t *testing.T) {
	t.Parallel()
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	ctx := patience(t)
	j, other, labels := journal(t, conn, nats.JournalConfig{}), journal(t, conn, nats.JournalConfig{Model: "billing"}), journal(t, conn, nats.JournalConfig{Labels: true})
	var got []string
	var cuts, behinds []bool
	stop := func() {}
	tail := nats.JournalTail{Model: "default", Since: time.Hour, Bytes: 1 << 20,
		Begin: func(cut, behind bool) { cuts, behinds = append(cuts, cut), append(behinds, behind) },
		Take: func(b nats.JournalBatch) {
			n := 0
			b.Each(0, 1, func(e *stream.JournalEntry, err error) {
				n++
				word := e.Request
				if b.Labels {
					word = e.Label.String()
				}
				if err != nil {
					word = "bad"
				}
				got = append(got, word)
			})
			if n != b.Len() {
				t.Errorf("%d of %d lines", n, b.Len())
			}
			if !b.Behind {
				stop()
			}
		}}
	read := func() string {
		t.Helper()
		running, cancel := context.WithCancel(ctx)
		defer cancel()
		got, stop = nil, cancel
		if err := tail.Run(running, conn); err != nil {
			t.Fatal(err)
		}
		return strings.Join(got, " ")
	}
	if err := tail.Run(ctx, conn); !errors.Is(err, nats.ErrNoDecisions) {
		t.Fatalf("without a stream: %v", err)
	}
	write := func(j *nats.Journal, id string, entries ...stream.JournalEntry) {
		t.Helper()
		if err := j.Append(ctx, id, entries); err != nil {
			t.Fatal(err)
		}
	}
	write(j, "1", entry("a"), entry("b"))
	write(labels, "2", stream.JournalEntry{Time: time.Now().UTC(), ID: "1", Label: stream.Spam, Model: "default"})
	write(j, "3", entry("c"))
	write(other, "4", entry("x"))
	if words := read(); words != "a b spam c" {
		t.Errorf("the past: %s", words)
	}
	write(j, "5", entry("d"))
	if err := conn.Publish(nats.JournalSubject("default"), []byte("hello\nagain")); err != nil {
		t.Fatal(err)
	}
	write(j, "6", entry("e"))
	if words := read(); words != "d bad bad e" {
		t.Errorf("what came meanwhile: %s", words)
	}
	if fmt.Sprint(cuts, behinds) != "[false false] [true true]" {
		t.Errorf("cut %v, behind %v", cuts, behinds)
	}
	for i := range 20 {
		write(j, fmt.Sprint("more", i), entry(fmt.Sprint(i)))
	}
	tail.Bytes = 900 // a few messages
	if words := read(); !cuts[2] || !strings.HasSuffix(words, "18 19") || len(got) > 8 {
		t.Errorf("with a bound: %s, cut %v", words, cuts[2])
	}
}
