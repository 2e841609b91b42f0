package scorer

import (
	"github.com/prometheus/client_golang/prometheus"

	"hamlet/stream"
)

// promises are the metrics of budgets in the served model. They have the label tenant, which is empty for the
// scorer's own budget.
type promises struct{ *Scorer }

func promiseDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("hamlet_scorer_"+name, help, []string{"tenant"}, nil)
}

var (
	promiseHam = promiseDesc("promise_ham",
		"Judged ham whose label was asked for, by its weight, that a tenant's budget rests on.")
	promiseMissing = promiseDesc("promise_missing_ham",
		"At least so much further ham until a tenant's budget can be promised.")
	promiseLogOdds = promiseDesc("promise_log_odds",
		"Log-odds from which on a tenant's budget allows to call mail spam; +Inf as long as nothing is promised.")
	promiseKept = promiseDesc("promise_kept",
		"1 while a tenant's budget decides what is spam; 0: something stands in for it.")
	promiseWithdrawn = promiseDesc("promise_withdrawn",
		"1 while a tenant's budget could be promised, but for an incident that is raised.")
)

// Describe implements [prometheus.Collector].
func (p promises) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{promiseHam, promiseMissing, promiseLogOdds, promiseKept, promiseWithdrawn} {
		to <- d
	}
}

// Collect implements [prometheus.Collector]. Without a model there are no series.
func (p promises) Collect(to chan<- prometheus.Metric) {
	current := p.follower.use()
	if current == nil {
		return
	}
	defer current.leave()
	shown := map[string]bool{}
	for tenant, r := range p.rules.budgets(current) {
		label := stream.Unaddressed(tenant)
		if shown[label] { // Prometheus would refuse all metrics
			continue
		}
		shown[label] = true
		gauge := func(d *prometheus.Desc, value float64) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, label)
		}
		is := func(d *prometheus.Desc, by stream.RuleName) {
			if r.told.By == by {
				gauge(d, 1)
			} else {
				gauge(d, 0)
			}
		}
		gauge(promiseHam, r.bound.Ham)
		gauge(promiseMissing, r.bound.Missing)
		gauge(promiseLogOdds, r.bound.LogOdds)
		is(promiseKept, stream.RuleBudget)
		is(promiseWithdrawn, stream.RuleWithdrawn)
	}
}
