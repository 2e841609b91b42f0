package filelog

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hamlet/stream"
)

// BenchmarkFsync is the ceiling of BenchmarkAppend/one: 2 kB are appended to a file, and are durable.
func BenchmarkFsync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "file"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	bytes := make([]byte, 2100)
	for b.Loop() {
		if _, err := f.Write(bytes); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkAppend appends records of 2 kB: one a time, by 64 publishers, and 500 in one Append.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name             string
		publishers, each int
	}{{"one", 1, 1}, {"publishers=64", 64, 1}, {"batch=500", 1, 500}} {
		b.Run(c.name, func(b *testing.B) {
			l := opened(b, b.TempDir(), Options{})
			records := numbered(0, c.each, 2000)
			for b.Loop() {
				var all sync.WaitGroup
				for range c.publishers {
					all.Go(func() {
						if err := l.Append(b.Context(), records...); err != nil {
							b.Error(err)
						}
					})
				}
				all.Wait()
			}
			b.ReportMetric(float64(b.N*c.publishers*c.each)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkAppendBesideFsync appends a record of 2 kB and writes as much to a file and fsyncs it, in turns. One
// append a time is to reach .9 of the disk's fsyncs.
func BenchmarkAppendBesideFsync(b *testing.B) {
	path := b.TempDir()
	l := opened(b, filepath.Join(path, "log"), Options{})
	f, err := os.Create(filepath.Join(path, "file"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	records, bytes := numbered(0, 1, 2000), make([]byte, 2100)
	var appending, syncing time.Duration
	for b.Loop() {
		began := time.Now()
		if err := l.Append(b.Context(), records...); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		if _, err := f.Write(bytes); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		appending, syncing = appending+between.Sub(began), syncing+time.Since(between)
	}
	b.ReportMetric(float64(b.N)/appending.Seconds(), "appends/s")
	b.ReportMetric(float64(syncing)/float64(appending), "of-fsyncs")
}

// BenchmarkRead reads a backlog of 100,000 records of 2 kB, and BenchmarkOpen opens it.
func BenchmarkRead(b *testing.B) {
	l := opened(b, b.TempDir(), Options{})
	fill(b, l)
	read := 0
	for b.Loop() {
		records, err := all(l, 0)
		if err != nil {
			b.Fatal(err)
		}
		read += len(records)
	}
	b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "records/s")
}

func fill(b *testing.B, l *Log) {
	b.Helper()
	for i := range 100 {
		add(b, l, numbered(1000*i, 1000, 2000)...)
	}
}

func BenchmarkOpen(b *testing.B) {
	path := b.TempDir()
	l := opened(b, path, Options{})
	fill(b, l)
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		l, err := Open(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := l.Read(b.Context(), 99_999, stream.Limit{}, time.Second); err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
