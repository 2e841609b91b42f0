package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/questions"
)

// ServiceName is the service's name, its queue group and the first word of its
// subjects.
const ServiceName = "hamlet"

// DefaultModel is the model whose subjects carry no name.
const DefaultModel = "default"

// MetadataNumerics is the key under which a scorer says in discovery up to which numerics it
// reads models. A scorer without it follows no promotion.
const MetadataNumerics = "numerics"

// serviceVersion is the wire's version, as NATS' service discovery shows it.
const serviceVersion = "1.0.0"

// stopTimeout bounds each step of an orderly stop.
const stopTimeout = 5 * time.Second

// Subject returns the subject of an endpoint: "hamlet.score", or "hamlet.score.billing"
// for the model billing.
func Subject(endpoint, model string) string {
	if model == "" || model == DefaultModel {
		return ServiceName + "." + endpoint
	}
	return ServiceName + "." + endpoint + "." + model
}

// AskerSubjects returns the subjects that a user needs who asks for scores and hears
// alerts, with the wildcards of NATS. Such a user must have no other: who may subscribe
// to the service's subjects can join its queue group and answer, and who may publish to
// the subjects of answers can forge them.
func AskerSubjects() (publish, subscribe []string) {
	for _, endpoint := range []string{questions.Score, questions.Explain, questions.Info} {
		publish = append(publish, Subject(endpoint, ""), Subject(endpoint, "*"))
	}
	return publish, []string{natsgo.InboxPrefix + ">", alertSubjects}
}

// A ServiceConfig bounds a service. Zero fields mean the defaults.
type ServiceConfig struct {
	Model       string            // the model served; default DefaultModel
	Concurrency int               // requests worked on at once; default GOMAXPROCS
	Queue       int               // requests waiting; default 64 a worker. One more is answered 503
	Timeout     time.Duration     // from arrival to answer, waiting included; default 5 s. Then it is answered 503
	QueueBytes  int               // of the requests waiting; default 64 MiB, at least MaxBytes. One more is answered 503
	MaxBytes    int               // of a request; default mail.MaxSize. More is answered 413
	MaxBatch    int               // events of an array; default 1000. More is answered 400
	Metadata    map[string]string // shown by discovery beside the model's name
	Log         *slog.Logger      // nil: silent
}

// A Service brings the questions of a connection to an answerer: it is a [questions.Questions].
// Services of one model, in any number of processes, share its requests.
type Service struct {
	conn    *natsgo.Conn
	scorer  questions.Answerer          // set by Serve
	observe func(questions.Observation) // set by Serve
	cfg     ServiceConfig

	queueMu  sync.RWMutex // held to send to queue (for reading) and to close it (for writing)
	closed   bool         // queue is closed; only stop writes it
	queue    chan job
	queued   atomic.Int64 // bytes in queue: at most QueueBytes, plus what concurrent attempts add
	ready    chan struct{}
	started  atomic.Bool
	inFlight atomic.Int64
	statsMu  sync.Mutex
	stats    map[string]*endpointStats // by endpoint; guarded by statsMu
}

// NewService returns a service on conn, which the caller closes after Serve has returned. The error
// reports everything that is wrong with cfg.
func NewService(conn *natsgo.Conn, cfg ServiceConfig) (*Service, error) {
	cfg.Model = cmp.Or(cfg.Model, DefaultModel)
	var errs []error
	if err := stream.CheckModelName(cfg.Model); err != nil {
		errs = append(errs, err)
	}
	if cfg.Concurrency < 0 || cfg.Queue < 0 {
		errs = append(errs, fmt.Errorf("concurrency %d and queue %d: none is negative", cfg.Concurrency, cfg.Queue))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("scoring service: %w", err)
	}
	cfg.Concurrency = cmp.Or(cfg.Concurrency, runtime.GOMAXPROCS(0))
	cfg.Queue = cmp.Or(cfg.Queue, 64*cfg.Concurrency)
	cfg.Timeout = cmp.Or(cfg.Timeout, 5*time.Second)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, mail.MaxSize)
	cfg.QueueBytes = max(cmp.Or(cfg.QueueBytes, 64<<20), cfg.MaxBytes)
	cfg.MaxBatch = cmp.Or(cfg.MaxBatch, 1000)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Service{
		conn:  conn,
		cfg:   cfg,
		queue: make(chan job, cfg.Queue),
		ready: make(chan struct{}),
		stats: map[string]*endpointStats{questions.Score: {}, questions.Explain: {}, questions.Info: {}},
	}, nil
}

// Ready is closed once the server knows the service's subscriptions: from then
// on requests reach it.
func (s *Service) Ready() <-chan struct{} { return s.ready }

// InFlight returns how many requests have been taken and not yet answered.
func (s *Service) InFlight() int { return int(s.inFlight.Load()) }

// Connected reports whether there is a server at present.
func (s *Service) Connected() bool { return s.conn.IsConnected() }

