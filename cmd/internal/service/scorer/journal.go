package scorer

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/service/journal"
	"hamlet/stream"
	"hamlet/stream/questions"
)

// A Journal keeps decisions. [*nats.Journal] is one.
type Journal interface {
	// Append writes entries, once and for a bounded time. The same id may come again
	// after an error: then it is the same entries.
	Append(ctx context.Context, id string, entries []stream.JournalEntry) error
}

// decisions passes on decisions to those who keep them. add never waits for them.
type decisions struct {
	keepers []*journal.Keeper
}

// newDecisions returns nil if nobody keeps decisions.
func newDecisions(to Journal, logged bool, m *metrics, log *slog.Logger) *decisions {
	j := &decisions{}
	add := func(name string, write journal.Write, failing prometheus.Gauge) {
		counters := journal.Counters{Written: m.written.WithLabelValues(name), Lost: m.lost.WithLabelValues(name),
			Failing: failing}
		j.keepers = append(j.keepers, journal.NewKeeper(write, counters, log))
	}
	if logged {
		add("log", func(_ context.Context, _ string, entries []stream.JournalEntry) error {
			for i := range entries {
				logDecision(log, &entries[i])
			}
			return nil
		}, prometheus.NewGauge(prometheus.GaugeOpts{})) // a log does not fail
	}
	if to != nil {
		add("jetstream", to.Append, m.failing)
	}
	if len(j.keepers) == 0 {
		return nil
	}
	return j
}

// add passes on the decisions on one request's messages, whose scoring began at began.
func (j *decisions) add(ctx context.Context, requests []*stream.Event, verdicts []stream.Verdict, notes []journalNote,
	began time.Time) {
	if j == nil {
		return
	}
	now := time.Now()
	if at := questions.Arrived(ctx); !at.IsZero() {
		began = at
	}
	took := math.Round(float64(now.Sub(began).Nanoseconds())/1e3) / 1e3
	for i := range verdicts {
		v := &verdicts[i]
		e := stream.JournalEntry{
			Time: now.UTC().Truncate(time.Microsecond), ID: v.Identity, MessageID: notes[i].messageID,
			Verdict: v.Decision, P: v.P, Low: v.Interval[0], High: v.Interval[1], Reasons: notes[i].reasons,
			Model: v.Model.Name + "/" + v.Model.SHA256[:12], Door: cmp.Or(questions.Door(ctx), directly),
			Tenant: stream.Unaddressed(cmp.Or(requests[i].Tenant, stream.DefaultName)), MS: took,
			Request: stream.Unaddressed(v.ID),
		}
		if v.Rule != nil {
			e.Rule = v.Rule.By
		}
		for _, k := range j.keepers {
			k.Offer(e)
		}
	}
}

// run keeps what is added until ctx ends, and then what waits: for two seconds at most. Nothing
// may be added after ctx has ended.
func (j *decisions) run(ctx context.Context) {
	if j == nil {
		return
	}
	var all sync.WaitGroup
	for _, k := range j.keepers {
		all.Go(func() { k.Run(ctx) })
	}
	all.Wait()
}

// logDecision writes a decision to the log.
func logDecision(log *slog.Logger, e *stream.JournalEntry) {
	attrs := []any{"id", e.ID, "message_id", e.MessageID,
		"verdict", string(e.Verdict), "p", e.P, "lo", e.Low, "hi", e.High,
		"reasons", strings.Join(e.Reasons, "; "), "model", e.Model, "door", e.Door, "tenant", e.Tenant, "ms", e.MS}
	if e.Request != "" {
		attrs = append(attrs, "request", e.Request)
	}
	if e.Rule != "" {
		attrs = append(attrs, "rule", string(e.Rule))
	}
	log.Info("decision", attrs...)
}
