package scorer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/stream"
	"hamlet/stream/nats"
)

// A Journal keeps decisions. [*nats.Journal] is one.
type Journal interface {
	// Append writes entries, once and for a bounded time. The same id may come again
	// after an error: then it is the same entries.
	Append(ctx context.Context, id string, entries []stream.JournalEntry) error
}

// A journal passes decisions to those who keep them. add never waits for them.
type journal struct {
	keepers []*keeper
}

// newJournal returns nil if nobody keeps decisions.
func newJournal(to Journal, logged bool, m *metrics, log *slog.Logger) *journal {
	j := &journal{}
	if logged {
		j.keepers = append(j.keepers, newKeeper("log", m, func(_ context.Context, _ string, entries []stream.JournalEntry) error {
			for i := range entries {
				logDecision(log, &entries[i])
			}
			return nil
		}, log))
	}
	if to != nil {
		j.keepers = append(j.keepers, newKeeper("jetstream", m, to.Append, log))
	}
	if len(j.keepers) == 0 {
		return nil
	}
	return j
}

// add passes on the decisions on one request's messages, whose scoring began at began.
func (j *journal) add(ctx context.Context, requests []*stream.Event, verdicts []stream.Verdict, why []grounds, began time.Time) {
	if j == nil {
		return
	}
	now := time.Now()
	if at := nats.Arrived(ctx); !at.IsZero() {
		began = at
	}
	took := math.Round(float64(now.Sub(began).Nanoseconds())/1e3) / 1e3
	for i := range verdicts {
		v := &verdicts[i]
		e := stream.JournalEntry{
			Time: now.UTC().Truncate(time.Microsecond), ID: v.Identity, MessageID: why[i].messageID,
			Verdict: v.Decision, P: v.P, Low: v.Interval[0], High: v.Interval[1], Reasons: why[i].reasons,
			Model: v.Model.Name + "/" + v.Model.SHA256[:12], Door: cmp.Or(nats.Door(ctx), directly),
			Tenant: stream.Unaddressed(cmp.Or(requests[i].Tenant, stream.DefaultName)), MS: took, Request: stream.Unaddressed(v.ID),
		}
		for _, k := range j.keepers {
			k.offer(e)
		}
	}
}

// run keeps what is added until ctx ends, and then what waits: for JetStream at most flushTime. Nothing
// may be added after ctx has ended.
func (j *journal) run(ctx context.Context) {
	if j == nil {
		return
	}
	var all sync.WaitGroup
	for _, k := range j.keepers {
		all.Go(func() { k.run(ctx) })
	}
	all.Wait()
}

// Bounds of a keeper.
const (
	maxWaiting = 8192                   // decisions; at most some 8 MiB, usually 4
	maxLines   = 200                    // of one Append
	gathering  = 50 * time.Millisecond  // from a decision to its Append, so that a busy scorer writes few messages
	flushTime  = 2 * time.Second        // after the last answer
	firstPause = 250 * time.Millisecond // after a failure; it doubles
	lastPause  = 10 * time.Second
	longPause  = 5 * time.Minute // the last where somebody must change the server first
)

// A keeper writes decisions in the order in which they come. While it cannot write,
// maxWaiting of them wait and the further ones are lost.
type keeper struct {
	queue      chan stream.JournalEntry
	write      func(ctx context.Context, id string, entries []stream.JournalEntry) error
	kept, lost prometheus.Counter
	failing    prometheus.Gauge // of jetstream: the log does not fail
	log        *slog.Logger
	prefix     string // of the ids of Append
	batches    int    // only run's goroutine uses it
	broken     bool   // the last write failed, and the log has said so; only run's goroutine uses it
}

func newKeeper(name string, m *metrics, write func(context.Context, string, []stream.JournalEntry) error, log *slog.Logger) *keeper {
	return &keeper{queue: make(chan stream.JournalEntry, maxWaiting), write: write,
		kept: m.kept.WithLabelValues(name), lost: m.lost.WithLabelValues(name), failing: m.failing, log: log, prefix: rand.Text()}
}

// offer never waits.
func (k *keeper) offer(e stream.JournalEntry) {
	select {
	case k.queue <- e:
	default:
		k.lost.Inc()
	}
}

func (k *keeper) run(ctx context.Context) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		end := time.AfterFunc(flushTime, cancel)
		context.AfterFunc(work, func() { end.Stop() })
	})()
	for {
		batch := k.gather(ctx)
		if len(batch) == 0 {
			return
		}
		k.keep(ctx, work, batch)
	}
}

// gather waits for a decision, and a moment for more. It returns nothing once ctx has ended
// and none is left.
func (k *keeper) gather(ctx context.Context) (batch []stream.JournalEntry) {
	select {
	case e := <-k.queue:
		batch = append(batch, e)
	case <-ctx.Done():
	}
	full := time.NewTimer(gathering)
	defer full.Stop()
	for len(batch) < maxLines {
		select {
		case e := <-k.queue:
			batch = append(batch, e)
			continue
		default:
		}
		select {
		case e := <-k.queue:
			batch = append(batch, e)
		case <-full.C:
			return batch
		case <-ctx.Done():
			select {
			case e := <-k.queue:
				batch = append(batch, e)
			default:
				return batch
			}
		}
	}
	return batch
}

// keep writes a batch, and tries again until stopping ends. Each attempt ends with work.
func (k *keeper) keep(stopping, work context.Context, batch []stream.JournalEntry) {
	k.batches++
	id := fmt.Sprintf("%s.%d", k.prefix, k.batches)
	for pause := firstPause; ; pause *= 2 {
		err := k.write(work, id, batch)
		k.note(err)
		switch {
		case err == nil:
			k.kept.Add(float64(len(batch)))
			return
		case stopping.Err() != nil, errors.Is(err, nats.ErrJournalTooLarge):
			k.lost.Add(float64(len(batch)))
			return
		case errors.Is(err, nats.ErrNoJournal):
			pause = min(pause, longPause)
		default:
			pause = min(pause, lastPause)
		}
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-stopping.Done():
			wait.Stop()
		}
	}
}

// note says once that writing fails, and once that it works again.
func (k *keeper) note(err error) {
	if (err != nil) == k.broken {
		return
	}
	k.broken = err != nil
	if k.broken {
		k.failing.Set(1)
		k.log.Warn("decisions are not journalled for now; answers do not depend on it", "waiting_at_most", maxWaiting, "error", err)
		return
	}
	k.failing.Set(0)
	k.log.Info("decisions are journalled again")
}

// logDecision writes a decision to the log.
func logDecision(log *slog.Logger, e *stream.JournalEntry) {
	attrs := []any{"id", e.ID, "message_id", e.MessageID, "verdict", string(e.Verdict), "p", e.P, "lo", e.Low, "hi", e.High,
		"reasons", strings.Join(e.Reasons, "; "), "model", e.Model, "door", e.Door, "tenant", e.Tenant, "ms", e.MS}
	if e.Request != "" {
		attrs = append(attrs, "request", e.Request)
	}
	log.Info("decision", attrs...)
}
