package now

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"hamlet/stream"
	"hamlet/stream/nats"
)

// BenchmarkTenThousandAnswers writes 10,000 decisions a second into a journal, in turns of three
// seconds with somebody who looks and without. It reports the medians of the processor time that
// a second of each takes. Writer and NATS are this process.
//
//	go test -run - -bench TenThousand -benchtime 10x ./cmd/internal/operate/now
func BenchmarkTenThousandAnswers(b *testing.B) {
	conn := startNATS(b)
	j, err := nats.NewJournal(conn, nats.JournalConfig{})
	if err != nil {
		b.Fatal(err)
	}
	const perSecond, length, seconds = 10_000, 200, 3
	lines := make([]stream.JournalEntry, length)
	written := 0
	write := func() float64 {
		begin, start := processorTime(b), time.Now()
		for i := range seconds * perSecond / length {
			time.Sleep(time.Until(start.Add(time.Duration(i) * length * time.Second / perSecond)))
			for k := range lines {
				written++
				lines[k] = decision(written, stream.DecideHam, .1, "milter")
				lines[k].MessageID, lines[k].Reasons = "0123456789abcdef", []string{"text words", "header words", "links"}
			}
			if err := j.Append(b.Context(), fmt.Sprint(written), lines); err != nil {
				b.Fatal(err)
			}
		}
		return (processorTime(b) - begin).Seconds() / time.Since(start).Seconds()
	}
	write()
	f := follow(b, Config{Model: "default", NATS: conn})
	f.pace = usual
	f.pace.linger = 100 * time.Millisecond
	var with, without []float64
	for b.Loop() {
		without = append(without, write())
		done := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for {
				f.Look(b.Context())
				select {
				case <-tick.C:
				case <-done:
					return
				}
			}
		}()
		f.Look(b.Context()) // reads what came meanwhile
		with = append(with, write())
		close(done)
		<-ended
	}
	s := f.Look(b.Context())
	slices.Sort(with)
	slices.Sort(without)
	b.ReportMetric(1000*with[len(with)/2], "with-cpu-ms/s")
	b.ReportMetric(1000*without[len(without)/2], "without-cpu-ms/s")
	b.ReportMetric(s.Journal.Hour.Total()/float64(written), "counted/written")
	b.ReportMetric(0, "ns/op")
}

// processorTime returns how long this process has computed.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
