package learner

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/stream"
)

// Metrics are what a learner shows to Prometheus.
type Metrics struct {
	records    *prometheus.CounterVec
	rawMail    prometheus.Counter
	doubted    *prometheus.CounterVec
	sources    *sourceMetrics
	logLoss    prometheus.Counter
	scored     prometheus.Counter
	wrong      prometheus.Counter
	next       *prometheus.GaugeVec
	lag        *prometheus.GaugeVec
	events     *prometheus.GaugeVec
	epsilon    *prometheus.GaugeVec
	unsaved    *prometheus.GaugeVec
	saves      *prometheus.HistogramVec
	failedSave prometheus.Counter
	bytes      prometheus.Gauge

	alarm, level, reference, threshold *prometheus.GaugeVec // by partition, kind, body
	flipRate                           *prometheus.GaugeVec // by partition, body
	windowBytes, pendingAlerts         *prometheus.GaugeVec // by partition
	alerts                             *prometheus.CounterVec
	rebuilds                           *prometheus.CounterVec
}

// NewMetrics registers a learner's metrics with r, or with nobody if r is nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	const ns, sub = "hamlet", "learner"
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help})
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help},
			[]string{"partition"})
	}
	m := &Metrics{
		records: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: "records_total",
			Help: "Records read, by what became of them: learned, relearned, unlearned, duplicate, dead-letter."}, []string{"partition", "outcome"}),
		doubted: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: "doubted_labels_total",
			Help: "Events learnt whose label was held to be false (label trust below one half), by the label given."},
			[]string{"label"}),
		sources:    newSourceMetrics(),
		rawMail:    counter("raw_mail_total", "Mails that were read as raw text, in whole or part."),
		logLoss:    counter("log_loss_nats_total", "Sum of the log loss of each event before it was learnt, against the label given."),
		scored:     counter("scored_total", "Events in log_loss_nats_total."),
		wrong:      counter("wrong_total", "Events on whose wrong side of one half the model stood before it learnt them."),
		next:       gauge("next_offset", "Next offset to read."),
		lag:        gauge("lag_records", "Records between the next offset and the log's end as last heard."),
		events:     gauge("events", "The model's event count."),
		epsilon:    gauge("label_flip_rate", "The flip rate of labels that the model believes in."),
		unsaved:    gauge("unsaved_records", "Records read since the last save."),
		failedSave: counter("failed_saves_total", "Saves that failed; the learner goes on and tries again."),
		saves: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: ns, Subsystem: sub, Name: "save_seconds",
			Help: "Time to save a checkpoint.", Buckets: prometheus.ExponentialBuckets(0.005, 2, 12)}, nil),
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: ns, Subsystem: sub, Name: "model_bytes",
			Help: "Size of the model as last saved."}),
	}
	m.alarms()
	if r != nil {
		r.MustRegister(m.alarm, m.level, m.reference, m.threshold, m.flipRate, m.windowBytes, m.pendingAlerts, m.alerts, m.rebuilds)
		r.MustRegister(m.records, m.rawMail, m.doubted, m.sources.doubtful, m.sources.learnt, m.logLoss, m.scored, m.wrong, m.next, m.lag, m.events,
			m.epsilon, m.unsaved, m.saves, m.failedSave, m.bytes)
	}
	return m
}

