package kafka_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hamlet/stream/kafka"
)

// A topic that was deleted, created again and filled beyond the position is another
// log, although it has the same offsets.
func TestReplacedTopic(t *testing.T) {
	_, cfg := fakeCluster(t)
	const name = "t"
	ensure(t, cfg, name, 1)
	p := newProducer(t, cfg)
	if err := p.Publish(t.Context(), numbered(name, 0, 100, 1)...); err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	consumer := kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}
	stop := start(t, consumer, k.open("a"))
	k.until(t, "the first log", func() bool { return k.count == 100 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	remove(t, cfg, name)
	ensure(t, cfg, name, 1)
	if err := p.Publish(within(t, 30*time.Second), numbered(name, 1000, 300, 1)...); err != nil {
		t.Fatal(err)
	}
	c, err := kafka.NewConsumer(consumer)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Run(within(t, 30*time.Second), k.open("b"))
	if !errors.Is(err, kafka.ErrReplaced) {
		t.Fatalf("Run = %v, want ErrReplaced", err)
	}
	for _, want := range []string{"topic t", "partition 0", "below 100", "offset 99", "created again", "empty state"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if k.count != 100 || !slices.Contains(k.log, "b close 0") {
		t.Errorf("%d records were handed over, want those of the first log alone; log %v", k.count, k.log)
	}
}

func remove(t *testing.T, cfg kafka.Config, name string) {
	t.Helper()
	client := &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers...), Transport: &kafkago.Transport{DialTimeout: 30 * time.Second, SASL: cfg.SASL}}
	defer client.Transport.(*kafkago.Transport).CloseIdleConnections()
	res, err := client.DeleteTopics(t.Context(), &kafkago.DeleteTopicsRequest{Topics: []string{name}})
	if err != nil || res.Errors[name] != nil {
		t.Fatal(err, res.Errors)
	}
}

// Follows gets the record before the position as Handle got it, once for each
// assignment, with any content and anywhere in its batch.
func TestFollowsTheSameLog(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	large := make([]byte, 900_000)
	rand.NewChaCha8([32]byte{1}).Read(large)
	records := []kafka.Record{
		{Topic: name, Key: []byte("k"), Value: []byte("first of a batch")},
		{Topic: name},
		{Topic: name, Key: []byte{}, Value: []byte{}, Headers: []kafka.Header{{Key: "h"}, {Key: "h", Value: []byte("2")}, {Key: ""}}},
		{Topic: name, Key: []byte("k"), Value: large, Headers: []kafka.Header{{Key: "g", Value: large[:70_000]}}},
		{Topic: name, Value: []byte("last")},
	}
	p := newProducer(t, cfg)
	if err := p.Publish(t.Context(), slices.Concat(records, records[:2])...); err != nil {
		t.Fatal(err)
	}
	end := len(records) + 2
	k := newKeeper()
	consumer := kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}
	stop := start(t, consumer, k.open("a"))
	k.until(t, "all", func() bool { return k.count == end })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if len(k.asked[0]) != 0 {
		t.Errorf("asked about %d records before the beginning", len(k.asked[0]))
	}
	log := k.taken[0]
	for next := 1; next <= end; next++ {
		k.change(func() { k.next[0], k.count = int64(next), 0; k.asked[0] = nil })
		stop := start(t, consumer, k.open("b"))
		k.until(t, "the rest", func() bool { return len(k.asked[0]) > 0 && k.count == end-next })
		if err := stop(); err != nil {
			t.Fatalf("from %d: %v", next, err)
		}
		got := k.asked[0]
		if len(got) != 1 || got[0].Offset != int64(next-1) || got[0].Partition != 0 || got[0].Topic != name || !sameContent(&got[0], &log[next-1]) {
			t.Errorf("from %d: asked about %d records, want once about the one before, as it was read", next, len(got))
		}
	}
}

