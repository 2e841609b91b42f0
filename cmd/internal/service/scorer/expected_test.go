package scorer

import (
	"fmt"
	"math"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/stream"
	"hamlet/stream/questions"
)

// gathered returns the values of the metrics of expected errors, by name, tenant and kind.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				if l.GetName() == "kind" || l.GetName() == "tenant" {
					name += " " + l.GetValue()
				}
			}
			if m.GetCounter() != nil {
				all[name] += m.GetCounter().GetValue()
			} else {
				all[name] += m.GetGauge().GetValue()
			}
		}
	}
	return all
}

// What a scorer answers is counted with its probability to be wrong. While something is suspected in the model, answers
// are counted apart.
func TestExpectedErrors(t *testing.T) {
	url, r, registry := startNATS(t), miniredis.RunT(t), prometheus.NewRegistry()
	l := newTeacher(t, openStore(t, r))
	l.learn(600)
	sum := l.save()
	start(t, Config{Questions: over(connect(t, url)), Store: openStore(t, r), Registerer: registry})
	c := ask(t, url)
	awaitModel(t, c, sum)
	before := gathered(t, registry)
	var lost, missed, variance float64
	for _, text := range []string{question, "agenda of a meeting", "agenda of meeting prize 7"} {
		verdicts, err := c.Ask(patience(t), questions.Question{Body: []byte(text), ContentType: questions.Text, Door: "milter"})
		if err != nil {
			t.Fatal(err)
		}
		v := verdicts[0]
		if v.Decision == stream.DecideSpam {
			lost += 1 - v.P
			variance += v.P * (1 - v.P)
		} else {
			missed += v.P
		}
	}
	after := gathered(t, registry)
	for name, want := range map[string]float64{
		"errors_total ham_lost default": lost, "errors_total spam_missed default": missed,
		"errors_variance_total ham_lost default": variance, "left_out_total default": 0, "withdrawn": 0,
	} {
		name = "hamlet_scorer_expected_" + name
		if got := after[name] - before[name]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if after["hamlet_scorer_expected_errors_doubt_total ham_lost default"] == 0 || lost == 0 || missed == 0 {
		t.Errorf("%v", after)
	}

	for i := 0; len(l.model.Incidents()) == 0; i++ { // the same mail means something else now
		text := fmt.Sprintf("agenda of meeting %d is attached", i)
		if i%2 == 0 {
			text = fmt.Sprintf("claim prize %d now, you have won", i)
		}
		ex := model.Example{ID: fmt.Sprint("turned", i), Source: "test", Spam: i%2 == 1,
			Body: model.Body{Tenant: "test", Message: &feature.Message{Body: []byte(text), BodyBytes: len(text)}}}
		if _, err := l.model.Apply(&ex); err != nil || i == 500 {
			t.Fatal("nothing is suspected", err)
		}
		l.position = l.position.Advance(l.position.Next, nil, []byte(ex.ID))
	}
	sum = l.save()
	awaitModel(t, c, sum)
	before = gathered(t, registry)
	for range 3 {
		if _, err := c.Ask(patience(t), questions.Question{Body: []byte(question), ContentType: questions.Text}); err != nil {
			t.Fatal(err)
		}
	}
	after = gathered(t, registry)
	left, errors := "hamlet_scorer_expected_left_out_total default", "hamlet_scorer_expected_errors_total ham_lost default"
	if after[left]-before[left] != 3 || after[errors] != before[errors] || after["hamlet_scorer_expected_withdrawn"] != 1 {
		t.Errorf("%v, then %v", before, after)
	}
}

// An incident of mail unlike anything learnt is no doubt.
func TestDoubtfulIncidents(t *testing.T) {
	for kind, want := range map[string]bool{
		stream.AlertUnknown: true, stream.AlertLabelNoise: true, stream.AlertConcept: true, stream.AlertSource: true, stream.AlertCovariate: false,
	} {
		if doubtful([]stream.OpenIncident{{Kind: stream.AlertCovariate}, {Kind: kind}}) != want {
			t.Errorf("%s: not %v", kind, want)
		}
	}
}

// Any number of tenants makes a bounded number of series, and loses no answer. Addresses are hashed.
func TestExpectedErrorsAreBounded(t *testing.T) {
	x := &expectations{doors: &doors{}}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(x)
	verdict := stream.Verdict{P: .25, Interval: [2]float64{.25, .25}, Decision: stream.DecideHam}
	for i := range 500 {
		x.add(t.Context(), []*stream.Event{{Tenant: fmt.Sprint("tenant@", i%100)}}, []stream.Verdict{verdict}, false)
	}
	sum, series := 0.0, 0
	for name, v := range gathered(t, registry) {
		if series++; len(name) > 0 && name[:36] == "hamlet_scorer_expected_errors_total " {
			sum += v
		}
	}
	if sum != 125 || series != 7*(mostGroups+1) {
		t.Errorf("%v errors in %d series", sum, series)
	}
	for g := range x.groups {
		if g.tenant != otherTenants && (g.tenant[0] != '#' || g.door != directly) {
			t.Errorf("%+v", g)
		}
	}
}

// Answers do not wait for who takes the metrics.
func TestExpectedErrorsDoNotWaitForWhoCollects(t *testing.T) {
	x := &expectations{doors: &doors{}}
	one := func() {
		x.add(t.Context(), []*stream.Event{{}}, []stream.Verdict{{P: .25, Interval: [2]float64{.25, .25}}}, false)
	}
	one()
	metrics := make(chan prometheus.Metric)
	go func() {
		x.Collect(metrics)
		close(metrics)
	}()
	<-metrics // Collect waits until the next is taken
	one()
	n := 1
	for range metrics {
		n++
	}
	if n != 7 {
		t.Errorf("%d metrics", n)
	}
}
