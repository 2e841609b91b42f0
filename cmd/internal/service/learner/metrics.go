package learner

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/stream"
)

// Metrics are what a learner shows to Prometheus. Metrics of alarms, windows and
// rebuilds have names of models, not of learners.
type Metrics struct {
	records, doubted, alerts, rebuilds     *prometheus.CounterVec
	rawMail, logLoss, scored, wrong        prometheus.Counter
	failedSave                             prometheus.Counter
	next, lag, events, epsilon, unsaved    *prometheus.GaugeVec
	windowBytes, pendingAlerts, unsavedFor *prometheus.GaugeVec
	active, kept, lost                     *prometheus.GaugeVec
	takeovers                              *prometheus.CounterVec
	lastBeat                               atomic.Int64         // in Unix nanoseconds; 0: this learner is not active
	shadowing                              *prometheus.GaugeVec // by model and the one that it is the shadow of
	flipRate                               *prometheus.GaugeVec // by body
	gateOpen, gateLead                     *prometheus.GaugeVec // by body
	alarm, level, reference, threshold     *prometheus.GaugeVec // by kind and body
	saves                                  prometheus.Histogram
	bytes                                  prometheus.Gauge
	sources                                *sourceMetrics
	trust                                  *trustMetrics

	gauges []*prometheus.GaugeVec // all that gauge makes
}

// partition is the label of metrics that had a partition once: dashboards have it.
const partition = "0"

// NewMetrics registers a learner's metrics with r, or with nobody if r is nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{}
	factory := promauto.With(r)
	counter := func(name, help string) prometheus.Counter {
		return factory.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := factory.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, append([]string{"partition"}, labels...))
		m.gauges = append(m.gauges, g)
		return g
	}
	m.records = counters("hamlet_learner_records_total",
		"Records read, by what became of them: "+
			"learned, relearned, unlearned, corrected, uncorrected (a correction that changed nothing), duplicate, left-out, "+
			"followed (a role of a source), assumed, not-assumed, dead-letter.", "partition", "outcome")
	m.doubted = counters("hamlet_learner_doubted_labels_total",
		"Events learnt whose label is probably false (label trust below one half), by the label given.", "label")
	m.rawMail = counter("hamlet_learner_raw_mail_total", "Mails that were read as raw text, in whole or part.")
	m.logLoss = counter("hamlet_learner_log_loss_nats_total",
		"Sum of the log loss of each event before it was learnt, against the label given.")
	m.scored = counter("hamlet_learner_scored_total", "Events in log_loss_nats_total.")
	m.wrong = counter("hamlet_learner_wrong_total", "Events that the model classified wrongly before it learnt them.")
	m.failedSave = counter("hamlet_learner_failed_saves_total", "Saves that failed; the learner goes on and tries again.")
	m.next = gauge("hamlet_learner_next_offset", "Next offset to read.")
	m.lag = gauge("hamlet_learner_lag_records", "Records between the next offset and the log's end as of the last fetch.")
	m.events = gauge("hamlet_learner_events", "The model's event count.")
	m.epsilon = gauge("hamlet_learner_label_flip_rate", "The model's estimate of the labels' flip rate.")
	m.unsaved = gauge("hamlet_learner_unsaved_records", "Records read since the last save.")
	m.unsavedFor = gauge("hamlet_learner_unsaved_seconds",
		"Time since the oldest record was read that no save covers; 0 if all are saved.")
	m.active = gauge("hamlet_learner_active", "1 for the learner that publishes and saves the model, 0 for a standby.",
		"model")
	m.kept = gauge("hamlet_learner_kept",
		"Alerts, dead letters, receipts and labels that a standby keeps until a save covers them.")
	m.lost = gauge("hamlet_learner_log_lost_records", "Records that the log has lost and the saved model had learnt, "+
		"when this learner had to step back to an older version.")
	m.takeovers = counters("hamlet_learner_takeovers_total",
		"How often this learner became active, by why: free (nobody was), lapsed (the one before beat no more), "+
			"again (it had lost the lease or the store its data).", "why")
	for _, why := range []string{takenFree, takenLapsed, takenAgain} {
		m.takeovers.WithLabelValues(why)
	}
	factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "hamlet_learner_beat_age_seconds",
		Help: "Time since the active learner last beat in the store; 0 for a standby. Above 1 s a standby takes over."},
		m.beatAge)
	m.shadowing = factory.NewGaugeVec(prometheus.GaugeOpts{Name: "hamlet_learner_shadow",
		Help: "Of a shadow: 1 while nobody hears its alarms, " +
			"0 once it is promoted and answers in the place of the model of."}, []string{"model", "of"})
	m.saves = factory.NewHistogram(prometheus.HistogramOpts{Name: "hamlet_learner_save_seconds",
		Help: "Time to save a checkpoint, beside learning.", Buckets: prometheus.ExponentialBuckets(0.005, 2, 16)})
	m.bytes = factory.NewGauge(prometheus.GaugeOpts{Name: "hamlet_learner_model_bytes",
		Help: "Size of the model as last saved."})
	m.sources = newSourceMetrics(counters)
	m.trust = newTrustMetrics()
	if r != nil {
		r.MustRegister(m.trust)
	}

	m.alarm = gauge("hamlet_alarm", "1 while an incident of this kind is open, else 0: "+
		"label-noise, source, covariate, concept, or unknown while it is suspected; "+
		"of mail and text or of vectors.", "kind", "body")
	m.level = gauge("hamlet_alarm_level", "The alarm's level; of label noise ln SNR − ln N.", "kind", "body")
	m.reference = gauge("hamlet_alarm_reference", "What the level is compared with; of label noise its running median.",
		"kind", "body")
	m.threshold = gauge("hamlet_alarm_threshold", "What raises the alarm; of label noise the drop below the reference.",
		"kind", "body")
	m.flipRate = gauge("hamlet_flip_rate",
		"The flip rate of the labels of mail and text, or of vectors, after the latest event.", "body")
	m.gateOpen = gauge("hamlet_gate_open",
		"1 while the ensembles or second head of mail and text take part in its answers, "+
			"0 while the head answers alone.", "body")
	m.gateLead = gauge("hamlet_gate_lead_nats",
		"By how much they have lowered the recent log loss; below 0 they would have raised it.", "body")
	m.windowBytes = gauge("hamlet_window_bytes", "Bytes of the model that are its windows of past events.")
	m.pendingAlerts = gauge("hamlet_alerts_pending", "Alerts that are not acknowledged yet. Saves wait for them.")
	m.alerts = counters("hamlet_alerts_total", "Transitions of incidents, by kind and state: "+
		"suspected, raised, cleared, withdrawn.", "partition", "kind", "body", "state")
	m.rebuilds = counters("hamlet_rebuilds_total",
		"Rebuilds of ensembles, by outcome: ok, or failed and the one before goes on.", "ensemble", "outcome")
	return m
}