func (m *Metrics) applied(a *Applied) {
	m.records.WithLabelValues(strconv.Itoa(a.Partition), a.Outcome.String()).Inc()
	if a.Outcome == Learned || a.Outcome == Relearned {
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
	m.flipRate.WithLabelValues(strconv.Itoa(a.Partition), body(a.Event)).Set(a.Effect.Epsilon)
}

func (m *Metrics) status(partition int, s Status) {
	p := strconv.Itoa(partition)
	m.next.WithLabelValues(p).Set(float64(s.Next))
	m.lag.WithLabelValues(p).Set(float64(max(0, s.End-s.Next)))
	m.events.WithLabelValues(p).Set(float64(s.Events))
	m.epsilon.WithLabelValues(p).Set(s.Epsilon)
	m.unsaved.WithLabelValues(p).Set(float64(s.Next - s.SavedEnd))
	m.windowBytes.WithLabelValues(p).Set(float64(s.WindowBytes))
	m.pendingAlerts.WithLabelValues(p).Set(float64(s.PendingAlerts))
	for i := range s.Alarms {
		m.stands(p, &s.Alarms[i])
	}
}

func (m *Metrics) drop(partition int) {
	p := strconv.Itoa(partition)
	for _, g := range []*prometheus.GaugeVec{m.next, m.lag, m.events, m.epsilon, m.unsaved,
		m.alarm, m.level, m.reference, m.threshold, m.flipRate, m.windowBytes, m.pendingAlerts} {
		g.DeletePartialMatch(prometheus.Labels{"partition": p})
	}
}

func (m *Metrics) saved(took time.Duration, bytes int) {
	m.saves.WithLabelValues().Observe(took.Seconds())
	m.bytes.Set(float64(bytes))
}

func (m *Metrics) saveFailed() { m.failedSave.Inc() }

// alarms makes the metrics of what watches the stream. They are about models, not
// about one learner, and named so.
func (m *Metrics) alarms() {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "hamlet", Name: name, Help: help}, append([]string{"partition"}, labels...))
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "hamlet", Name: name, Help: help}, labels)
	}
	m.alarm = gauge("alarm", "1 while the alarm is raised, else 0: label-noise, covariate, concept, of mail and text or of vectors.", "kind", "body")
	m.level = gauge("alarm_level", "The alarm's level; of label noise ln SNR − ln N.", "kind", "body")
	m.reference = gauge("alarm_reference", "What the level is compared with; of label noise its running median.", "kind", "body")
	m.threshold = gauge("alarm_threshold", "What raises the alarm; of label noise the drop below the reference.", "kind", "body")
	m.flipRate = gauge("flip_rate", "The flip rate of the labels of mail and text, or of vectors, after the latest event.", "body")
	m.windowBytes = gauge("window_bytes", "Bytes of the model that are its windows of past events.")
	m.pendingAlerts = gauge("alerts_pending", "Alerts that are not acknowledged yet. Saves wait for them.")
	m.alerts = counter("alerts_total", "Changes of alarms, by kind and state: raised, cleared.", "partition", "kind", "body", "state")
	m.rebuilds = counter("rebuilds_total", "Ensembles built anew, by outcome: ok, or failed and the one before goes on.", "ensemble", "outcome")
}

func (m *Metrics) stands(partition string, a *model.Alarm) {
	raised := 0.0
	if a.Status.Raised {
		raised = 1
	}
	m.alarm.WithLabelValues(partition, a.Kind, a.Body).Set(raised)
	if a.Status.Known {
		m.level.WithLabelValues(partition, a.Kind, a.Body).Set(a.Status.Level)
		m.reference.WithLabelValues(partition, a.Kind, a.Body).Set(a.Status.Reference)
		m.threshold.WithLabelValues(partition, a.Kind, a.Body).Set(a.Status.Threshold)
	}
}

// begin gives every count of a partition that a model of cfg may get a series, at
// 0: Prometheus sees no increase in a series that begins with 1.
func (m *Metrics) begin(partition int, cfg model.Config) {
	p := strconv.Itoa(partition)
	for o := Learned; o <= Unlearned; o++ {
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
	for _, kind := range []string{stream.AlertLabelNoise, stream.AlertCovariate, stream.AlertConcept} {
		for _, body := range []string{stream.AlertText, stream.AlertVector} {
			for _, state := range []string{stream.AlertRaised, stream.AlertCleared} {
				m.alerts.WithLabelValues(p, kind, body, state)
			}
		}
	}
}

func (m *Metrics) alert(a *stream.Alert) {
	m.alerts.WithLabelValues(strconv.Itoa(a.Partition), a.Kind, a.Body, a.State).Inc()
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

// body names the half of the model that an event is for.
func body(e *stream.Event) string {
	if e.Body.Kind == stream.Vector {
		return stream.AlertVector
	}
	return stream.AlertText
}
