package learner

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/stream"
)

// Any number of sources has at most 51 series a metric. Every label is counted once. A
// source with many doubtful labels has its own series.
func TestSourceSeriesAreBounded(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := NewMetrics(registry)
	add := func(source string, φ float64) {
		a := Applied{Outcome: Learned, Event: &stream.Event{Source: source, Label: stream.Spam}}
		a.Effect.Phi = φ
		m.applied(&a)
	}
	// No source can have the name of the other sources' series.
	if named := (&stream.Event{ID: "a", Source: otherSources, Label: stream.Spam, Body: stream.Body{Kind: stream.Text, Text: "x"}}); named.Validate() == nil {
		t.Errorf("%s may be the name of a source", otherSources)
	}
	if named := (&stream.Event{ID: "a", Source: "(others)", Label: stream.Spam, Body: stream.Body{Kind: stream.Text, Text: "x"}}); named.Validate() != nil {
		t.Errorf("a source of a plain name is refused: %v", named.Validate())
	}
	const single = 5000
	for i := range single {
		add(fmt.Sprint("single", i), 0.1)
	}
	for range 25 {
		add("forger", 0.1)
		add("forger", 0.9)
	}
	for s := range 80 {
		for range 12 {
			add(fmt.Sprint("bad", s), 0.3)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums, series, forger := map[string]float64{}, map[string]int{}, map[string]float64{}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			sums[f.GetName()] += s.GetCounter().GetValue()
			series[f.GetName()]++
			for _, l := range s.GetLabel() {
				if l.GetName() == "source" && l.GetValue() == "forger" {
					forger[f.GetName()] = s.GetCounter().GetValue()
				}
			}
		}
	}
	const doubted, labels = "hamlet_learner_source_doubted_labels_total", "hamlet_learner_source_labels_total"
	if series[doubted] != maxNamed+1 || series[labels] != maxNamed+1 {
		t.Errorf("%d and %d series, want %d sources and the others", series[doubted], series[labels], maxNamed)
	}
	// Named from its tenth doubtful label on: 16 doubtful labels, 16 trusted ones.
	if forger[doubted] != 16 || forger[labels] != 32 {
		t.Errorf("the forger has %v of %v labels by name, want 16 of 32", forger[doubted], forger[labels])
	}
	const doubtful = single + 25 + 80*12
	if got := sums[doubted]; got != doubtful {
		t.Errorf("doubtful labels add up to %v, want %d", got, doubtful)
	}
	if got := sums[labels]; got != doubtful+25 {
		t.Errorf("labels add up to %v, want %d", got, doubtful+25)
	}
	if got := sums["hamlet_learner_doubted_labels_total"]; got != doubtful {
		t.Errorf("doubtful labels by label add up to %v, want %d", got, doubtful)
	}
}

func TestDoubtsAreLoggedOnceAMinute(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var l doubtLog
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for second := range 150 { // lines at 0, 60 and 120
		l.note(log, now.Add(time.Duration(second)*time.Second), "desk", 0.1)
		l.note(log, now.Add(time.Duration(second)*time.Second), "trap", 0.9)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want 3:\n%s", len(lines), out.String())
	}
	for i, want := range []string{
		"since_last=1 so_far=1 of=1 worst_source=desk its_doubtful=1 its_labels=1",
		"since_last=60 so_far=61 of=121 worst_source=desk its_doubtful=61 its_labels=61",
		"since_last=60 so_far=121 of=241 worst_source=desk its_doubtful=121 its_labels=121",
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d: %s\nwant %s", i, lines[i], want)
		}
	}
}
