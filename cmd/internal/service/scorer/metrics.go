package scorer

import (
	"cmp"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hamlet/stream"
	"hamlet/stream/questions"
)

// metrics are what a scorer shows to Prometheus.
type metrics struct {
	requests      *prometheus.CounterVec
	byDoor        *prometheus.CounterVec
	doors         doors
	messages      *prometheus.CounterVec
	decided       map[stream.Decision]prometheus.Counter // of all decisions; never written
	seconds       *prometheus.HistogramVec
	waited        prometheus.Observer
	swaps         prometheus.Counter
	loadFailures  prometheus.Counter
	written, lost *prometheus.CounterVec // decisions, by where they go
	failing       prometheus.Gauge
	series        sync.Map // answerKind → *answerSeries: a few dozen, for maxDoors bounds the labels

	mailKept    prometheus.Counter
	mailLost    *prometheus.CounterVec // reason
	mailFailing prometheus.Gauge
}

// newMetrics registers a scorer's metrics with r, or with nobody if r is nil.
func newMetrics(r prometheus.Registerer) *metrics {
	factory := promauto.With(r)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: "hamlet_scorer_" + name, Help: help}, labels)
	}
	seconds := func(name, help string, labels ...string) *prometheus.HistogramVec {
		buckets := prometheus.ExponentialBuckets(25e-6, 2, 18) // 25 µs, a bare round trip, to 3.3 s
		opts := prometheus.HistogramOpts{Name: "hamlet_scorer_" + name, Help: help, Buckets: buckets}
		return factory.NewHistogramVec(opts, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return factory.NewGauge(prometheus.GaugeOpts{Name: "hamlet_scorer_" + name, Help: help})
	}
	m := &metrics{
		requests: counter("requests_total",
			"Requests answered, by endpoint and code (200, or the service error's).", "endpoint", "code"),
		byDoor: counter("door_requests_total", "Requests answered, by the door that they came in by: "+
			"nats where a request named none, other beyond 16 doors.", "door"),
		messages: counter("messages_total",
			"Messages asked about, by endpoint: more than requests where batches come.", "endpoint"),
		decided: map[stream.Decision]prometheus.Counter{},
		seconds: seconds("request_seconds", "Time from a request's arrival to its answer.", "endpoint"),
		waited:  seconds("queue_seconds", "Time that requests waited for a worker.").WithLabelValues(),
		swaps: counter("swaps_total",
			"Models that were put in place of another, the first included.").WithLabelValues(),
		loadFailures: counter("load_failures_total",
			"Times that the state became one that could not be read or served.").WithLabelValues(),
		written: counter("journal_lines_total", "Decisions written, by where to: jetstream, or log.", "to"),
		lost: counter("journal_lost_total",
			"Decisions that were not written, because too many waited or the scorer stopped.", "to"),
		failing: gauge("journal_failing", "1 while JetStream does not take decisions."),
		mailKept: counter("mail_kept_total",
			"Messages stored for review, those included that were stored before.").WithLabelValues(),
		mailLost:    counter("mail_lost_total", "Messages that were not stored for review.", "reason"),
		mailFailing: gauge("mail_failing", "1 while mail cannot be stored for review."),
	}
	for _, reason := range []string{mailQueue, mailTooLarge, mailStopped} {
		m.mailLost.WithLabelValues(reason) // an alert sees the first increase
	}
	verdicts := counter("verdicts_total", "Verdicts given.", "verdict")
	for _, d := range []stream.Decision{stream.DecideSpam, stream.DecideHam, stream.DecideUnsure} {
		m.decided[d] = verdicts.WithLabelValues(string(d))
	}
	return m
}

