package selflabel

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/stream/nats"
)

// Why an answer is not learnt, as the metrics show it.
const (
	droppedQueue      = "queue"     // the store was slower than the doors, or away
	droppedFull       = "full"      // as many bytes wait as may
	droppedTooLarge   = "too-large" // for NATS or Kafka
	droppedStopped    = "stopped"   // the store was away when the gateway stopped
	droppedUnreadable = "unreadable"
)

var stepNames = [steps]string{"store", "take", "publish"}

// metrics are what a service counts.
type metrics struct {
	stored, published prometheus.Counter
	dropped           *prometheus.CounterVec // reason
	failing           *prometheus.GaugeVec   // step
	after, waiting    prometheus.Gauge
	late              prometheus.GaugeFunc
	oldest            atomic.Int64 // Unix time in nanoseconds; 0: none waits
}

const prefix = "hamlet_self_label_"

func newMetrics(after time.Duration) *metrics {
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: prefix + name, Help: help}
	}
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Name: prefix + name, Help: help}
	}
	m := &metrics{
		stored: prometheus.NewCounter(counter("stored_total", "Answers that were stored until they are due.")),
		published: prometheus.NewCounter(counter("published_total", "Answers that nobody contradicted in time, "+
			"or whose message had a label: given to the learner, which tells them apart.")),
		dropped: prometheus.NewCounterVec(counter("dropped_total", "Answers that will not be learnt."), []string{"reason"}),
		failing: prometheus.NewGaugeVec(
			gauge("failing", "1 while answers cannot be stored, taken from the store, or published."), []string{"step"}),
		after:   prometheus.NewGauge(gauge("after_seconds", "How long an answer waits.")),
		waiting: prometheus.NewGauge(gauge("waiting", "Answers of this model that wait.")),
	}
	late := gauge("oldest_seconds", "Age of the oldest answer of this model that waits.")
	m.late = prometheus.NewGaugeFunc(late, func() float64 {
		if at := m.oldest.Load(); at != 0 {
			return time.Since(time.Unix(0, at)).Seconds()
		}
		return 0
	})
	m.after.Set(after.Seconds())
	for _, reason := range []string{droppedQueue, droppedFull, droppedTooLarge, droppedStopped, droppedUnreadable} {
		m.dropped.WithLabelValues(reason) // an alert sees the first increase
	}
	return m
}

func (m *metrics) drop(reason string) { m.dropped.WithLabelValues(reason).Inc() }

func (m *metrics) show(s nats.WaitingState) {
	m.waiting.Set(float64(s.Answers))
	at := int64(0)
	if !s.Oldest.IsZero() {
		at = s.Oldest.UnixNano()
	}
	m.oldest.Store(at)
}
