package scorer

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/promise"
	"hamlet/stream"
	"hamlet/stream/questions"
)

// expectations add up the probabilities that answers are wrong, by door and tenant. They are counters, so that
// sums over scorers, tenants and any time mean something. An interval of a window would not add up: mean,
// variance and doubt do, see promise.Expected.
type expectations struct {
	doors *doors

	mu     sync.Mutex
	groups map[doorTenant]*expectation // at most mostGroups, and the others
}

type doorTenant struct{ door, tenant string }

type expectation struct {
	promise.Expected
	leftOut int // answers
}

const (
	mostGroups   = 32 // doors and tenants with series of their own
	otherTenants = "(others)"
)

// add counts the answers to one request. Those of a doubtful model are left out.
func (x *expectations) add(ctx context.Context, requests []*stream.Event, verdicts []stream.Verdict, doubtful bool) {
	door := x.doors.label(questions.Door(ctx))
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range verdicts {
		one := x.of(doorTenant{door, stream.Unaddressed(cmp.Or(requests[i].Tenant, stream.DefaultName))})
		if doubtful {
			one.leftOut++
			continue
		}
		v := &verdicts[i]
		one.Add(v.P, min(v.P, v.Interval[0]), max(v.P, v.Interval[1]), v.Decision == stream.DecideSpam)
	}
}

// of returns the expectation of a door and tenant. x.mu is held.
func (x *expectations) of(g doorTenant) *expectation {
	if x.groups[g] == nil && len(x.groups) >= mostGroups {
		g = doorTenant{otherTenants, otherTenants}
	}
	if x.groups == nil {
		x.groups = map[doorTenant]*expectation{}
	}
	one := x.groups[g]
	if one == nil {
		one = &expectation{}
		x.groups[g] = one
	}
	return one
}

// doubtful reports whether p of a model with these incidents may be wrong by more than its interval says. Mail
// unlike anything learnt makes intervals wide, as it should; the other kinds do not.
func doubtful(open []stream.OpenIncident) bool {
	return slices.ContainsFunc(open, func(i stream.OpenIncident) bool { return i.Kind != stream.AlertCovariate })
}

func expectedDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("hamlet_scorer_expected_"+name, help, append([]string{"door", "tenant"}, labels...), nil)
}

var (
	meanDesc = expectedDesc("errors_total", "Sum over answers of the probability that they are wrong: "+
		"ham_lost of those that say spam, spam_missed of the others. No label is needed.", "kind")
	varianceDesc = expectedDesc("errors_variance_total", "Variance of the number of wrong answers, if p is right.",
		"kind")
	doubtDesc = expectedDesc("errors_doubt_total", "Sum over answers of the standard deviation of p. All may err to "+
		"the same side: its square adds to the variance.", "kind")
	leftOutDesc = expectedDesc("left_out_total", "Answers that are in no sum, because an incident of concept, label "+
		"noise or a source was open or suspected in the model that gave them.")
)

// Describe and Collect make x a prometheus.Collector.
func (x *expectations) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{meanDesc, varianceDesc, doubtDesc, leftOutDesc} {
		to <- d
	}
}

// Collect copies the sums before it sends them: whoever answers waits for x.mu.
func (x *expectations) Collect(to chan<- prometheus.Metric) {
	x.mu.Lock()
	groups := make(map[doorTenant]expectation, len(x.groups))
	for g, one := range x.groups {
		groups[g] = *one
	}
	x.mu.Unlock()
	for g, one := range groups {
		counter := func(d *prometheus.Desc, v float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, append([]string{g.door, g.tenant}, labels...)...)
		}
		for kind, c := range map[string]promise.Count{"ham_lost": one.Lost, "spam_missed": one.Missed} {
			counter(meanDesc, c.Mean, kind)
			counter(varianceDesc, c.Independent, kind)
			counter(doubtDesc, c.Doubt, kind)
		}
		counter(leftOutDesc, float64(one.leftOut))
	}
}
