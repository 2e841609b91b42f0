package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/loopback"
)

// The broker restarts three times on its port while four append and a member of a group reads.
// Acknowledged records are in the log, in order, and are read.
func TestBrokerRestarts(t *testing.T) {
	dir := t.TempDir()
	addr := loopback.Hold(t)
	broker, err := servertest.StartKafka(servertest.KafkaOptions{Dir: dir, Addr: addr, Topics: []string{"t"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { broker.Close() }()
	cfg := kafka.Config{Brokers: []string{addr}, Log: testLog(t)}
	log := newLog(t, cfg, "t")
	k := newKeeper()
	stop := consume(t, cfg, "t", k.read("a"))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	acked := make([]int, 4) // records acknowledged by each writer
	for w := range acked {
		wg.Go(func() {
			for ctx.Err() == nil {
				records := numbered(acked[w], 5)
				for i := range records {
					records[i].Key = []byte{byte('a' + w)}
				}
				if err := log.Append(t.Context(), records...); err != nil {
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
		k.change(func() { from = k.count() })
		began := time.Now()
		k.until(t, "records to flow", func() bool { return k.count() > from+100 })
		t.Logf("100 more records after %v", time.Since(began))
	}
	more()
	for range 3 {
		if err := broker.Close(); err != nil {
			t.Fatal(err)
		}
		if broker, err = servertest.StartKafka(servertest.KafkaOptions{Dir: dir, Addr: addr}); err != nil {
			t.Fatal(err)
		}
		more()
	}
	cancel()
	wg.Wait()
	b, err := log.Bounds(within(t, 30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	k.until(t, "the end", func() bool { return int64(len(k.taken[0])) >= b.End })
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

// doubted is longer than the time in which an unknown topic is believed to be missing.
const doubted = 2500 * time.Millisecond

// workers append to a topic that exists, ask for its bounds, and read it.
type workers struct {
	log  *kafka.Log
	k    *keeper
	stop func() error // of the reader
	sent int
}

func startWorkers(t *testing.T, cfg kafka.Config) *workers {
	t.Helper()
	cfg.Seen, cfg.MaxOutage = new(kafka.SeenTopics), time.Minute
	ensure(t, cfg, "t")
	w := &workers{log: newLog(t, cfg, "t"), k: newKeeper()}
	w.stop = consume(t, cfg, "t", w.k.read("a"))
	w.send(t)()
	w.k.until(t, "the first records", func() bool { return w.k.count() >= w.sent })
	return w
}

// send appends records and asks for the bounds in the background. The result waits until
// both are done.
func (w *workers) send(t *testing.T) (done func()) {
	t.Helper()
	var wg sync.WaitGroup
	records := numbered(w.sent, 10)
	w.sent += len(records)
	ctx := within(t, 30*time.Second)
	wg.Go(func() {
		if err := w.log.Append(ctx, records...); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() {
		for {
			_, err := w.log.Bounds(ctx)
			if err == nil {
				return
			}
			if !errors.Is(err, stream.ErrAway) || ctx.Err() != nil {
				t.Error(err)
				return
			}
			<-time.After(20 * time.Millisecond)
		}
	})
	return wg.Wait
}

// finish checks that all records were read and that the reader still runs.
func (w *workers) finish(t *testing.T) {
	t.Helper()
	w.k.until(t, "all records", func() bool { return w.k.count() >= w.sent })
	if err := w.stop(); err != nil {
		t.Error(err)
	}
}

// A broker that stops in order first says that it leads nothing any more. While it is
// away, kafka-go says that there is no such topic, because nobody tells it of any.
func TestBrokerStopsInOrder(t *testing.T) {
	t.Parallel()
	addr, dir := loopback.Hold(t), t.TempDir()
	run := func() (*kfake.Cluster, kafka.Config) {
		return fakeCluster(t, kfake.DataDir(dir), kfake.ListenFn(func(network, _ string) (net.Listener, error) {
			return net.Listen(network, addr)
		}))
	}
	fake, cfg := run()
	w := startWorkers(t, cfg)
	stopping := fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t", Err: kerr.NotLeaderForPartition, Count: -1})
	done := w.send(t)
	if err := stopping.Wait(within(t, 30*time.Second), 1); err != nil {
		t.Fatal(err)
	}
	leaderless := fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "t", Err: kerr.LeaderNotAvailable, Count: -1})
	if err := leaderless.Wait(within(t, 30*time.Second), 3); err != nil {
		t.Fatal(err)
	}
	fake.Close()
	<-time.After(doubted)
	run()
	done()
	w.finish(t)
}

// A starting broker says of each topic that it does not exist. One that was seen is
// waited for.
func TestSeenTopicIsNotMissing(t *testing.T) {
	t.Parallel()
	fake, cfg := fakeCluster(t)
	w := startWorkers(t, cfg)
	starting := fake.Fault(kfake.Fault{
		Keys:  []kmsg.Key{kmsg.Produce, kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata},
		Topic: "t", Err: kerr.UnknownTopicOrPartition, Count: -1,
	})
	done := w.send(t)
	if err := starting.Wait(within(t, 30*time.Second), 1); err != nil {
		t.Fatal(err)
	}
	<-time.After(doubted)
	starting.Remove()
	done()
	w.finish(t)
}

// A cluster without live brokers cannot say that a topic does not exist.
func TestIncompleteClusterKnowsNothing(t *testing.T) {
	t.Parallel()
	fake, cfg := fakeCluster(t)
	ensure(t, cfg, "t")
	var asked, complete atomic.Bool
	fake.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if complete.Load() {
			return nil, nil, false
		}
		fake.KeepControl()
		asked.Store(true)
		response := r.ResponseKind().(*kmsg.MetadataResponse)
		response.ControllerID = -1
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.ErrorCode = kmsg.StringPtr("t"), kerr.UnknownTopicOrPartition.Code
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
	ended := make(chan error, 1)
	go func() {
		n, err := cfg.Partitions(within(t, 30*time.Second), "t")
		if err == nil && n != 1 {
			err = fmt.Errorf("it has %d partitions", n)
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Errorf("the topic exists, and an incomplete cluster made it: %v", err)
	case <-time.After(doubted):
		complete.Store(true)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if !asked.Load() {
		t.Error("the metadata was not asked for")
	}
}
