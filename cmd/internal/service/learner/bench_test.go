package learner_test

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/learner"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/logtest"
	"hamlet/stream/servertest"
)

// BenchmarkOrder streams the SpamAssassin mail through ingest, Kafka and a learner, as hamlet
// up does. It reports the medians of events a second and of the processor time of an event, in
// which Kafka, Redis and ingest are.
//
//	go test -run - -bench Order -benchtime 5x ./cmd/internal/service/learner
func BenchmarkOrder(b *testing.B) {
	const index, mails = "../../../../../shared/data/spamassassin/index.csv", "../../../../../shared/data/spamassassin/spamassassin.tar.gz"
	if _, err := os.Stat(mails); err != nil {
		b.Skipf("the data set is not there: %v", err)
	}
	src, err := source.Open(source.Config{Paths: []string{mails}, Index: index})
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	var items []source.Item
	for item, err := range src.Events() {
		if err != nil {
			b.Fatal(err)
		}
		items = append(items, item)
	}
	var one, cpu []float64
	for range b.N {
		speed, cost := learnt(b, items)
		one, cpu = append(one, speed), append(cpu, cost)
	}
	b.ReportMetric(median(one), "one-events/s")
	b.ReportMetric(median(cpu), "one-µs/event")
	b.ReportMetric(0, "ns/op")
}

// learnt learns items and returns the events a second, and the process's time of one in µs.
func learnt(b *testing.B, items []source.Item) (speed, cost float64) {
	b.Helper()
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	r, err := servertest.StartRedis(servertest.RedisOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	cfg, topic := kafka.Config{Brokers: []string{k.Addr()}}, stream.EventsTopic("m")
	store, err := redis.New(redis.Config{Addr: r.Addr(), Model: "m"})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	if err := cfg.Ensure(b.Context(), topic, 1, time.Hour); err != nil {
		b.Fatal(err)
	}
	log, err := kafka.NewLog(cfg, topic)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	learning := learner.Config{
		Follow: follow.Config{Log: log, Name: "topic " + topic}, Topic: topic,
		Letters: new(logtest.Memory), Receipts: new(logtest.Memory), Store: store, Name: "m", Log: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var seen atomic.Int64
	all := make(chan struct{})
	learning.Observe = func(learner.Applied) {
		if seen.Add(1) == int64(len(items)) {
			close(all)
		}
	}
	l, err := learner.New(learning)
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !l.Status().Loaded {
		<-poll.C
	}
	begin, before := time.Now(), processTime(b)
	_, err = ingest.Send(b.Context(), ingest.Config{Events: log, Log: learning.Log}, &ingest.Input{Items: func() (ingest.Items, error) {
		return func(yield func(source.Item, error) bool) {
			for i := range items {
				if !yield(items[i], nil) {
					return
				}
			}
		}, nil
	}})
	if err != nil {
		b.Fatal(err)
	}
	select {
	case <-all:
	case err := <-ended:
		b.Fatal(err)
	}
	took, spent := time.Since(begin), processTime(b)-before
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	n := float64(len(items))
	return n / took.Seconds(), float64(spent.Microseconds()) / n
}

func processTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
