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

	"hamlet/cmd/internal/ingest"
	"hamlet/cmd/internal/learner"
	"hamlet/cmd/internal/source"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// BenchmarkOrder streams the SpamAssassin mail through ingest, Kafka and a learner, as hamlet
// up does: on one partition, and on four with one model, in turns. It reports the medians of
// events a second and of the processor time of an event, in which Kafka, Redis and ingest
// are, and those of their ratios.
//
//	go test -run - -bench Order -benchtime 5x ./cmd/internal/learner
func BenchmarkOrder(b *testing.B) {
	const index, mails = "../../../../shared/data/spamassassin/index.csv", "../../../../shared/data/spamassassin/spamassassin.tar.gz"
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
	var one, four, cpuOne, cpuFour, ratios, cpuRatios []float64
	for range b.N {
		a, cpuA := learnt(b, items, 1)
		c, cpuC := learnt(b, items, 4)
		one, four, ratios = append(one, a), append(four, c), append(ratios, c/a)
		cpuOne, cpuFour, cpuRatios = append(cpuOne, cpuA), append(cpuFour, cpuC), append(cpuRatios, cpuC/cpuA)
	}
	b.ReportMetric(median(one), "one-events/s")
	b.ReportMetric(median(four), "four-events/s")
	b.ReportMetric(median(ratios), "four/one")
	b.ReportMetric(median(cpuOne), "one-µs/event")
	b.ReportMetric(median(cpuFour), "four-µs/event")
	b.ReportMetric(median(cpuRatios), "four/one-µs")
	b.ReportMetric(0, "ns/op")
}

// learnt learns items from so many partitions and returns the events a second, and the
// process's time of one in µs.
func learnt(b *testing.B, items []source.Item, partitions int) (speed, cost float64) {
	b.Helper()
	k, err := embedded.StartKafka(embedded.KafkaOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	r, err := embedded.StartRedis(embedded.RedisOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	cfg, topic := kafka.Config{Brokers: []string{k.Addr()}}, stream.EventsTopic("m")
	producer, err := kafka.NewProducer(cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer producer.Close()
	store, err := redis.New(redis.Config{Addr: r.Addr(), Model: "m"})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	if err := kafka.EnsureTopic(b.Context(), cfg, topic, partitions, 1, time.Hour); err != nil {
		b.Fatal(err)
	}
	learning := learner.Config{
		Consumer:    kafka.ConsumerConfig{Config: cfg, Topic: topic, Group: "g", SessionTimeout: time.Minute},
		DeadLetters: producer, Store: store, Name: "m", Log: slog.New(slog.DiscardHandler),
	}
	if partitions > 1 {
		if err := kafka.EnsureOrder(b.Context(), cfg, "m", topic, 1); err != nil {
			b.Fatal(err)
		}
		learning.Order = &learner.Order{Topic: order.Topic("m"), Writer: "w", Append: producer}
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
	for len(l.Status()) == 0 {
		<-poll.C
	}
	begin, before := time.Now(), processTime(b)
	_, err = ingest.Source(b.Context(), ingest.Config{Publisher: producer, Topic: topic, Log: learning.Log}, func() (ingest.Items, error) {
		return func(yield func(source.Item, error) bool) {
			for i := range items {
				if !yield(items[i], nil) {
					return
				}
			}
		}, nil
	})
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
