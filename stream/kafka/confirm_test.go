package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// verify tells another log from the one that was absorbed, and from one that lost old
// records to retention.
func TestVerify(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close) // after the parallel cases
	cfg, err := Config{Brokers: fake.ListenAddrs()}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	producer, err := NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	const end = 20
	var log []Record
	for i := range end {
		log = append(log, Record{Topic: "t", Offset: int64(i), Key: []byte("k"), Value: fmt.Append(nil, i), Headers: []Header{{Key: "h", Value: []byte("1")}}})
	}
	if err := errors.Join(producer.Publish(t.Context(), log...), producer.Close()); err != nil {
		t.Fatal(err)
	}
	key, value, headers := log[9], log[9], log[9]
	key.Key, value.Value, headers.Headers = []byte("other"), []byte("other"), []Header{{Key: "h", Value: []byte("2")}}
	for _, c := range []struct {
		name            string
		confirmed, last *Record
		next            int64
		first, end      int64 // seen before
		want            error
		says            string
	}{
		{"nothing absorbed", nil, nil, 0, 0, 0, nil, ""},
		{"the same", &log[3], &log[9], 10, 0, end, nil, ""},
		{"at the end", &log[3], &log[19], end, 0, end, nil, ""},
		{"another key", &log[3], &key, 10, 0, 0, ErrReplaced, "offset 9"},
		{"another value", &log[3], &value, 10, 0, 0, ErrReplaced, "offset 9"},
		{"another header", &log[3], &headers, 10, 0, 0, ErrReplaced, "offset 9"},
		{"the last record is of the other log already", &value, &log[15], 16, 0, 0, ErrReplaced, "offset 9"},
		{"the position is beyond the end", &log[3], &log[9], end + 1, 0, 0, ErrBehind, "ends at 20"},
		{"the end moved back", &log[3], &log[9], 10, 0, end + 5, ErrReplaced, "from 25 to 20"},
		{"the beginning moved back", &log[3], &log[9], 10, 2, 0, ErrReplaced, "from 2 to 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client := cfg.client("t")
			defer closeIdle(client)
			r := &partitionReader{next: c.next, member: &member{cfg: &ConsumerConfig{Config: cfg, Topic: "t"}, client: client}}
			if r.known = c.last != nil; r.known {
				r.confirmed, r.last = *c.confirmed, *c.last
			}
			r.first, r.end = c.first, c.end
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := r.verify(ctx)
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %v with %q", err, c.want, c.says)
			}
			if err == nil && r.known && r.confirmed.Offset != c.last.Offset {
				t.Errorf("confirmed is at offset %d, want %d", r.confirmed.Offset, c.last.Offset)
			}
		})
	}
}

// A handler that asks before it saves gets an answer in bounded time, also if no broker
// is there.
func TestConfirmWithoutABroker(t *testing.T) {
	t.Parallel()
	cfg := Config{Brokers: []string{"127.0.0.1:1"}, ClientID: "c", Log: slog.New(slog.DiscardHandler)}
	client := cfg.client("t")
	defer closeIdle(client)
	r := &partitionReader{member: &member{cfg: &ConsumerConfig{Config: cfg, Topic: "t"}, client: client}}
	if err := r.confirm(t.Context()); err != nil {
		t.Errorf("nothing was handed over: got %v", err)
	}
	r.taken([]Record{{Offset: 4}, {Offset: 5}})
	if err := r.confirm(t.Context()); !errors.Is(err, ErrUnconfirmed) || r.doubts.Load() != 1 || r.confirmed.Offset != 4 {
		t.Errorf("got %v, %d doubts, confirmed up to %d", err, r.doubts.Load(), r.confirmed.Offset)
	}
}

// Nor does it wait for the reader, which may be asking that broker.
func TestConfirmWhileTheReaderAsks(t *testing.T) {
	t.Parallel()
	r := &partitionReader{}
	r.taken([]Record{{Offset: 4}, {Offset: 5}})
	r.confirming.Lock()
	defer r.confirming.Unlock()
	answer := make(chan error, 1)
	go func() { answer <- r.confirm(t.Context()) }()
	select {
	case err := <-answer:
		if !errors.Is(err, ErrUnconfirmed) || r.doubts.Load() != 0 {
			t.Errorf("got %v, %d doubts", err, r.doubts.Load())
		}
	case <-time.After(20 * time.Second):
		t.Error("confirm waits for the reader")
	}
}

// A broker that answers, but needs longer than confirmTimeout for a fetch, as for a large
// batch over a slow connection, does not keep a handler from saving for ever.
func TestConfirmOverASlowConnection(t *testing.T) {
	t.Parallel()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	cfg, err := Config{Brokers: fake.ListenAddrs()}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	producer, err := NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	log := []Record{{Topic: "t", Value: []byte("0")}, {Topic: "t", Value: []byte("1"), Offset: 1}}
	if err := errors.Join(producer.Publish(t.Context(), log...), producer.Close()); err != nil {
		t.Fatal(err)
	}
	fake.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		fake.SleepControl(func() { <-time.After(confirmTimeout * 5 / 4) })
		return nil, nil, false
	})
	client := cfg.client("t")
	defer closeIdle(client)
	r := &partitionReader{member: &member{cfg: &ConsumerConfig{Config: cfg, Topic: "t"}, client: client}}
	r.taken(log)
	for deadline := time.Now().Add(30 * time.Second); ; {
		err := r.confirm(t.Context())
		if err == nil {
			break
		}
		if !errors.Is(err, ErrUnconfirmed) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if r.confirmed.Offset != 1 {
		t.Errorf("confirmed up to offset %d, want 1", r.confirmed.Offset)
	}
}
