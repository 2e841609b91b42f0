package kafka_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"hamlet/stream/kafka"
)

// words returns n bytes that compress like text.
func words(n int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 0))
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, "%x ", rng.Uint32N(1<<16))
	}
	return b.Bytes()[:n]
}

// BenchmarkPublish measures acknowledged records: alone, and many in one call.
func BenchmarkPublish(b *testing.B) {
	for _, size := range []int{200, 5000} {
		for _, n := range []int{1, 500} {
			b.Run(fmt.Sprintf("bytes=%d/call=%d", size, n), func(b *testing.B) {
				cfg := cluster(b)
				name := fmt.Sprintf("bench-%d", time.Now().UnixNano())
				ensure(b, cfg, name, 1)
				p := newProducer(b, cfg)
				records := numbered(name, 0, n, 100)
				for i := range records {
					records[i].Value = words(size, uint64(i))
				}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for done := 0; b.Loop(); done++ {
					if done%n == 0 {
						if err := p.Publish(b.Context(), records...); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

// A discard counts records and drops them.
type discard struct {
	seen, want int
	done       chan struct{}
}

func (d *discard) Position(func(context.Context) error) (int64, bool) { return 0, true }
func (*discard) Follows(kafka.Record) bool                            { return true }
func (d *discard) Idle(context.Context) error                         { return nil }
func (d *discard) Close(context.Context) error {
	return nil
}

func (d *discard) Handle(_ context.Context, batch []kafka.Record) error {
	if d.seen += len(batch); d.seen >= d.want && d.done != nil {
		close(d.done)
		d.done = nil
	}
	return nil
}

// BenchmarkConsume measures a consumer that discards, from joining the group on.
func BenchmarkConsume(b *testing.B) {
	for _, size := range []int{200, 5000} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			cfg := cluster(b)
			name := fmt.Sprintf("bench-%d", time.Now().UnixNano())
			ensure(b, cfg, name, 1)
			p := newProducer(b, cfg)
			const log = 100_000
			records := numbered(name, 0, 1000, 100)
			for i := range records {
				records[i].Value = words(size, uint64(i))
			}
			for range log / len(records) {
				if err := p.Publish(b.Context(), records...); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC()
			b.ReportAllocs()
			b.ResetTimer()
			var reading time.Duration
			for range b.N {
				d := &discard{want: log, done: make(chan struct{})}
				done := d.done
				began := time.Now()
				stop := start(b, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}, func(context.Context, int) (kafka.Handler, error) { return d, nil })
				<-done
				reading += time.Since(began)
				if err := stop(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(log)*float64(b.N)/reading.Seconds(), "records/s")
		})
	}
}

// BenchmarkWriteToRead measures one record from Publish to Handle.
func BenchmarkWriteToRead(b *testing.B) {
	cfg := cluster(b)
	name := fmt.Sprintf("bench-%d", time.Now().UnixNano())
	ensure(b, cfg, name, 1)
	p := newProducer(b, cfg)
	arrived := make(chan struct{}, 1)
	began := time.Now()
	start(b, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}, func(context.Context, int) (kafka.Handler, error) {
		return signal(arrived), nil
	})
	r := numbered(name, 0, 1, 1)
	if err := p.Publish(b.Context(), r...); err != nil {
		b.Fatal(err)
	}
	<-arrived
	first := time.Since(began)
	for b.Loop() {
		if err := p.Publish(b.Context(), r...); err != nil {
			b.Fatal(err)
		}
		<-arrived
	}
	b.ReportMetric(float64(first.Microseconds())/1000, "ms-to-first")
}

// A signal handler reports the arrival of records.
type signal chan<- struct{}

func (s signal) Position(func(context.Context) error) (int64, bool) { return 0, false }
func (signal) Follows(kafka.Record) bool                            { return true }
func (s signal) Idle(context.Context) error                         { return nil }
func (s signal) Close(context.Context) error                        { return nil }
func (s signal) Handle(_ context.Context, batch []kafka.Record) error {
	for range batch {
		s <- struct{}{}
	}
	return nil
}
