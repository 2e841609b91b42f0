package kafka_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream/kafka"
)

// A range is read in order, each record once, and ends with the caller's error.
func TestReadRange(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 2)
	p := newProducer(t, cfg)
	const n = 700
	for first := 0; first < n; first += 100 {
		if err := p.PublishTo(t.Context(), name, 1, numbered(name, first, 100, 7)...); err != nil {
			t.Fatal(err)
		}
	}
	ctx := within(t, 30*time.Second)
	read := func(from, to int64, each func(*kafka.Record) error) (got []int64, err error) {
		err = kafka.ReadRange(ctx, cfg, name, 1, from, to, func(r *kafka.Record) error {
			if r.Topic != name || r.Partition != 1 || string(r.Value) != strconv.FormatInt(r.Offset, 10) {
				return fmt.Errorf("record %+v", r)
			}
			got = append(got, r.Offset)
			return each(r)
		})
		return got, err
	}
	for _, c := range [][2]int64{{0, n}, {250, 251}, {99, 401}, {5, 5}} {
		got, err := read(c[0], c[1], func(*kafka.Record) error { return nil })
		if err != nil || int64(len(got)) != c[1]-c[0] || !slices.IsSorted(got) || len(got) > 0 && got[0] != c[0] {
			t.Errorf("%v: %d records, %v", c, len(got), err)
		}
	}
	enough := errors.New("enough")
	if got, err := read(10, n, func(r *kafka.Record) error {
		if r.Offset == 300 {
			return enough
		}
		return nil
	}); !errors.Is(err, enough) || len(got) != 291 {
		t.Errorf("%d records, %v", len(got), err)
	}
	if err := p.PublishTo(ctx, name, 2, kafka.Record{Value: []byte("x")}); err == nil {
		t.Error("a partition that is not there was written to")
	}
}

// Records that retention took are missing for good.
func TestReadRangeOfWhatIsGone(t *testing.T) {
	cfg, name := withoutBeginning(t)
	nothing := func(*kafka.Record) error { return nil }
	if err := kafka.ReadRange(within(t, 30*time.Second), cfg, name, 0, 20, 110, nothing); !errors.Is(err, kafkago.OffsetOutOfRange) {
		t.Errorf("offsets from 20 of a log that begins at 100: %v", err)
	}
	if err := kafka.ReadRange(within(t, 30*time.Second), cfg, name, 0, 100, 110, nothing); err != nil {
		t.Error(err)
	}
}

// The offset of a time is that of the first record written then or later.
func TestOffsetsSince(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 2)
	first := time.Now().Add(-2 * time.Hour).UTC().Truncate(time.Second) // Kafka takes no record of the future
	p := newProducer(t, cfg)
	for i := range 5 {
		r := kafka.Record{Value: []byte("x"), Time: first.Add(time.Duration(i) * time.Minute)}
		if err := p.PublishTo(t.Context(), name, 1, r); err != nil {
			t.Fatal(err)
		}
	}
	for after, want := range map[time.Duration]int64{-time.Hour: 0, 0: 0, time.Second: 1, 3 * time.Minute: 3, time.Hour: 5} {
		got, err := kafka.OffsetsSince(within(t, 30*time.Second), cfg, name, first.Add(after))
		if err != nil || len(got) != 2 || got[1] != want || got[0] != 0 {
			t.Errorf("%v after the first: %v (%v), want %d in partition 1", after, got, err, want)
		}
	}
}
