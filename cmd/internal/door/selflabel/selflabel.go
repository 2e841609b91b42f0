// Package selflabel teaches the model its own sure answers, if nobody has contradicted them for a
// while. People correct what they see wrong, and say nothing of the rest.
//
//	service, err := selflabel.New(selflabel.Config{Store: waiting, Teacher: teacher, After: 24 * time.Hour})
//	g, err := gateway.New(gateway.Config{Answered: service.Answered, …})
//	service.Run(ctx)
//
// An answer that is spam or ham waits with its reduced message in the stream HAMLET_WAITING. After
// Config.After it goes to the learner's log as an event "assume", and leaves the stream. Nobody
// compares it with labels on the way. The model does: it ignores an answer about a message that has
// a label, had one, was forgotten, or was assumed before. So an answer may come twice, and before or behind its
// correction.
//
// The model knows the labels of the last messages only, as many as its duplicate window
// (100,000), and the 2,500 events that it can withdraw. If more messages than that are labelled
// or assumed within After, an answer may be learnt in spite of an older label, at its weight of .3.
//
// # Bounds
//
//   - A door never waits. While the store fails, up to 1024 answers of 32 MiB wait in memory. Further
//     ones are dropped and counted. Answers that are due take 16 MiB at most.
//   - A message is kept for After by the server's clock. If Kafka does not take it, it is kept for a
//     day longer, by the highest After that any gateway ever asked for.
//   - A kill loses what waits in memory, and no more.
package selflabel

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/process/writebehind"
	"hamlet/cmd/internal/service/advice"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// Source is the source of assumed answers. It is nobody's, and no statistic of sources has it.
const Source = "self-label"

// A Store keeps answers until they are due. [*nats.Waiting] is one.
type Store interface {
	Put(ctx context.Context, e *stream.Event) error
	Receive(ctx context.Context, handle func(*nats.WaitingAnswer)) error
	State(ctx context.Context) (nats.WaitingState, error)
}

// A Config describes a service. Store, Teacher and After are needed.
type Config struct {
	Store      Store
	Teacher    gateway.Teacher // to the learner's log
	After      time.Duration   // from an answer to its lesson
	Registerer prometheus.Registerer
	Log        *slog.Logger // nil: silent

	recheck time.Duration // the most that an answer is put back for; default recheck
	flush   time.Duration // default writebehind.Flush
	pause   time.Duration // default writebehind.FirstPause
}

// Bounds of a Service.
const (
	maxQueued      = 1024     // answers
	maxQueuedBytes = 32 << 20 // of their messages
	writers        = 4
	publishers     = 8

	publishTimeout = 20 * time.Second

	// recheck is how long an answer is put back at most, so that a gateway with a lower After
	// finds it.
	recheck = time.Minute

	// patience is longer than a store takes to notice that it cannot give answers.
	patience = 30 * time.Second
)

// A Service stores answers and teaches those that are due. All its methods may be called
// concurrently.
type Service struct {
	cfg     Config
	metrics *metrics
	queue   chan stream.Event
	bytes   atomic.Int64 // of the messages in queue and in the writers' hands
	retry   writebehind.Retry
	health  [steps]writebehind.Health
}

// The steps of an answer that can fail.
const (
	storing = iota
	taking  // from the store
	publishing
	steps
)

// New returns a service. Run does the work.
func New(cfg Config) *Service {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.recheck = cmp.Or(cfg.recheck, recheck)
	cfg.flush, cfg.pause = cmp.Or(cfg.flush, writebehind.Flush), cmp.Or(cfg.pause, writebehind.FirstPause)
	s := &Service{cfg: cfg, metrics: newMetrics(cfg.After), queue: make(chan stream.Event, maxQueued)}
	s.retry = writebehind.Retry{
		First: cfg.pause, Lasting: nats.ErrRefused, Final: []error{stream.ErrFull, stream.ErrTooLarge},
	}
	for step := range s.health {
		s.health[step] = writebehind.Health{
			Gauge: s.metrics.failing.WithLabelValues(stepNames[step]), Log: cfg.Log.With("step", stepNames[step]),
			Fails: "self-label fails for now; no mail waits for it", Works: "self-label works again",
		}
	}
	if r, m := cfg.Registerer, s.metrics; r != nil {
		r.MustRegister(m.stored, m.published, m.dropped, m.failing, m.after, m.waiting, m.late)
	}
	return s
}

// Answered takes a verdict about a tenant's reduced message, which it copies. It never waits.
// Verdicts that are unsure, and those about a message without an identity, are nothing to learn.
func (s *Service) Answered(tenant string, message []byte, v *stream.Verdict) {
	label := stream.Unlabelled
	switch v.Decision {
	case stream.DecideSpam:
		label = stream.Spam
	case stream.DecideHam:
		label = stream.Ham
	}
	if label == stream.Unlabelled || v.Identity == "" {
		return
	}
	size := int64(len(message))
	if s.bytes.Add(size) > maxQueuedBytes {
		s.bytes.Add(-size)
		s.metrics.drop(droppedQueue)
		return
	}
	e := stream.Event{
		ID: v.Identity + "/assume", Time: time.Now().UTC(), Source: Source, Tenant: tenant,
		Action: stream.Assume, Of: v.Identity, Label: label,
		Body: stream.Body{Kind: stream.Mail, Mail: bytes.Clone(message)},
	}
	select {
	case s.queue <- e:
	default:
		s.bytes.Add(-size)
		s.metrics.drop(droppedQueue)
	}
}

// Run stores and teaches answers until ctx ends. Then it stores what waits in memory, for two
// seconds at most. Nothing should be answered after ctx has ended.
func (s *Service) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { s.teach(ctx) })
	all.Go(func() { s.watch(ctx) })
	writebehind.Run(ctx, s.cfg.flush, writers, s.queue, func(work context.Context, e *stream.Event) {
		s.store(ctx, work, e)
		s.bytes.Add(-int64(len(e.Body.Mail)))
	})
	all.Wait()
}

// store stores an answer, and tries again until stopping ends. Each attempt ends with work.
func (s *Service) store(stopping, work context.Context, e *stream.Event) {
	err := s.retry.Do(stopping, func() error {
		err := s.cfg.Store.Put(work, e)
		if errors.Is(err, stream.ErrFull) || errors.Is(err, stream.ErrTooLarge) {
			s.health[storing].Note(nil) // the store answers
		} else {
			s.health[storing].Note(advice.Add(err))
		}
		return err
	})
	switch {
	case err == nil:
		s.metrics.stored.Inc()
	case errors.Is(err, stream.ErrFull):
		s.metrics.drop(droppedFull)
	case errors.Is(err, stream.ErrTooLarge):
		s.metrics.drop(droppedTooLarge)
	default:
		s.metrics.drop(droppedStopped)
	}
}