func (m *Metrics) applied(a *Applied) {
	m.records.WithLabelValues(partition, a.Outcome.String()).Inc()
	if a.Outcome.Taught() {
		m.sources.add(a.Event.Source, a.Effect.Phi)
		if a.Effect.Phi < 0.5 {
			m.doubted.WithLabelValues(a.Event.Label.String()).Inc()
		}
	}
	if a.Outcome != Learned {
		return
	}
	if a.Raw {
		m.rawMail.Inc()
	}
	spam := a.Event.Label == stream.Spam
	m.scored.Inc()
	m.logLoss.Add(eval.LogLoss(spam, a.Effect.Prediction.LogOdds))
	if (a.Effect.Prediction.LogOdds >= 0) != spam {
		m.wrong.Inc()
	}
	m.flipRate.WithLabelValues(partition, body(a.Event)).Set(a.Effect.Epsilon)
}

func (m *Metrics) status(name string, s Status) {
	p := partition
	m.next.WithLabelValues(p).Set(float64(s.Next))
	m.lag.WithLabelValues(p).Set(float64(s.Lag()))
	m.events.WithLabelValues(p).Set(float64(s.Events))
	m.epsilon.WithLabelValues(p).Set(s.Epsilon)
	m.windowBytes.WithLabelValues(p).Set(float64(s.WindowBytes))
	m.active.WithLabelValues(p, name).Set(oneIf(s.Active))
	m.kept.WithLabelValues(p).Set(float64(s.Backlog))
	m.lost.WithLabelValues(p).Set(float64(s.LostRecords))
	if !s.Active { // the active learner shows the rest
		m.dropActive()
		return
	}
	m.unsaved.WithLabelValues(p).Set(float64(s.Next - s.SavedEnd))
	m.pendingAlerts.WithLabelValues(p).Set(float64(s.PendingAlerts))
	for i := range s.Gates {
		g := &s.Gates[i]
		m.gateOpen.WithLabelValues(p, g.Body).Set(oneIf(g.Open))
		m.gateLead.WithLabelValues(p, g.Body).Set(g.Lead)
	}
	for i := range s.Alarms {
		m.stands(&s.Alarms[i])
	}
}

