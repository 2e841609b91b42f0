package oracle

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Why a message that was worth a question was not asked about, as the metrics show it.
const (
	unaskedQueue   = "queue"   // the oracle is slower than the mail
	unaskedBudget  = "budget"  // the day's questions are asked
	unaskedFailing = "failing" // the last question failed a short time ago
	unaskedAccount = "account" // the account cannot be written
)

// failed is what a question comes to beside spam, ham and unknown.
const failed = "failed"

// The steps that can fail.
const (
	stepAsk    = iota
	stepTeach  // the learner's log
	stepLabels // reading the journal
	stepKeep   // writing the account
	steps
)

var stepNames = [steps]string{"ask", "teach", "labels", "account"}

// metrics are what a service counts.
type metrics struct {
	questions *prometheus.CounterVec // answer
	unasked   *prometheus.CounterVec // reason
	compared  *prometheus.GaugeVec   // result
	state     *prometheus.GaugeVec   // state
	failing   *prometheus.GaugeVec   // step
	taught    prometheus.Counter
	lost      prometheus.Counter
	left      prometheus.Gauge
}

func newMetrics() *metrics {
	const prefix = "hamlet_oracle_"
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: prefix + name, Help: help}
	}
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Name: prefix + name, Help: help}
	}
	m := &metrics{
		questions: prometheus.NewCounterVec(counter("questions_total", "Questions to the oracle, by its answer."),
			[]string{"answer"}),
		unasked: prometheus.NewCounterVec(counter("unasked_total", "Questions that were worth asking and were not asked."),
			[]string{"reason"}),
		compared: prometheus.NewGaugeVec(gauge("compared", "Answers among the last 100 that were compared with "+
			"people's labels."), []string{"result"}),
		state:   prometheus.NewGaugeVec(gauge("state", "1 for the state that the oracle is in, else 0."), []string{"state"}),
		failing: prometheus.NewGaugeVec(gauge("failing", "1 while a step of the oracle's work fails."), []string{"step"}),
		taught:  prometheus.NewCounter(counter("taught_total", "Answers that were given to the learner.")),
		lost: prometheus.NewCounter(counter("lost_total", "Answers that were to be learnt, and did not reach "+
			"the learner's log.")),
		left: prometheus.NewGauge(gauge("questions_left", "Questions that may be asked on the day of the last one.")),
	}
	for _, answer := range []string{"spam", "ham", "unknown", failed} {
		m.questions.WithLabelValues(answer)
	}
	for _, reason := range []string{unaskedQueue, unaskedBudget, unaskedFailing, unaskedAccount} {
		m.unasked.WithLabelValues(reason)
	}
	return m
}

func (m *metrics) register(r prometheus.Registerer) {
	r.MustRegister(m.questions, m.unasked, m.compared, m.state, m.failing, m.taught, m.lost, m.left)
}

// show shows an account and how many questions are left.
func (m *metrics) show(a *Account, left int) {
	for _, s := range []State{Trial, Trusted, Stopped} {
		is := 0.0
		if a.State() == s {
			is = 1
		}
		m.state.WithLabelValues(string(s)).Set(is)
	}
	wrong, right := a.recent()
	m.compared.WithLabelValues("wrong").Set(wrong)
	m.compared.WithLabelValues("right").Set(right)
	m.left.Set(float64(left))
}
