package kafka_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

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

// BenchmarkAppend measures acknowledged records: alone, and many in one call.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{200, 5000} {
		for _, n := range []int{1, 500} {
			b.Run(fmt.Sprintf("bytes=%d/call=%d", size, n), func(b *testing.B) {
				cfg, name := cluster(b), topic(b)
				ensure(b, cfg, name)
				log := newLog(b, cfg, name)
				records := numbered(0, n)
				for i := range records {
					records[i].Value = words(size, uint64(i))
				}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for done := 0; b.Loop(); done++ {
					if done%n == 0 {
						add(b, log, records...)
					}
				}
			})
		}
	}
}

// BenchmarkWriteToRead measures one record from Append to Read.
func BenchmarkWriteToRead(b *testing.B) {
	cfg, name := cluster(b), topic(b)
	ensure(b, cfg, name)
	log := newLog(b, cfg, name)
	for next := int64(0); b.Loop(); next++ {
		written := make(chan error)
		go func() { written <- log.Append(b.Context(), numbered(0, 1)...) }()
		got, _, err := log.Read(b.Context(), next, stream.Limit{}, time.Minute)
		if err = errors.Join(err, <-written); err != nil || len(got) != 1 {
			b.Fatal(len(got), err)
		}
	}
}
