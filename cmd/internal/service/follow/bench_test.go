package follow_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
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

// A discard counts records and drops them.
type discard struct {
	seen, want int
	done       func()
}

func (*discard) Position(func(context.Context) error) (int64, bool) { return 0, false }
func (*discard) Follows(stream.Record) bool                         { return true }
func (*discard) Idle(context.Context) error                         { return nil }
func (*discard) Close(context.Context) error                        { return nil }
func (*discard) StepBack(_ context.Context, _ stream.Bounds, why error, _ follow.RecordAt) error {
	return why
}

func (d *discard) Handle(_ context.Context, batch []stream.Record, _ int64) error {
	if d.seen += len(batch); d.seen == d.want {
		d.done()
	}
	return nil
}

// BenchmarkBacklog measures how fast 100,000 records are read that are there already.
func BenchmarkBacklog(b *testing.B) {
	for _, size := range []int{200, 5000} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			_, cfg := fakeTopic(b)
			log := logOf(b, cfg)
			const backlog = 100_000
			records := make([]stream.Record, 1000)
			for i := range records {
				records[i] = stream.Record{Key: fmt.Append(nil, i%100), Value: words(size, uint64(i))}
			}
			for range backlog / len(records) {
				if err := log.Append(b.Context(), records...); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC()
			b.ReportAllocs()
			var reading time.Duration
			for b.Loop() {
				ctx, cancel := context.WithCancel(b.Context())
				d := &discard{want: backlog, done: cancel}
				f := follow.New(follow.Config{Log: log})
				began := time.Now()
				if err := f.Run(ctx, func(context.Context) (follow.Handler, error) { return d, nil }); err != nil {
					b.Fatal(err)
				}
				reading += time.Since(began)
			}
			b.ReportMetric(float64(backlog)*float64(b.N)/reading.Seconds(), "records/s")
		})
	}
}
