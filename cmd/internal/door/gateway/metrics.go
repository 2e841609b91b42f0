package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"hamlet/stream"
)

// metrics are what a gateway counts, by door.
type metrics struct {
	verdicts *prometheus.CounterVec // door, verdict
	passed   *prometheus.CounterVec // door, reason
	learnt   *prometheus.CounterVec // door, label, outcome
	garbage  *prometheus.CounterVec // door
	conns    *prometheus.GaugeVec   // door
	took     *prometheus.HistogramVec
	held     prometheus.Gauge
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hamlet_gateway_" + name, Help: help}, labels)
	}
	return &metrics{
		verdicts: counter("messages_total", "Messages answered.", "door", "verdict"),
		passed:   counter("unmarked_total", "Messages that passed without a verdict.", "door", "reason"),
		learnt:   counter("labels_total", "Labels that clients gave.", "door", "label", "outcome"),
		garbage:  counter("protocol_errors_total", "Requests that the door's protocol does not have.", "door"),
		conns: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hamlet_gateway_connections", Help: "Open connections.",
		}, []string{"door"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hamlet_gateway_seconds", Help: "From a message's last byte to its verdict.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5},
		}, []string{"door"}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hamlet_gateway_held_bytes", Help: "Bytes of messages under way that count in the memory's budget.",
		}),
	}
}

// open shows a door's counters at 0, so that an alert sees the first increase.
func (m *metrics) open(door string) {
	for _, reason := range []string{passedNoAnswer, passedRefused, passedTooLarge, passedMemory, passedBroken} {
		m.passed.WithLabelValues(door, reason)
	}
	for _, lesson := range []Lesson{LearnSpam, LearnHam, Forget} {
		m.learnt.WithLabelValues(door, lesson.String(), learnFailed)
	}
	m.garbage.WithLabelValues(door)
}

// answered counts a verdict.
func (m *metrics) answered(door string, d stream.Decision) {
	m.verdicts.WithLabelValues(door, string(d)).Inc()
}

func (m *metrics) register(r prometheus.Registerer, g *Gateway) {
	failing := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hamlet_gateway_failing", Help: "1 while the scoring service does not answer.",
	}, func() float64 {
		g.outage.mu.Lock()
		defer g.outage.mu.Unlock()
		if g.outage.failing {
			return 1
		}
		return 0
	})
	r.MustRegister(m.verdicts, m.passed, m.learnt, m.garbage, m.conns, m.took, m.held, failing)
}
