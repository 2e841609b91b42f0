package learner

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/algos/trust"
	"hamlet/stream"
)

// A givenLabel is what Answered.Labelled takes, while a standby keeps it.
type givenLabel struct {
	identity, source string
	label            stream.Label
	at               time.Time
	withdrawn        bool
	doubt            *doubt // nil: the label is not doubtful
}

// A doubt is what the journal says of a doubtful label besides.
type doubt struct {
	tenant string
	p      float64 // of spam, before the label was learnt
	stream.Doubt
}

// matureAt is how many events a model has learnt before people are told which labels it doubts. Before
// that it knows too little of mail.
const matureAt = 100

// given returns the label that an event has given a message, or has withdrawn, if somebody wants to
// know it. A label is doubtful if φ < ½ and the model is mature. A muted source's label counts for nothing.
func given(m *model.Model, r *stream.Record, in *incoming, applied *Applied) (g givenLabel, wanted bool) {
	e := &in.Event
	g = givenLabel{identity: in.identity, source: e.Source, label: e.Label, at: r.Time}
	switch receipt := applied.Effect.Receipt; {
	case in.identity == "":
		return g, false
	case applied.Outcome.Taught() && m.Role(e.Source) == trust.Muted:
		return g, false // it counts for nothing, so nothing is held against it
	case applied.Outcome.Taught():
	case applied.Outcome == Unlearned && receipt != nil && receipt.Outcome == model.Withdrawn:
		if g.withdrawn, g.label = true, stream.Ham; receipt.Spam {
			g.label = stream.Spam
		}
		return g, true
	default:
		return g, false
	}
	if effect := &applied.Effect; effect.Phi < 0.5 && m.Events() > matureAt {
		g.doubt = &doubt{e.Tenant, effect.Prediction.P(), stream.Doubt{Phi: effect.Phi, Offset: r.Offset}}
		return g, true
	}
	return g, e.Body.Kind == stream.Mail || e.Action != stream.Learn
}

func (g *givenLabel) entry() stream.JournalEntry {
	e := stream.JournalEntry{Time: g.at, ID: g.identity, Label: g.label, Source: g.source, Withdrawn: g.withdrawn}
	if d := g.doubt; d != nil {
		e.Tenant, e.P, e.Doubt = d.tenant, d.p, &d.Doubt
	}
	return e
}

// sourceMetrics count labels by source, in a bounded number of series. A source gets
// series of its own with its tenth doubtful label, if fewer than fifty have them, and
// keeps them until the process ends. The other sources are counted together as
// otherSources. So the number of series is bounded, and no counter falls.
type sourceMetrics struct {
	doubtful, learnt *prometheus.CounterVec

	mu     sync.Mutex // whoever shows the figures reads beside the learner
	doubts eval.Doubts
	named  map[string]bool // the sources with series of their own, at most maxNamed
}

const (
	namedFrom    = 10 // doubtful labels; SpamAssassin, clean, has 2 in all of 6,046 (measured 2026-11-21)
	maxNamed     = 50
	otherSources = "@others" // no source has that name: stream.Event.Validate refuses an @
)

func newSourceMetrics(counters func(name, help string, labels ...string) *prometheus.CounterVec) *sourceMetrics {
	return &sourceMetrics{
		named: map[string]bool{},
		doubtful: counters("hamlet_learner_source_doubted_labels_total",
			"Events learnt whose label is probably false, by source: "+
				"the first fifty sources with ten of them, from then on, and all others together.",
			"source"),
		learnt: counters("hamlet_learner_source_labels_total",
			"Events learnt, of the sources in source_doubted_labels_total.", "source"),
	}
}

func (m *sourceMetrics) add(source string, φ float64) {
	m.mu.Lock()
	known := m.doubts.Add(source, φ)
	named := m.named[source]
	if !named && known.Doubtful >= namedFrom && len(m.named) < maxNamed {
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

const doubtLogEvery = time.Minute

// A doubtLog logs a model's doubtful labels, at most one line a minute: how many
// there were since the last line, and the worst source.
type doubtLog struct {
	doubts eval.Doubts
	logged int       // doubtful labels when the last line was written
	next   time.Time // no line before
}

func (l *doubtLog) note(log *slog.Logger, now time.Time, source string, φ float64) {
	l.doubts.Add(source, φ)
	if φ >= 0.5 || now.Before(l.next) {
		return
	}
	worst := l.doubts.Worst(1)
	if len(worst) == 0 {
		return // doubts counts a bounded number of sources, and none of them has any
	}
	log.Info("labels are probably false", "since_last", l.doubts.Doubtful()-l.logged, "so_far", l.doubts.Doubtful(),
		"of", l.doubts.Learnt(),
		"worst_source", worst[0].Source, "its_doubtful", worst[0].Doubtful, "its_labels", worst[0].Learnt)
	l.logged, l.next = l.doubts.Doubtful(), now.Add(doubtLogEvery)
}
