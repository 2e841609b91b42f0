package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/logtest"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// items yields n events of several tenants, every tenth item a rejection.
func items(n int, prefix string) Items {
	return func(yield func(source.Item, error) bool) {
		for i := range n {
			item := source.Item{Ordinal: i, Truth: stream.Spam, Event: stream.Event{
				ID: fmt.Sprint(prefix, i), Source: "s", Tenant: fmt.Sprint("t", i%7), Label: stream.Spam,
				Body: stream.Body{Kind: stream.Text, Text: "x"},
			}}
			var err error
			if i%10 == 3 {
				err = &source.Rejection{Ordinal: i, Place: strconv.Itoa(i), Err: errors.New("bad")}
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

var errCrash = errors.New("crash")

// A dying appender writes a number of records and dies, within a chunk.
type dying struct {
	stream.Appender
	left int
}

func (d *dying) Append(ctx context.Context, records ...stream.Record) error {
	n := min(d.left, len(records))
	d.left -= n
	if err := d.Appender.Append(ctx, records[:n]...); err != nil || n == len(records) {
		return err
	}
	return errCrash
}

// After crashes at any place, the topic has every event of the source once, in order.
func TestResumeAfterCrashes(t *testing.T) {
	topic := new(logtest.Memory)
	const n = 1000
	open := func() (Items, error) { return items(n, "e"), nil }
	for _, budget := range []int{130, 0, 0, 200, 1, 0, 70, 5000, 5000} {
		end, err := FindEnd(t.Context(), follow.Config{Log: topic}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		stats, err := Send(t.Context(), Config{
			Events: &dying{topic, budget}, Resume: end, Chunk: 64, Linger: time.Hour, Log: slog.New(slog.DiscardHandler),
		}, &Input{Items: open})
		if budget == 5000 && err != nil || err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		if budget == 5000 && stats.Rejected != n/10 {
			t.Errorf("rejected %d, want %d", stats.Rejected, n/10)
		}
	}
	records, last := read(t, topic), -1
	if len(records) != n-n/10 {
		t.Fatalf("the topic has %d records, want %d", len(records), n-n/10)
	}
	for _, r := range records {
		e, err := stream.DecodeRecord(r.Headers, r.Value)
		if err != nil {
			t.Fatal(err)
		}
		ordinal, err := strconv.Atoi(e.ID[1:])
		if err != nil {
			t.Fatal(err)
		}
		if ordinal <= last {
			t.Errorf("event %d stands behind event %d", ordinal, last)
		}
		last = ordinal
	}
}

// Another source on the same topic is sent from its beginning.
func TestAnotherSourceStartsAtItsBeginning(t *testing.T) {
	topic := new(logtest.Memory)
	log := slog.New(slog.DiscardHandler)
	for i, name := range []string{"a", "b", "b"} {
		mark, err := FindEnd(t.Context(), follow.Config{Log: topic}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		stats, err := Send(t.Context(), Config{Events: topic, Resume: mark, Log: log},
			&Input{Items: func() (Items, error) { return items(100, name), nil }})
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{90, 90, 0}[i]; stats.Sent != want {
			t.Errorf("source %d %s: sent %d, want %d", i, name, stats.Sent, want)
		}
	}
}

// read returns all records of a log.
func read(t *testing.T, log *logtest.Memory) []stream.Record {
	t.Helper()
	records, _, err := log.Read(t.Context(), 0, stream.Limit{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// All that is said of a message has one key, which shows no address.
func TestKeyIsTheMessages(t *testing.T) {
	event := func(action stream.Action, of, mail string) *stream.Event {
		return &stream.Event{Tenant: "example.org", Action: action, Of: of, Body: stream.Body{Kind: stream.Mail, Mail: []byte(mail)}}
	}
	const text = "Message-ID: <1@x>\r\nFrom: x@y\r\nTo: bob@example.org\r\nSubject: 1\r\n\r\nhello\r\n"
	const altered = "Subject: [SPAM] 1\n\nhello, and a footer"
	learnt := Key(event(stream.Learn, "", text))
	identity, found := strings.CutPrefix(string(learnt), "example.org/")
	if !found || len(identity) != 32 {
		t.Fatalf("key %q", learnt)
	}
	for name, e := range map[string]*stream.Event{
		"a withdrawal":                  event(stream.Unlearn, "an id", text),
		"a copy with more fields":       event(stream.Learn, "", "Received: by here\r\nDelivered-To: eve@example.org\r\n"+text),
		"a correction":                  event(stream.Correct, "", text),
		"a correction of that identity": event(stream.Correct, identity, altered),
		"an assumed answer":             event(stream.Assume, identity, altered),
		"a withdrawal of an id that looks like an identity": event(stream.Unlearn, strings.Repeat("a", 32), text),
		"a new label of that id":                            event(stream.Relearn, strings.Repeat("a", 32), text),
	} {
		if got := Key(e); string(got) != string(learnt) {
			t.Errorf("%s has the key %q, the message %q", name, got, learnt)
		}
	}
	if other := Key(event(stream.Learn, "", strings.Replace(text, "hello", "bye", 1))); string(other) == string(learnt) {
		t.Errorf("two messages have the key %q", other)
	}
	texts := &stream.Event{Tenant: "example.org", Body: stream.Body{Kind: stream.Text, Text: "hello"}}
	if got := Key(texts); string(got) != "example.org" {
		t.Errorf("the key of a text is %q, want the tenant", got)
	}
}

// A standing is between the events before and behind it, and after a crash the source goes on
// behind it.
func TestStandingsKeepTheirPlace(t *testing.T) {
	topic := new(logtest.Memory)
	open := func() (Items, error) {
		return func(yield func(source.Item, error) bool) {
			for item, err := range items(200, "e") {
				if item.Ordinal == 101 {
					item = source.Item{Ordinal: 101, Standing: &stream.Standing{ID: "s", Source: "s", Role: stream.Muted}}
				}
				if !yield(item, err) {
					return
				}
			}
		}, nil
	}
	log := slog.New(slog.DiscardHandler)
	run := func(events stream.Appender) (Stats, error) {
		end, err := FindEnd(t.Context(), follow.Config{Log: topic}, log)
		if err != nil {
			t.Fatal(err)
		}
		return Send(t.Context(), Config{Events: events, Resume: end, Chunk: 1000, Linger: time.Hour, Log: log}, &Input{Items: open})
	}
	if _, err := run(&dying{topic, 92}); !errors.Is(err, errCrash) { // 91 events stand before the standing
		t.Fatal(err)
	}
	stats, err := run(topic)
	if err != nil || stats.Skipped != 92 || stats.Sent != 180-92 {
		t.Fatalf("%+v, %v", stats, err)
	}
	if n := len(read(t, topic)); n != 180 {
		t.Errorf("%d records, want 180", n)
	}
	for i, r := range read(t, topic) {
		if stream.IsStanding(r.Headers) != (i == 91) {
			t.Errorf("record %d is a standing: %v", i, i != 91)
		}
	}
}
