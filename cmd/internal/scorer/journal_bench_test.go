package scorer

import (
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hamlet/state/redis"
	"hamlet/stream/nats"
)

// BenchmarkJournal asks two scorers of one model about real mail, one with a journal and
// one without, in turns of 200 messages, four at a time. Both scorers, who asks and the NATS
// server with its JetStream are this process, so all that the journal costs counts. It
// reports the median messages a second of processor time of each, and the median of the
// turns' ratios: the time of day depends on what else the machine does.
//
//	go test -run - -bench Journal -benchtime 200x ./cmd/internal/scorer
func BenchmarkJournal(b *testing.B) {
	mails, m := taught(b, 1500)
	r := miniredis.RunT(b)
	save(b, m, r)
	url, _ := natsAt(b, "127.0.0.1:0", b.TempDir())
	open := func() *redis.Store { return openStore(b, r) }
	start(b, Config{Conn: connect(b, url), Store: open(), Model: "without"})
	serving := connect(b, url)
	journal := newJournalOn(b, serving)
	journalled := start(b, Config{Conn: serving, Store: open(), Model: "with", Journal: journal})
	const messages, askers = 200, 4
	clients := map[string][askers]*nats.Client{}
	for _, model := range []string{"with", "without"} {
		var all [askers]*nats.Client
		for k := range all {
			var err error
			if all[k], err = nats.NewClient(connect(b, url), model); err != nil {
				b.Fatal(err)
			}
		}
		clients[model] = all
	}
	ask := func(model string) (perSecond float64) {
		var all sync.WaitGroup
		begin := processorTime(b)
		for k := range askers {
			c := clients[model][k]
			all.Go(func() {
				for i := k; i < messages; i += askers {
					if _, err := c.Score(b.Context(), mails[i%len(mails)], nats.TypeMail, false); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		return messages / (processorTime(b) - begin).Seconds()
	}
	ask("with")
	ask("without")
	var with, without, ratios []float64
	for i := 0; b.Loop(); i++ {
		first, second := "with", "without"
		if i%2 == 1 {
			first, second = second, first
		}
		one, other := ask(first), ask(second)
		if i%2 == 1 {
			one, other = other, one
		}
		with, without, ratios = append(with, one), append(without, other), append(ratios, one/other)
	}
	if testutil.ToFloat64(journalled.metrics.kept.WithLabelValues("jetstream")) == 0 {
		b.Fatal("the journal holds nothing")
	}
	for _, all := range [][]float64{with, without, ratios} {
		slices.Sort(all)
	}
	b.ReportMetric(with[len(with)/2], "with-msgs/cpu-s")
	b.ReportMetric(without[len(without)/2], "without-msgs/cpu-s")
	b.ReportMetric(ratios[len(ratios)/2], "with/without")
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
