package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"hamlet/stream"
	"hamlet/stream/mail"
)

// The endpoints of the service, and the second word of their subjects.
const (
	Score   = "score"
	Explain = "explain"
	Info    = "info"
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

var modelName = regexp.MustCompile(`^[a-z0-9-]+$`)

// Subject returns the subject of an endpoint: "hamlet.score", or "hamlet.score.billing"
// for the model billing.
func Subject(endpoint, model string) string {
	if model == "" || model == DefaultModel {
		return ServiceName + "." + endpoint
	}
	return ServiceName + "." + endpoint + "." + model
}

// A Scorer answers a service's requests. Its methods must be safe for concurrent use and
// end when ctx does. They return an [*Error] to choose the code of the answer:
// CodeBadRequest for a body that the model refuses, CodeUnavailable while there is no
// model. Score returns one verdict for each request, in order.
type Scorer interface {
	Score(ctx context.Context, requests []*stream.Event, explain bool) ([]stream.Verdict, error)
	Info(ctx context.Context) (stream.Info, error)
}

// AskerSubjects returns the subjects that a user needs who asks for scores and hears
// alerts, with the wildcards of NATS. Such a user must have no other: who may subscribe
// to the service's subjects can join its queue group and answer, and who may publish to
// the subjects of answers can forge them.
func AskerSubjects() (publish, subscribe []string) {
	for _, endpoint := range []string{Score, Explain, Info} {
		publish = append(publish, Subject(endpoint, ""), Subject(endpoint, "*"))
	}
	return publish, []string{natsgo.InboxPrefix + ">", alertSubjects}
}

// An Observation is one answered request, for metrics.
type Observation struct {
	Endpoint string        // Score, Explain or Info
	Door     string        // that the request came in by; empty if it named none
	Code     int           // 200, or the code of the error
	Messages int           // in the request; 0 if it could not be read
	Waited   time.Duration // from its arrival to the start of the work
	Took     time.Duration // from its arrival to its answer
}

// A ServiceConfig bounds a service. Zero fields mean the defaults.
type ServiceConfig struct {
	Model       string            // the model served; default DefaultModel
	Concurrency int               // requests worked on at once; default GOMAXPROCS
	Queue       int               // requests waiting; default 64 a worker. One more is answered 503
	Timeout     time.Duration     // from arrival to answer, waiting included; default 5 s. Then it is answered 503
	QueueBytes  int               // of the requests waiting; default 64 MiB, at least MaxBytes. One more is answered 503
	MaxBytes    int               // of a request; default mail.MaxSize. More is answered 413; a NATS server carries 1 MiB unless told otherwise
	MaxBatch    int               // events of an array; default 1000. More is answered 400
	Drain       time.Duration     // bounds the orderly stop; default 5 s
	Metadata    map[string]string // shown by discovery beside the model's name
	Observe     func(Observation) // called for every answer, concurrently; may be nil
	Log         *slog.Logger      // nil: silent
}

// A Service answers score requests on a connection. Services of one model, in any number
// of processes, share its requests.
type Service struct {
	conn   *natsgo.Conn
	scorer Scorer
	cfg    ServiceConfig

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

// NewService returns a service of scorer on conn, which the caller closes after Run has
// returned. The error reports everything that is wrong with cfg.
func NewService(conn *natsgo.Conn, scorer Scorer, cfg ServiceConfig) (*Service, error) {
	cfg.Model = cmp.Or(cfg.Model, DefaultModel)
	var errs []error
	if !modelName.MatchString(cfg.Model) {
		errs = append(errs, fmt.Errorf("model name %q: only a-z, 0-9 and - are allowed", clip(cfg.Model)))
	}
	nonNegative := func(name string, v int64) {
		if v < 0 {
			errs = append(errs, fmt.Errorf("%s: %d is negative", name, v))
		}
	}
	nonNegative("concurrency", int64(cfg.Concurrency))
	nonNegative("queue", int64(cfg.Queue))
	nonNegative("timeout", int64(cfg.Timeout))
	nonNegative("queue bytes", int64(cfg.QueueBytes))
	nonNegative("max bytes", int64(cfg.MaxBytes))
	nonNegative("max batch", int64(cfg.MaxBatch))
	nonNegative("drain", int64(cfg.Drain))
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("scoring service: %w", err)
	}
	cfg.Concurrency = cmp.Or(cfg.Concurrency, runtime.GOMAXPROCS(0))
	cfg.Queue = cmp.Or(cfg.Queue, 64*cfg.Concurrency)
	cfg.Timeout = cmp.Or(cfg.Timeout, 5*time.Second)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, mail.MaxSize)
	cfg.QueueBytes = max(cmp.Or(cfg.QueueBytes, 64<<20), cfg.MaxBytes)
	cfg.MaxBatch = cmp.Or(cfg.MaxBatch, 1000)
	cfg.Drain = cmp.Or(cfg.Drain, 5*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Observe == nil {
		cfg.Observe = func(Observation) {}
	}
	return &Service{
		conn:   conn,
		scorer: scorer,
		cfg:    cfg,
		queue:  make(chan job, cfg.Queue),
		ready:  make(chan struct{}),
		stats:  map[string]*endpointStats{Score: {}, Explain: {}, Info: {}},
	}, nil
}

// Ready is closed once the server knows the service's subscriptions: from then
// on requests reach it.
func (s *Service) Ready() <-chan struct{} { return s.ready }

// InFlight returns how many requests have been taken and not yet answered.
func (s *Service) InFlight() int { return int(s.inFlight.Load()) }

// Run serves until ctx ends and then stops in order: it takes no more, answers what it
// has taken, and returns nil once the answers are on their way. A service runs once. If
// the connection is closed meanwhile, Run returns an error.
func (s *Service) Run(ctx context.Context) error {
	if s.started.Swap(true) {
		return errors.New("scoring service: it runs or has run already")
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
	for _, endpoint := range []string{Score, Explain, Info} {
		subject := Subject(endpoint, s.cfg.Model)
		if err = service.AddEndpoint(endpoint, s.take(endpoint), micro.WithEndpointSubject(subject)); err != nil {
			err = fmt.Errorf("scoring service: listen on %s: %w", subject, err)
			break
		}
	}
	if err == nil {
		err = s.serve(ctx, lost)
	}
	s.stop(service)
	workers.Wait()
	s.flush()
	return err
}

// serve waits until ctx ends or the connection is closed.
func (s *Service) serve(ctx context.Context, lost <-chan struct{}) error {
	if s.subscribed(ctx) {
		if err := s.refused(); err != nil {
			return err
		}
		close(s.ready)
		s.cfg.Log.Info("scoring service listens", "subject", Subject(Score, s.cfg.Model),
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
	for _, endpoint := range []string{Score, Explain, Info} {
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
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Drain)
	defer cancel()
	if err := service.Stop(); err != nil && !errors.Is(err, natsgo.ErrConnectionClosed) {
		s.cfg.Log.Warn("scoring service: stop", "error", err)
	}
	if s.conn.IsConnected() {
		if err := s.conn.FlushWithContext(ctx); err != nil {
			s.cfg.Log.Warn("scoring service: the server didn't confirm the stop; requests on their way to it are lost", "error", err)
		}
	}
	handled := make(chan struct{})
	if err := s.conn.Barrier(func() { close(handled) }); err == nil { // else the connection is closed
		select {
		case <-handled:
		case <-ctx.Done():
			s.cfg.Log.Warn("scoring service: handlers didn't end in time", "timeout", s.cfg.Drain)
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
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Drain)
	defer cancel()
	if err := s.conn.FlushWithContext(ctx); err != nil {
		s.cfg.Log.Warn("scoring service: the last answers may be lost", "error", err)
	}
}