// drop removes what a learner of the named model shows while it holds the model. It is not
// active then, and goes on to say so: alerting rules cannot see what is missing.
func (m *Metrics) drop(name string) {
	m.trust.drop()
	for _, g := range m.gauges {
		g.Reset()
	}
	m.active.WithLabelValues(partition, name).Set(0)
}

// dropActive removes what one learner alone is to show.
func (m *Metrics) dropActive() {
	m.lastBeat.Store(0)
	for _, g := range []*prometheus.GaugeVec{m.alarm, m.level, m.reference, m.threshold, m.gateOpen, m.gateLead,
		m.pendingAlerts, m.unsaved, m.unsavedFor} {
		g.Reset()
	}
}

// dropAlarms removes the alarms, which nobody is to hear.
func (m *Metrics) dropAlarms() {
	for _, g := range []*prometheus.GaugeVec{m.alarm, m.level, m.reference, m.threshold} {
		g.Reset()
	}
}

// Why a learner became active.
const (
	takenFree   = "free"
	takenLapsed = "lapsed"
	takenAgain  = "again"
)

func (m *Metrics) taken(why string) {
	m.takeovers.WithLabelValues(why).Inc()
	m.beaten(time.Now())
}

// beaten notes that the active learner beat at t.
func (m *Metrics) beaten(t time.Time) { m.lastBeat.Store(t.UnixNano()) }

func (m *Metrics) beatAge() float64 {
	at := m.lastBeat.Load()
	if at == 0 {
		return 0
	}
	return time.Since(time.Unix(0, at)).Seconds()
}

// shadow shows whether the model's alarms are not heard, because it is the shadow of another one.
func (m *Metrics) shadow(model, of string, silent bool) {
	m.shadowing.WithLabelValues(model, of).Set(oneIf(silent))
}

func (m *Metrics) saved(took time.Duration, bytes int) {
	m.saves.Observe(took.Seconds())
	m.bytes.Set(float64(bytes))
}

// behind shows for how long the oldest record that is not saved has been read.
func (m *Metrics) behind(d time.Duration) {
	m.unsavedFor.WithLabelValues(partition).Set(d.Seconds())
}

func (m *Metrics) stands(a *model.Alarm) {
	m.alarm.WithLabelValues(partition, a.Kind, a.Body).Set(oneIf(a.Status.Raised))
	if a.Status.Known {
		m.level.WithLabelValues(partition, a.Kind, a.Body).Set(a.Status.Level)
		m.reference.WithLabelValues(partition, a.Kind, a.Body).Set(a.Status.Reference)
		m.threshold.WithLabelValues(partition, a.Kind, a.Body).Set(a.Status.Threshold)
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// begin creates all counters that a model of cfg may need, at 0. Prometheus sees no
// increase in a series that begins with 1.
func (m *Metrics) begin(cfg model.Config) {
	p := partition
	for o := Learned; o <= Unassumed; o++ {
		m.records.WithLabelValues(p, o.String())
	}
	for _, label := range []stream.Label{stream.Ham, stream.Spam} {
		m.doubted.WithLabelValues(label.String())
	}
	for _, ensemble := range slices.Concat(cfg.TextEnsembles, cfg.VectorEnsembles) {
		for _, outcome := range []string{rebuildOK, rebuildFailed} {
			m.rebuilds.WithLabelValues(ensemble, outcome)
		}
	}
	if cfg.Alarms.Off {
		return
	}
	for _, kind := range stream.AlertKinds {
		states := []string{stream.AlertRaised, stream.AlertCleared}
		if kind == stream.AlertUnknown {
			states = []string{stream.AlertSuspected, stream.AlertWithdrawn}
		}
		for _, body := range []string{stream.AlertText, stream.AlertVector} {
			for _, state := range states {
				m.alerts.WithLabelValues(p, kind, body, state)
			}
		}
	}
}

func (m *Metrics) alert(a *stream.Alert) {
	m.alerts.WithLabelValues(partition, a.Kind, a.Body, a.State).Inc()
}

// The outcomes of a rebuild.
const (
	rebuildOK     = "ok"
	rebuildFailed = "failed"
)

func (m *Metrics) rebuilt(b *model.Rebuild) {
	outcome := rebuildOK
	if b.Err != nil {
		outcome = rebuildFailed
	}
	m.rebuilds.WithLabelValues(b.Ensemble, outcome).Inc()
}

// body returns the body whose sub-model learns an event.
func body(e *stream.Event) string {
	if e.Body.Kind == stream.Vector {
		return stream.AlertVector
	}
	return stream.AlertText
}
