package scorer

import (
	"fmt"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"

	"hamlet/stream"
	"hamlet/stream/questions"
)

// Clients cannot make more than maxDoors series, and one more for the others.
func TestDoorsAreBounded(t *testing.T) {
	var d doors
	labels := map[string]bool{}
	for i := range 100 {
		labels[d.label(fmt.Sprint("door-", i%50))] = true
	}
	if len(labels) != maxDoors+1 || !labels["door-0"] || !labels["door-15"] || !labels["other"] {
		t.Errorf("labels %v", labels)
	}
}

// A verdict has a margin beyond the scorer's own threshold, and its door is counted.
func TestMarginsAndDoorsOfAnswers(t *testing.T) {
	url, r, registry := startNATS(t), miniredis.RunT(t), prometheus.NewRegistry()
	l := newTeacher(t, openStore(t, r))
	l.learn(10)
	sum := l.save()
	start(t, Config{Questions: over(connect(t, url)), Store: openStore(t, r), SpamAt: 0.6, Registerer: registry})
	c := ask(t, url)
	v := awaitModel(t, c, sum)
	if want := stream.Margin(v.LogOdds, v.Interval[0], 0.6, v.Decision); v.Margin != want || v.Margin == 0 {
		t.Errorf("margin %v of %+v, want %v", v.Margin, v, want)
	}
	for _, door := range []string{"milter", "milter", "spamd"} {
		if _, err := c.Ask(patience(t), questions.Question{Body: []byte("x"), ContentType: questions.Text, Door: door}); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "hamlet_scorer_door_requests_total" {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if got["milter"] != 2 || got["spamd"] != 1 || got["nats"] == 0 {
		t.Errorf("doors %v, want 2 of milter, 1 of spamd and others of nats", got)
	}
}