// Serve serves until ctx ends and then stops in order: it takes no more, answers what it
// has taken, and returns nil once the answers are on their way. A service runs once. If
// the connection is closed meanwhile, Serve returns an error.
func (s *Service) Serve(ctx context.Context, scorer questions.Answerer, observe func(questions.Observation)) error {
	if s.started.Swap(true) {
		return errors.New("scoring service: it runs or has run already")
	}
	if s.scorer, s.observe = scorer, observe; observe == nil {
		s.observe = func(questions.Observation) {}
	}
	lost := make(chan struct{})
	metadata := map[string]string{"model": s.cfg.Model}
	maps.Copy(metadata, s.cfg.Metadata)
	service, err := micro.AddService(s.conn, micro.Config{
		Name:        ServiceName,
		Version:     serviceVersion,
		Description: "probabilities of spam from the model " + s.cfg.Model,
		Metadata:    metadata,
		QueueGroup:  ServiceName,
		DoneHandler: func(micro.Service) { close(lost) },
		ErrorHandler: func(_ micro.Service, err *micro.NATSError) {
			s.cfg.Log.Warn("scoring service", "subject", err.Subject, "error", err.Description)
		},
		StatsHandler: s.endpointStats,
	})
	if err != nil {
		return fmt.Errorf("scoring service for model %s: %w", s.cfg.Model, err)
	}
	var workers sync.WaitGroup
	for range s.cfg.Concurrency {
		workers.Go(s.work)
	}
	for _, endpoint := range []string{questions.Score, questions.Explain, questions.Info} {
		subject := Subject(endpoint, s.cfg.Model)
		if err = service.AddEndpoint(endpoint, s.take(endpoint), micro.WithEndpointSubject(subject)); err != nil {
			err = fmt.Errorf("scoring service: listen on %s: %w", subject, err)
			break
		}
	}
	if err == nil {
		err = s.wait(ctx, lost)
	}
	s.stop(service)
	workers.Wait()
	s.flush()
	return err
}

// wait waits until ctx ends or the connection is closed.
func (s *Service) wait(ctx context.Context, lost <-chan struct{}) error {
	if s.subscribed(ctx) {
		if err := s.refused(); err != nil {
			return err
		}
		close(s.ready)
		s.cfg.Log.Info("scoring service listens", "subject", Subject(questions.Score, s.cfg.Model),
			"concurrency", s.cfg.Concurrency, "queue", s.cfg.Queue)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-lost:
		if ctx.Err() != nil {
			return nil
		}
		return errors.New("scoring service: the nats connection was closed")
	}
}

// refused returns an error if the server refused a subscription to an endpoint. The
// endpoints are subscribed to last, so that this refusal is the connection's last
// error. A refusal of discovery ($SRV) is only logged.
func (s *Service) refused() error {
	last := s.conn.LastError()
	operation, refused := violation(last)
	if operation != "Subscription" {
		return nil
	}
	for _, endpoint := range []string{questions.Score, questions.Explain, questions.Info} {
		if subject := Subject(endpoint, s.cfg.Model); refused == subject {
			return fmt.Errorf("scoring service: the user may not listen on %s: allow it to subscribe to %s.> and $SRV.>, "+
				"and to publish to %s>: %w", subject, ServiceName, natsgo.InboxPrefix, last)
		}
	}
	return nil
}

// subscribed waits until the server answers a ping that follows the subscriptions, and so
// has seen them. It waits for a server that is down, and returns false if ctx ended or
// the connection was closed.
func (s *Service) subscribed(ctx context.Context) bool {
	changed := s.conn.StatusChanged(natsgo.CONNECTED, natsgo.CLOSED)
	defer s.conn.RemoveStatusListener(changed)
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		err := s.conn.FlushWithContext(attempt)
		failed := err != nil && ctx.Err() == nil && !s.conn.IsClosed()
		if failed {
			select {
			case <-changed:
			case <-attempt.Done():
			}
		}
		cancel()
		if !failed {
			return err == nil
		}
	}
}

// stop ends the subscriptions and, after their last messages, closes the queue. The
// ping's answer follows every message that the server sent before it saw the
// subscriptions end, and the barrier follows their handlers.
func (s *Service) stop(service micro.Service) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := service.Stop(); err != nil && !errors.Is(err, natsgo.ErrConnectionClosed) {
		s.cfg.Log.Warn("scoring service: stop", "error", err)
	}
	if s.conn.IsConnected() {
		if err := s.conn.FlushWithContext(ctx); err != nil {
			s.cfg.Log.Warn("scoring service: the server didn't confirm the stop; requests on their way to it are lost",
				"error", err)
		}
	}
	handled := make(chan struct{})
	if err := s.conn.Barrier(func() { close(handled) }); err == nil { // else the connection is closed
		select {
		case <-handled:
		case <-ctx.Done():
			s.cfg.Log.Warn("scoring service: handlers didn't end in time", "timeout", stopTimeout)
		}
	}
	s.queueMu.Lock()
	s.closed = true
	close(s.queue)
	s.queueMu.Unlock()
}

// flush sends the last answers.
func (s *Service) flush() {
	if !s.conn.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := s.conn.FlushWithContext(ctx); err != nil {
		s.cfg.Log.Warn("scoring service: the last answers may be lost", "error", err)
	}
}
