package scorer

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"hamlet/cmd/internal/process/writebehind"
	"hamlet/cmd/internal/service/advice"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// A MailStore keeps scored mail. [*nats.MailArchive] is one. Its errors are those of a Kept.
type MailStore interface {
	Put(ctx context.Context, m *nats.ArchivedMail) error
}

// Console is the door of questions that the console asks, which all want reasons. An answer with
// reasons at this door decides nothing: it has no line in the journal, and its mail is not kept.
// Anybody who may ask hamlet.explain can ask so. A score always leaves its line.
const Console = "console"

// Bounds of a mailKeeper.
const (
	maxMail      = 1024     // messages that wait
	maxMailBytes = 32 << 20 // of them
	mailWriters  = 4
)

var mailRetry = writebehind.Retry{
	First: writebehind.FirstPause, Lasting: nats.ErrRefused, Final: []error{stream.ErrTooLarge},
}

// Why mail is not kept, as the metrics show it.
const (
	mailQueue    = "queue"     // the store was slower than the questions, or away
	mailTooLarge = "too-large" // for NATS
	mailStopped  = "stopped"   // the store was away when the scorer stopped
)

// A mailKeeper stores mail that was scored, and makes nobody wait. While the store fails,
// maxMail messages of maxMailBytes wait in memory. Further ones are dropped and counted. To keep
// a message costs some 120 µs of processor time, in scorer and NATS together; a score costs 250.
type mailKeeper struct {
	store   MailStore
	metrics *metrics
	health  *writebehind.Health
	queue   chan nats.ArchivedMail
	bytes   atomic.Int64 // of the messages in queue and in the writers' hands
}

// newMailKeeper returns nil without a store.
func newMailKeeper(store MailStore, m *metrics, log *slog.Logger) *mailKeeper {
	if store == nil {
		return nil
	}
	return &mailKeeper{
		store: store, metrics: m, queue: make(chan nats.ArchivedMail, maxMail),
		health: &writebehind.Health{
			Gauge: m.mailFailing, Log: log, Attrs: []any{"waiting_at_most", maxMail},
			Fails: "mail is not kept for now; no answer waits for it", Works: "mail is kept again",
		},
	}
}

// offer takes the mail of one request, which must not be changed afterwards. It never waits.
func (k *mailKeeper) offer(ctx context.Context, requests []*stream.Event, verdicts []stream.Verdict) {
	if k == nil {
		return
	}
	for i := range verdicts {
		if verdicts[i].Identity == "" {
			continue
		}
		m := nats.ArchivedMail{Identity: verdicts[i].Identity, Tenant: requests[i].Tenant, Message: requests[i].Body.Mail}
		size := int64(len(m.Message))
		if k.bytes.Add(size) > maxMailBytes {
			k.bytes.Add(-size)
			k.lose(mailQueue)
			continue
		}
		select {
		case k.queue <- m:
		default:
			k.bytes.Add(-size)
			k.lose(mailQueue)
		}
	}
}

// lose counts a message that is not kept. It may be offered again.
func (k *mailKeeper) lose(why string) { k.metrics.mailLost.WithLabelValues(why).Inc() }

// run stores mail until ctx ends, and then what waits: for two seconds at most. Nothing may be
// offered after ctx has ended.
func (k *mailKeeper) run(ctx context.Context) {
	if k == nil {
		return
	}
	writebehind.Run(ctx, writebehind.Flush, mailWriters, k.queue, func(work context.Context, m *nats.ArchivedMail) {
		k.keep(ctx, work, m)
		k.bytes.Add(-int64(len(m.Message)))
	})
}

// keep stores a message, and tries again until stopping ends. Each attempt ends with work.
func (k *mailKeeper) keep(stopping, work context.Context, m *nats.ArchivedMail) {
	err := mailRetry.Do(stopping, func() error {
		err := k.store.Put(work, m)
		if errors.Is(err, stream.ErrTooLarge) {
			k.health.Note(nil) // the store answers
		} else {
			k.health.Note(advice.Add(err))
		}
		return err
	})
	switch {
	case err == nil:
		k.metrics.mailKept.Inc()
	case errors.Is(err, stream.ErrTooLarge):
		k.lose(mailTooLarge)
	default:
		k.lose(mailStopped)
	}
}
