package scorer

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/stream"
	"hamlet/stream/questions"
)

// metrics are what a scorer shows to Prometheus.
type metrics struct {
	requests      *prometheus.CounterVec
	byDoor        *prometheus.CounterVec
	doors         doors
	messages      *prometheus.CounterVec
	verdicts      *prometheus.CounterVec
	seconds       *prometheus.HistogramVec
	waited        prometheus.Histogram
	swaps         prometheus.Counter
	loadFailures  prometheus.Counter
	written, lost *prometheus.CounterVec // decisions, by where they go
	failing       prometheus.Gauge

	mailKept    prometheus.Counter
	mailLost    *prometheus.CounterVec // reason
	mailFailing prometheus.Gauge
}

func newMetrics() *metrics {
	opts := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "hamlet", Subsystem: "scorer", Name: name, Help: help}
	}
	buckets := prometheus.ExponentialBuckets(25e-6, 2, 18) // 25 µs, a bare round trip, to 3.3 s
	m := &metrics{
		requests: prometheus.NewCounterVec(opts("requests_total",
			"Requests answered, by endpoint and code (200, or the service error's)."), []string{"endpoint", "code"}),
		byDoor: prometheus.NewCounterVec(opts("door_requests_total",
			"Requests answered, by the door that they came in by: "+
				"nats where a request named none, other beyond 16 doors."), []string{"door"}),
		messages: prometheus.NewCounterVec(opts("messages_total",
			"Messages asked about, by endpoint: more than requests where batches come."), []string{"endpoint"}),
		verdicts: prometheus.NewCounterVec(opts("verdicts_total", "Verdicts given."), []string{"verdict"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "hamlet", Subsystem: "scorer",
			Name: "request_seconds",
			Help: "Time from a request's arrival to its answer.", Buckets: buckets}, []string{"endpoint"}),
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "hamlet", Subsystem: "scorer",
			Name: "queue_seconds",
			Help: "Time that requests waited for a worker.", Buckets: buckets}),
		swaps: prometheus.NewCounter(opts("swaps_total",
			"Models that were put in place of another, the first included.")),
		loadFailures: prometheus.NewCounter(opts("load_failures_total",
			"Times that the state became one that could not be read or served.")),
	}
	m.written = prometheus.NewCounterVec(opts("journal_lines_total",
		"Decisions written, by where to: jetstream, or log."), []string{"to"})
	m.lost = prometheus.NewCounterVec(opts("journal_lost_total",
		"Decisions that were not written, because too many waited or the scorer stopped."), []string{"to"})
	m.failing = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "hamlet", Subsystem: "scorer", Name: "journal_failing",
		Help: "1 while JetStream does not take decisions."})
	m.mailKept = prometheus.NewCounter(opts("mail_kept_total",
		"Messages stored for review, those included that were stored before."))
	m.mailLost = prometheus.NewCounterVec(opts("mail_lost_total", "Messages that were not stored for review."),
		[]string{"reason"})
	m.mailFailing = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "hamlet", Subsystem: "scorer",
		Name: "mail_failing",
		Help: "1 while mail cannot be stored for review."})
	for _, reason := range []string{mailQueue, mailTooLarge, mailStopped} {
		m.mailLost.WithLabelValues(reason) // an alert sees the first increase
	}
	for _, d := range []stream.Decision{stream.DecideSpam, stream.DecideHam, stream.DecideUnsure} {
		m.verdicts.WithLabelValues(string(d))
	}
	return m
}

// register registers m, and metrics that are read from s.
func (m *metrics) register(r prometheus.Registerer, s *Scorer) error {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "hamlet", Subsystem: "scorer", Name: name,
			Help: help}, value)
	}
	flag := func(name, help string, holds func() bool) prometheus.Collector {
		return gauge(name, help, func() float64 {
			if holds() {
				return 1
			}
			return 0
		})
	}
	ofModel := func(value func(*snapshot) float64) func() float64 {
		return func() float64 {
			if model := s.follower.current(); model != nil {
				return value(model)
			}
			return math.NaN()
		}
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		m.requests, m.byDoor, m.messages, m.verdicts, m.seconds, m.waited, m.swaps, m.loadFailures, m.written, m.lost,
		m.failing, m.mailKept, m.mailLost, m.mailFailing,
		gauge("in_flight", "Requests taken and not yet answered.",
			func() float64 { return float64(s.cfg.Questions.InFlight()) }),
		gauge("model_age_seconds", "Time since the served checkpoint was saved; NaN before the first.",
			ofModel(func(m *snapshot) float64 { return m.age(time.Now()).Seconds() })),
		gauge("model_events", "Events that the served model has learnt; NaN before the first.",
			ofModel(func(m *snapshot) float64 { return float64(m.info.Events) })),
		gauge("model_partitions", "1 with a model that is served; NaN before the first.",
			ofModel(func(*snapshot) float64 { return 1 })),
		flag("pinned", "1 while answers come from a version that an operator pinned.",
			func() bool { pinned, _ := s.follower.answering.Load().pinned(); return pinned }),
		flag("lost_pins", "1 while the state has lost the pinned version: the newest is served in its place.",
			func() bool { _, lost := s.follower.answering.Load().pinned(); return lost }),
		flag("promoted", "1 while another model answers in the place of the scorer's own, because an operator promoted it.",
			func() bool { return s.follower.promotion.Load() != nil }),
		flag("stale", "1 while the state can't be read in full and the last good model is served.", s.follower.stale),
	} {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}

// observe counts one answer.
func (m *metrics) observe(o questions.Observation) {
	m.requests.WithLabelValues(o.Endpoint, strconv.Itoa(o.Code)).Inc()
	m.byDoor.WithLabelValues(m.doors.label(o.Door)).Inc()
	m.messages.WithLabelValues(o.Endpoint).Add(float64(o.Messages))
	m.seconds.WithLabelValues(o.Endpoint).Observe(o.Took.Seconds())
	if o.Endpoint != questions.Info {
		m.waited.Observe(o.Waited.Seconds())
	}
}

func (m *metrics) answered(verdicts []stream.Verdict) {
	for i := range verdicts {
		m.verdicts.WithLabelValues(string(verdicts[i].Decision)).Inc()
	}
}
