package learner

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/model"
)

// shownSources is how many sources have series of trust: those with most
// labels. A source that falls behind loses its series, so their number is bounded though names
// are not.
const shownSources = 20

// trustMetrics show how far sources are trusted to Prometheus, as of the last save.
type trustMetrics struct {
	weight, flipRate *prometheus.Desc

	mu    sync.Mutex
	shown []model.Source // at most shownSources; show and drop write it
}

func newTrustMetrics() *trustMetrics {
	labels := []string{"partition", "body", "source"}
	return &trustMetrics{
		weight: prometheus.NewDesc("hamlet_learner_source_weight",
			"How much the next label of a source counts, 0 to 1, by its agreement with others and by its role: "+
				"the twenty sources with most labels.", labels, nil),
		flipRate: prometheus.NewDesc("hamlet_learner_source_flip_rate",
			"How often labels of a source contradict the model, of the sources in source_weight.", labels, nil),
	}
}

// show takes the sources of the model, those with most labels first.
func (s *trustMetrics) show(all []model.Source) {
	shown := make([]model.Source, 0, shownSources)
	for _, from := range all {
		if from.Labels > 0 && len(shown) < shownSources {
			shown = append(shown, from)
		}
	}
	s.mu.Lock()
	s.shown = shown
	s.mu.Unlock()
}

func (s *trustMetrics) drop() { s.show(nil) }

// Describe implements prometheus.Collector.
func (s *trustMetrics) Describe(to chan<- *prometheus.Desc) { to <- s.weight; to <- s.flipRate }

// Collect implements prometheus.Collector. Of names that are equal in the 64 bytes that a
// model keeps, the one with most labels is shown.
func (s *trustMetrics) Collect(to chan<- prometheus.Metric) {
	type series struct{ body, name string }
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[series]bool{}
	for _, from := range s.shown {
		at := series{from.Body, from.ShownName()}
		if seen[at] {
			continue
		}
		seen[at] = true
		to <- prometheus.MustNewConstMetric(s.weight, prometheus.GaugeValue, from.Weight, partition, at.body, at.name)
		to <- prometheus.MustNewConstMetric(s.flipRate, prometheus.GaugeValue, from.Rate, partition, at.body, at.name)
	}
}
