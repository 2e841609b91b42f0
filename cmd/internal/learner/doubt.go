package learner

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/eval"
)

// sourceMetrics count labels by source, for Prometheus, in a bounded number of
// series: a source gets series of its own with its tenth doubtful label, the
// first fifty that come so far do, and they keep them until the process ends; all
// others, and what a source had until then, are counted as otherSources. So
// sources that are many, or made up, cost nothing, and a counter never falls.
type sourceMetrics struct {
	doubtful, learnt *prometheus.CounterVec

	mu     sync.Mutex // partitions learn at once
	doubts eval.Doubts
	named  map[string]bool
}

const (
	namedFrom    = 10 // doubtful labels; SpamAssassin, clean, has 2 in all of 6,046 (measured 2026-11-21)
	mostNamed    = 50
	otherSources = "@others" // no source has that name: stream.Event.Validate refuses an @
)

func newSourceMetrics() *sourceMetrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "hamlet", Subsystem: "learner", Name: name, Help: help},
			[]string{"source"})
	}
	return &sourceMetrics{
		named: map[string]bool{},
		doubtful: counter("source_doubted_labels_total",
			"Events learnt whose label was held to be false, by source: the first fifty sources with ten of them, from then on, and all others together."),
		learnt: counter("source_labels_total", "Events learnt, of the sources in source_doubted_labels_total."),
	}
}

func (m *sourceMetrics) add(source string, φ float64) {
	m.mu.Lock()
	known := m.doubts.Add(source, φ)
	named := m.named[source]
	if !named && known.Doubtful >= namedFrom && len(m.named) < mostNamed {
		m.named[source], named = true, true
	}
	m.mu.Unlock()
	if !named {
		source = otherSources
	}
	m.learnt.WithLabelValues(source).Inc()
	if φ < 0.5 {
		m.doubtful.WithLabelValues(source).Inc()
	}
}

// doubtLogEvery is the shortest time between two of a partition's log lines about
// doubtful labels.
const doubtLogEvery = time.Minute

// A doubtLog writes about a partition's doubtful labels, at most one line a
// minute: how many there were since the last, and whose are the worst.
type doubtLog struct {
	doubts eval.Doubts
	said   int // doubtful labels when the last line was written
	next   time.Time
}

func (l *doubtLog) note(log *slog.Logger, now time.Time, source string, φ float64) {
	l.doubts.Add(source, φ)
	if φ >= 0.5 || now.Before(l.next) {
		return
	}
	worst := l.doubts.Worst(1)
	if len(worst) == 0 {
		return // no source of those kept has one
	}
	log.Info("labels held to be false", "since_last", l.doubts.Doubtful()-l.said, "so_far", l.doubts.Doubtful(), "of", l.doubts.Learnt(),
		"worst_source", worst[0].Source, "its_doubtful", worst[0].Doubtful, "its_labels", worst[0].Learnt)
	l.said, l.next = l.doubts.Doubtful(), now.Add(doubtLogEvery)
}
