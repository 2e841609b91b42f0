package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/cmd/internal/source"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/embedded/leak"
	"hamlet/stream/kafka"
)

func TestMain(m *testing.M) { leak.Main(m) }

const topic = "hamlet.events.test"

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

func cluster(t *testing.T, partitions int) (kafka.Config, *kafka.Producer) {
	t.Helper()
	k, err := embedded.StartKafka(embedded.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	cfg := kafka.Config{Brokers: []string{k.Addr()}}
	if err := kafka.EnsureTopic(t.Context(), cfg, topic, partitions, 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	p, err := kafka.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return cfg, p
}

var errCrash = errors.New("crash")

// A dying publisher writes a number of records, then of its chunk what comes first in each
// partition, by chance, and fails: the topic looks as after a kill.
type dying struct {
	*kafka.Producer
	partitions, left int
	rng              *rand.Rand
}

func (d *dying) Publish(ctx context.Context, records ...kafka.Record) error {
	if d.left -= len(records); d.left >= 0 {
		return d.Producer.Publish(ctx, records...)
	}
	ended := map[int]bool{}
	records = slices.DeleteFunc(slices.Clone(records), func(r kafka.Record) bool {
		p := kafka.PartitionOf(r.Key, d.partitions)
		ended[p] = ended[p] || d.rng.IntN(8) == 0
		return ended[p]
	})
	if err := d.Producer.Publish(ctx, records...); err != nil {
		return err
	}
	return errCrash
}

// After crashes at any place, the topic has every event of the source once. In a partition
// they are in order.
func TestResumeAfterCrashes(t *testing.T) {
	for _, partitions := range []int{1, 4, 16} {
		t.Run(fmt.Sprintf("partitions=%d", partitions), func(t *testing.T) {
			cfg, producer := cluster(t, partitions)
			const n = 1000
			open := func() (Items, error) { return tenants(items(n, "e")), nil }
			rng := rand.New(rand.NewPCG(1, uint64(partitions)))
			for _, budget := range []int{130, 0, 0, 200, 1, 0, 70, 5000, 5000} {
				mark, err := FindEnd(t.Context(), cfg, topic, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				publisher := &dying{producer, partitions, budget, rng}
				stats, err := Source(t.Context(), Config{
					Publisher: publisher, Topic: topic, Resume: mark, Chunk: 64, Linger: time.Hour, Log: slog.New(slog.DiscardHandler),
				}, open)
				if budget == 5000 && err != nil || err != nil && !errors.Is(err, errCrash) {
					t.Fatal(err)
				}
				if budget == 5000 && stats.Rejected != n/10 {
					t.Errorf("rejected %d, want %d", stats.Rejected, n/10)
				}
			}
			seen := map[string]bool{}
			copies := 0
			first, end, err := kafka.Offsets(t.Context(), cfg, topic)
			if err != nil {
				t.Fatal(err)
			}
			for p := range first {
				last := -1
				for _, r := range read(t, cfg, p, int(end[p])) {
					e, err := stream.DecodeRecord(r.Headers, r.Value)
					if err != nil {
						t.Fatal(err)
					}
					if seen[e.ID] {
						copies++
						continue
					}
					seen[e.ID] = true
					ordinal, err := strconv.Atoi(e.ID[1:])
					if err != nil {
						t.Fatal(err)
					}
					if ordinal < last {
						t.Errorf("partition %d: event %d stands behind event %d", p, ordinal, last)
					}
					last = ordinal
				}
			}
			if len(seen) != n-n/10 {
				t.Errorf("the topic holds %d of %d events", len(seen), n-n/10)
			}
			if copies > 0 {
				t.Errorf("%d copies, want none", copies)
			}
		})
	}
}

// tenants gives events a hundred tenants, so that they are in all partitions.
func tenants(items Items) Items {
	return func(yield func(source.Item, error) bool) {
		for item, err := range items {
			item.Event.Tenant = fmt.Sprint("t", item.Ordinal%100)
			if !yield(item, err) {
				return
			}
		}
	}
}

// Where partitions were added, records stand where their keys do not belong: nothing of the
// last chunk is taken for sent.
func TestResumeWithMorePartitions(t *testing.T) {
	cfg, producer := cluster(t, 2)
	open := func() (Items, error) { return tenants(items(300, "e")), nil }
	log := slog.New(slog.DiscardHandler)
	run := func(publisher Publisher) (Stats, error) {
		end, err := FindEnd(t.Context(), cfg, topic, log)
		if err != nil {
			t.Fatal(err)
		}
		return Source(t.Context(), Config{Publisher: publisher, Topic: topic, Resume: end, Chunk: 100, Linger: time.Hour, Log: log}, open)
	}
	if _, err := run(&dying{producer, 2, 100, rand.New(rand.NewPCG(1, 1))}); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	transport := &kafkago.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers...), Transport: transport}
	if _, err := client.CreatePartitions(t.Context(), &kafkago.CreatePartitionsRequest{Topics: []kafkago.TopicPartitionsConfig{{Name: topic, Count: 3}}}); err != nil {
		t.Fatal(err)
	}
	again, err := kafka.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	stats, err := run(again)
	if err != nil || stats.Sent != 180 || stats.Skipped != 90 {
		t.Errorf("%+v, %v, want 180 sent", stats, err)
	}
}

// A prefix publisher dies in the middle of a chunk.
type prefix struct {
	*kafka.Producer
	left int
}

func (d *prefix) Publish(ctx context.Context, records ...kafka.Record) error {
	n := min(d.left, len(records))
	d.left -= n
	if err := d.Producer.Publish(ctx, records[:n]...); err != nil || n == len(records) {
		return err
	}
	return errCrash
}

// Another source on the same topic is sent from its beginning.
func TestAnotherSourceStartsAtItsBeginning(t *testing.T) {
	cfg, producer := cluster(t, 1)
	log := slog.New(slog.DiscardHandler)
	for i, name := range []string{"a", "b", "b"} {
		mark, err := FindEnd(t.Context(), cfg, topic, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		stats, err := Source(t.Context(), Config{Publisher: producer, Topic: topic, Resume: mark, Log: log},
			func() (Items, error) { return items(100, name), nil })
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{90, 90, 0}[i]; stats.Sent != want {
			t.Errorf("source %d %s: sent %d, want %d", i, name, stats.Sent, want)
		}
	}
}

// read returns a partition's records up to end.
func read(t *testing.T, cfg kafka.Config, partition, end int) []kafka.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	reader := kafkago.NewReader(kafkago.ReaderConfig{
		Brokers: cfg.Brokers, Topic: topic, Partition: partition, MaxWait: 50 * time.Millisecond,
	})
	defer reader.Close()
	var out []kafka.Record
	for len(out) < end {
		m, err := reader.FetchMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		r := kafka.Record{Value: m.Value}
		for _, h := range m.Headers {
			r.Headers = append(r.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		out = append(out, r)
	}
	return out
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

// A standing reaches every partition, between the events before and behind it, and after a
// crash the source goes on behind it.
func TestStandingsReachAllPartitions(t *testing.T) {
	for _, partitions := range []int{1, 3} {
		cfg, producer := cluster(t, partitions)
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
		run := func(publisher Publisher) (Stats, error) {
			end, err := FindEnd(t.Context(), cfg, topic, log)
			if err != nil {
				t.Fatal(err)
			}
			return Source(t.Context(), Config{Publisher: publisher, ToAll: producer, Topic: topic, Resume: end, Chunk: 1000, Linger: time.Hour, Log: log}, open)
		}
		if _, err := run(&prefix{producer, 91}); !errors.Is(err, errCrash) { // 91 events stand before the standing
			t.Fatal(err)
		}
		stats, err := run(producer)
		if err != nil || partitions == 1 && stats.Skipped != 92 {
			t.Fatalf("%+v, %v", stats, err)
		}
		_, ends, err := kafka.Offsets(t.Context(), cfg, topic)
		if err != nil {
			t.Fatal(err)
		}
		for p, end := range ends {
			standings := 0
			for _, r := range read(t, cfg, p, int(end)) {
				if stream.IsStanding(r.Headers) {
					standings++
					continue
				}
				e, err := stream.DecodeRecord(r.Headers, r.Value)
				if err != nil {
					t.Fatal(err)
				}
				if n, _ := strconv.Atoi(e.ID[1:]); partitions == 1 && (n > 101) != (standings > 0) {
					t.Errorf("event %d comes behind %d standings", n, standings)
				}
			}
			if standings < 1 || partitions == 1 && standings > 1 {
				t.Errorf("partition %d of %d has %d standings", p, partitions, standings)
			}
		}
	}
}

// Without a way to all partitions a standing is rejected, and the events go on.
func TestStandingWithoutBroadcast(t *testing.T) {
	cfg, producer := cluster(t, 1)
	var rejected []string
	stats, err := Source(t.Context(), Config{Publisher: producer, Topic: topic, Log: slog.New(slog.DiscardHandler),
		Rejected: func(err error) { rejected = append(rejected, err.Error()) }}, func() (Items, error) {
		return func(yield func(source.Item, error) bool) {
			_ = yield(source.Item{Standing: &stream.Standing{ID: "s", Source: "s"}}, nil)
		}, nil
	})
	if err != nil || stats.Sent != 0 || len(rejected) != 1 {
		t.Errorf("%+v, %v, rejected %q", stats, err, rejected)
	}
	if _, end, err := kafka.Offsets(t.Context(), cfg, topic); err != nil || end[0] != 0 {
		t.Errorf("the topic ends at %v, %v", end, err)
	}
}