// registerState registers the metrics that are read from s.
func (s *Scorer) registerState(r prometheus.Registerer) {
	factory := promauto.With(r)
	gauge := func(name, help string, value func() float64) {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "hamlet_scorer_" + name, Help: help}, value)
	}
	flag := func(name, help string, holds func() bool) {
		gauge(name, help, func() float64 {
			if holds() {
				return 1
			}
			return 0
		})
	}
	ofModel := func(name, help string, value func(*snapshot) float64) {
		gauge(name, help+"; NaN before the first.", func() float64 {
			if model := s.follower.current(); model != nil {
				return value(model)
			}
			return math.NaN()
		})
	}
	gauge("in_flight", "Requests taken and not yet answered.",
		func() float64 { return float64(s.cfg.Questions.InFlight()) })
	ofModel("model_age_seconds", "Time since the served checkpoint was saved",
		func(m *snapshot) float64 { return m.age(time.Now()).Seconds() })
	ofModel("model_events", "Events that the served model has learnt",
		func(m *snapshot) float64 { return float64(m.info.Events) })
	ofModel("model_partitions", "1 with a model that is served", func(*snapshot) float64 { return 1 })
	flag("pinned", "1 while answers come from a version that an operator pinned.",
		func() bool { pinned, _ := s.follower.answering.Load().pinned(); return pinned })
	flag("lost_pins", "1 while the state has lost the pinned version: the newest is served in its place.",
		func() bool { _, lost := s.follower.answering.Load().pinned(); return lost })
	flag("promoted", "1 while another model answers in the place of the scorer's own, because an operator promoted it.",
		func() bool { return s.follower.promotion.Load() != nil })
	flag("expected_withdrawn", "1 while an incident of concept, label noise or a source is open or suspected in the "+
		"served model: answers are left out of hamlet_scorer_expected_errors_total.",
		func() bool { m := s.follower.current(); return m != nil && m.doubtful })
	if r != nil {
		r.MustRegister(promises{s}, s.expected)
	}
	flag("stale", "1 while the state can't be read in full and the last good model is served.", s.follower.stale)
}

// observe counts one answer.
func (m *metrics) observe(o questions.Observation) {
	of := m.of(answerKind{o.Endpoint, o.Code, m.doors.label(o.Door)})
	of.requests.Inc()
	of.byDoor.Inc()
	of.messages.Add(float64(o.Messages))
	of.seconds.Observe(o.Took.Seconds())
	if o.Endpoint != questions.Info {
		m.waited.Observe(o.Waited.Seconds())
	}
}

// An answerKind is what the series that an answer is counted in depend on.
type answerKind struct {
	endpoint string
	code     int
	door     string // its label
}

// An answerSeries counts the answers of a kind.
type answerSeries struct {
	requests, byDoor, messages prometheus.Counter
	seconds                    prometheus.Observer
}

// of returns the series of a kind. To find each by its labels takes ten times as long (MEASURED.md).
func (m *metrics) of(kind answerKind) *answerSeries {
	if known, ok := m.series.Load(kind); ok {
		return known.(*answerSeries)
	}
	series, _ := m.series.LoadOrStore(kind, &answerSeries{
		requests: m.requests.WithLabelValues(kind.endpoint, strconv.Itoa(kind.code)),
		byDoor:   m.byDoor.WithLabelValues(kind.door),
		messages: m.messages.WithLabelValues(kind.endpoint),
		seconds:  m.seconds.WithLabelValues(kind.endpoint),
	})
	return series.(*answerSeries)
}

func (m *metrics) answered(verdicts []stream.Verdict) {
	for i := range verdicts {
		m.decided[verdicts[i].Decision].Inc()
	}
}

// maxDoors bounds the series of a metric: clients choose the names of doors.
const maxDoors = 16

// The labels of requests that named no door, and of those beyond maxDoors.
const (
	directly   = "nats"
	otherDoors = "other"
)

// doors are the labels of the doors that requests came in by. They may be used
// concurrently.
type doors struct {
	mu    sync.Mutex
	known map[string]bool // at most maxDoors; guarded by mu
}

// label returns a door's label: its name if it is one of the first maxDoors.
func (d *doors) label(name string) string {
	name = cmp.Or(name, directly)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.known[name] {
		if len(d.known) == maxDoors {
			return otherDoors
		}
		if d.known == nil {
			d.known = map[string]bool{}
		}
		d.known[name] = true
	}
	return name
}
