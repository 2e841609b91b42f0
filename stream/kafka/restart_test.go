package kafka_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"hamlet/stream/embedded"
	"hamlet/stream/embedded/loopback"
	"hamlet/stream/kafka"
)

// The broker restarts three times on its port while a producer and a consumer run.
// Acknowledged records are in the log, in order, and are read.
func TestBrokerRestarts(t *testing.T) {
	dir := t.TempDir()
	addr := loopback.Hold(t)
	broker, err := embedded.StartKafka(embedded.KafkaOptions{Dir: dir, Addr: addr, Topics: []string{"t"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { broker.Close() }()
	cfg := kafka.Config{Brokers: []string{addr}, Log: testLog(t)}
	p := newProducer(t, cfg)
	k := newKeeper()
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: "t", Group: "g"}, k.open("a"))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	acked := make([]int, 4) // records acknowledged by each writer
	for w := range acked {
		wg.Go(func() {
			for ctx.Err() == nil {
				var records []kafka.Record
				for i := range 5 {
					records = append(records, kafka.Record{Topic: "t", Key: []byte{byte('a' + w)}, Value: []byte(strconv.Itoa(acked[w] + i))})
				}
				if err := p.Publish(t.Context(), records...); err != nil {
					t.Error(err)
					return
				}
				acked[w] += 5
			}
		})
	}
	more := func() { // waits until records flow again
		t.Helper()
		var from int
		k.change(func() { from = k.count })
		began := time.Now()
		k.until(t, "records to flow", func() bool { return k.count > from+100 })
		t.Logf("100 more records after %v", time.Since(began))
	}
	more()
	for range 3 {
		if err := broker.Close(); err != nil {
			t.Fatal(err)
		}
		if broker, err = embedded.StartKafka(embedded.KafkaOptions{Dir: dir, Addr: addr}); err != nil {
			t.Fatal(err)
		}
		more()
	}
	cancel()
	wg.Wait()
	_, end, err := kafka.Offsets(within(t, 30*time.Second), cfg, "t")
	if err != nil {
		t.Fatal(err)
	}
	k.until(t, "the end", func() bool { return int64(len(k.taken[0])) >= end[0] })
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	next := map[string]int{} // by key: the first value not yet seen
	twice := 0
	for i, r := range k.taken[0] {
		if r.Offset != int64(i) {
			t.Fatalf("offset %d at place %d", r.Offset, i)
		}
		v, _ := strconv.Atoi(string(r.Value))
		switch key := string(r.Key); {
		case v == next[key]:
			next[key]++
		case v < next[key]:
			twice++ // published again: its acknowledgement was lost
		default:
			t.Fatalf("key %s: value %d before %d", key, v, next[key])
		}
	}
	for w, n := range acked {
		if got := next[string(rune('a'+w))]; got < n {
			t.Errorf("writer %d: %d records acknowledged, %d in the log", w, n, got)
		}
	}
	t.Logf("%d records, %d of them twice", len(k.taken[0]), twice)
}

// A broker that lost all records ends Run with ErrBehind.
func TestBrokerComesBackEmpty(t *testing.T) {
	t.Parallel()
	options := embedded.KafkaOptions{Addr: loopback.Hold(t), Topics: []string{"t"}}
	broker, err := embedded.StartKafka(options)
	if err != nil {
		t.Fatal(err)
	}
	cfg := kafka.Config{Brokers: []string{broker.Addr()}, Log: testLog(t)}
	p := newProducer(t, cfg)
	k := newKeeper()
	ended := make(chan error)
	c, err := kafka.NewConsumer(kafka.ConsumerConfig{Config: cfg, Topic: "t", Group: "g"})
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- c.Run(within(t, 30*time.Second), k.open("a")) }()
	if err := p.Publish(t.Context(), numbered("t", 0, 100, 1)...); err != nil {
		t.Fatal(err)
	}
	k.until(t, "the records", func() bool { return k.count == 100 })
	if err := broker.Close(); err != nil {
		t.Fatal(err)
	}
	if broker, err = embedded.StartKafka(options); err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	if err := <-ended; !errors.Is(err, kafka.ErrBehind) {
		t.Errorf("Run = %v, want ErrBehind", err)
	}
}