// A consumer with a position starts although the first broker that it names is down.
func TestFollowsWithTheFirstBrokerDown(t *testing.T) {
	_, cfg := fakeCluster(t)
	const name = "first-down"
	ensure(t, cfg, name, 1)
	if err := newProducer(t, cfg).Publish(t.Context(), numbered(name, 0, 10, 1)...); err != nil {
		t.Fatal(err)
	}
	cfg.Brokers = append([]string{"127.0.0.1:1"}, cfg.Brokers...)
	k := newKeeper()
	k.next[0] = 5
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}, k.open("a"))
	k.until(t, "the rest", func() bool { return k.count == 5 && len(k.asked[0]) == 1 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	last, ok, err := kafka.LastRecord(t.Context(), cfg, name, 0, 100, nil)
	if err != nil || !ok || last.Offset != 9 {
		t.Errorf("the last record is %d (%v, %v), want 9", last.Offset, ok, err)
	}
}

// A record that retention deleted cannot be compared, so the consumer goes on.
func TestFollowsAfterRetention(t *testing.T) {
	cfg, name := withoutBeginning(t)
	k := newKeeper()
	k.next[0] = 100
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}, k.open("a"))
	k.until(t, "what is left", func() bool { return k.count == 10 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if len(k.asked[0]) != 0 {
		t.Errorf("asked about %v", k.asked[0])
	}
}

// The same holds for a record that compaction removed.
func TestFollowsAfterCompaction(t *testing.T) {
	fake, cfg := fakeCluster(t)
	const name = "compacted"
	compacted(t, cfg, name)
	p := newProducer(t, cfg)
	for i := 0; i < 500; i += 10 {
		if err := p.Publish(t.Context(), numbered(name, i, 10, 7)...); err != nil {
			t.Fatal(err)
		}
	}
	fake.Compact()
	k := newKeeper()
	// kfake's compaction moves the log's beginning; Kafka's does not.
	consumer := kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name, AcceptLostBeginning: true}
	ended := func() bool {
		r := k.taken[0]
		return len(r) > 0 && r[len(r)-1].Offset == 499
	}
	stop := start(t, consumer, k.open("a"))
	k.until(t, "the end", ended)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	first, _, err := kafka.Offsets(within(t, 30*time.Second), cfg, name)
	next := k.taken[0][0].Offset
	if err != nil || first[0] >= next {
		t.Fatalf("the log begins at %d, its first record is at %d: nothing was compacted there, so nothing is tested; %v", first[0], next, err)
	}
	k.change(func() { k.next[0], k.taken[0] = next, nil })
	stop = start(t, consumer, k.open("b"))
	k.until(t, "the end again", ended)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if len(k.asked[0]) != 0 || k.taken[0][0].Offset != next {
		t.Errorf("asked about %v, went on at %d, want nothing and %d", k.asked[0], k.taken[0][0].Offset, next)
	}
}

// The request is repeated after a closed connection or a passing out-of-range error.
func TestFollowsWhenTheBrokerIsBackAgain(t *testing.T) {
	fake, cfg := fakeCluster(t)
	const name = "t"
	ensure(t, cfg, name, 1)
	if err := newProducer(t, cfg).Publish(t.Context(), numbered(name, 0, 100, 1)...); err != nil {
		t.Fatal(err)
	}
	var fetches atomic.Int64
	fake.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		fetch := request.(*kmsg.FetchRequest)
		switch fetches.Add(1) {
		case 1, 2:
			return nil, errors.New("hang up"), true
		case 3:
			response := fetch.ResponseKind().(*kmsg.FetchResponse)
			answered := kmsg.NewFetchResponseTopic()
			answered.Topic = name
			partition := kmsg.NewFetchResponseTopicPartition()
			partition.ErrorCode = int16(kafkago.OffsetOutOfRange)
			partition.RecordBatches = []byte{}
			answered.Partitions = append(answered.Partitions, partition)
			response.Topics = append(response.Topics, answered)
			return response, nil, true
		}
		return nil, nil, false
	})
	k := newKeeper()
	k.next[0] = 60
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}, k.open("a"))
	k.until(t, "the rest", func() bool { return k.count == 40 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if len(k.asked[0]) != 1 || k.asked[0][0].Offset != 59 {
		t.Errorf("asked about %v, want the record at 59", k.asked[0])
	}
}
