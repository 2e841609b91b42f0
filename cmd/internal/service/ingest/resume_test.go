package ingest

import (
	"bytes"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/logtest"
)

// send ingests a source from the topic's end on, and returns its Stats and log.
func send(t *testing.T, topic *logtest.Memory, n int, prefix string) (Stats, string) {
	t.Helper()
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	end, err := FindEnd(t.Context(), follow.Config{Log: topic}, log)
	if err != nil {
		t.Fatal(err)
	}
	open := func() (Items, error) { return items(n, prefix), nil }
	stats, err := Send(t.Context(), Config{Events: topic, Resume: end, Log: log, Chunk: 64}, &Input{Items: open})
	if err != nil {
		t.Fatal(err)
	}
	return stats, logged.String()
}

// Ordinals of different sources cannot be compared: a longer, older source does not hide the
// newest one.
func TestAnOlderLongerSourceHidesNoNewerOne(t *testing.T) {
	topic := new(logtest.Memory)
	if stats, _ := send(t, topic, 1000, "old"); stats.Sent != 900 {
		t.Fatalf("the old source: sent %d, want 900", stats.Sent)
	}
	stats, logged := send(t, topic, 100, "new")
	if stats.Sent != 90 || !strings.Contains(logged, "does not end in this source") {
		t.Fatalf("the new source: sent %d, want 90; it logged %s", stats.Sent, logged)
	}
	stats, logged = send(t, topic, 100, "new")
	if stats.Sent != 0 || stats.Skipped != 90 || !strings.Contains(logged, "going on behind it") {
		t.Errorf("the new source again: sent %d, skipped %d, want none of 90; it logged %s", stats.Sent, stats.Skipped, logged)
	}
}

// Any number of events over HTTP may stand behind the last one from a source.
func TestResumeBehindManyEventsOverHTTP(t *testing.T) {
	topic := new(logtest.Memory)
	post := func() {
		t.Helper()
		var records []stream.Record
		for item, err := range items(2*searchQuietly, "posted") {
			var rejected *source.Rejection
			if errors.As(err, &rejected) {
				continue
			}
			r, err := Record(&item.Event)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, r)
		}
		if err := topic.Append(t.Context(), records...); err != nil {
			t.Fatal(err)
		}
	}
	post()
	stats, logged := send(t, topic, 200, "e")
	if stats.Sent != 180 || !strings.Contains(logged, "holds no event of a source") {
		t.Fatalf("the source: sent %d, want 180; it logged %s", stats.Sent, logged)
	}
	post()
	stats, logged = send(t, topic, 300, "e")
	if stats.Sent != 90 || stats.Skipped != 180 || !strings.Contains(logged, "going on behind it") {
		t.Errorf("the source and 100 more: sent %d, skipped %d, want 90 and 180; it logged %s", stats.Sent, stats.Skipped, logged)
	}
}

// The search for a source's last event logs its progress and gives up.
func TestSearchIsBounded(t *testing.T) {
	topic := new(logtest.Memory)
	if stats, _ := send(t, topic, 10, "e"); stats.Sent != 9 {
		t.Fatalf("sent %d, want 9", stats.Sent)
	}
	const posted = 300
	for i := range posted {
		if err := topic.Append(t.Context(), stream.Record{Key: []byte("k"), Value: []byte(strconv.Itoa(i))}); err != nil {
			t.Fatal(err)
		}
	}
	for most, found := range map[int64]bool{posted: false, posted + 1: true, posted + 9: true} {
		var logged bytes.Buffer
		s := search{quietly: 10, limit: most, logEvery: time.Nanosecond, log: slog.New(slog.NewTextHandler(&logged, nil))}
		end, err := s.end(t.Context(), follow.Config{Log: topic})
		if err != nil {
			t.Fatal(err)
		}
		if (end.Mark != nil) != found {
			t.Errorf("among %d: %+v, found %v", most, end.Mark, found)
		}
		if gaveUp := strings.Contains(logged.String(), "older ones are not searched"); gaveUp == found ||
			!strings.Contains(logged.String(), "still looking") {
			t.Errorf("among %d: it logged %s", most, logged.String())
		}
	}
}
