package scorer

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	natsgo "github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hamlet/state/redis"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// BenchmarkJournal asks two scorers of one model about real mail, one with a journal and
// one without, in turns of 200 messages, four at a time. Both scorers, who asks and the NATS
// server with its JetStream are this process, so all that the journal costs counts. It
// reports the median messages a second of processor time of each, and the median of the
// turns' ratios: the time of day depends on what else the machine does.
//
//	go test -run - -bench Journal -benchtime 200x ./cmd/internal/service/scorer
func BenchmarkJournal(b *testing.B) {
	benchmarkBeside(b, false)
}

// BenchmarkKeepMail compares in the same way a scorer that has a journal and keeps mail with one
// that has a journal. Each turn brings mail that is new to it: none is kept already.
//
//	go test -run - -bench KeepMail -benchtime 100x ./cmd/internal/service/scorer
func BenchmarkKeepMail(b *testing.B) {
	benchmarkBeside(b, true)
}

func benchmarkBeside(b *testing.B, mail bool) {
	mails, m := taught(b, 1500)
	r := miniredis.RunT(b)
	save(b, m, r)
	url, _ := natsAt(b, "127.0.0.1:0", b.TempDir())
	open := func() *redis.Store { return openStore(b, r) }
	conns := [2]*natsgo.Conn{connect(b, url), connect(b, url)}
	without := Config{Questions: overOf(conns[0], "without"), Store: open(), Model: "without"}
	with := Config{Questions: overOf(conns[1], "with"), Store: open(), Model: "with"}
	with.Journal = newJournalOn(b, conns[1])
	if mail {
		without.Journal = newJournalOn(b, conns[0])
		kept, err := nats.NewMailArchive(connect(b, url), nats.MailArchiveConfig{Age: time.Hour})
		if err != nil {
			b.Fatal(err)
		}
		with.Mail = kept
	}
	start(b, without)
	journalled := start(b, with)
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
	turn := 0
	ask := func(model string) (perSecond float64) {
		turn++
		var all sync.WaitGroup
		begin := processorTime(b)
		for k := range askers {
			c := clients[model][k]
			all.Go(func() {
				for i := k; i < messages; i += askers {
					message := mails[i%len(mails)]
					if mail {
						message = append(fmt.Appendf(nil, "Message-ID: <%d.%d@example.org>\r\n", turn, i), message...)
					}
					if _, err := c.Ask(b.Context(), questions.Question{Body: message, ContentType: questions.Mail}); err != nil {
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
	var withs, withouts, ratios []float64
	for i := 0; b.Loop(); i++ {
		first, second := "with", "without"
		if i%2 == 1 {
			first, second = second, first
		}
		one, other := ask(first), ask(second)
		if i%2 == 1 {
			one, other = other, one
		}
		withs, withouts, ratios = append(withs, one), append(withouts, other), append(ratios, one/other)
	}
	if testutil.ToFloat64(journalled.metrics.written.WithLabelValues("jetstream")) == 0 {
		b.Fatal("the journal holds nothing")
	}
	if kept, lost := testutil.ToFloat64(journalled.metrics.mailKept), testutil.ToFloat64(journalled.metrics.mailLost.WithLabelValues(mailQueue)); mail && (kept == 0 || lost > kept/100) {
		b.Fatalf("%v messages are kept, %v are lost", kept, lost)
	}
	for _, all := range [][]float64{withs, withouts, ratios} {
		slices.Sort(all)
	}
	b.ReportMetric(withs[len(withs)/2], "with-msgs/cpu-s")
	b.ReportMetric(withouts[len(withouts)/2], "without-msgs/cpu-s")
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
