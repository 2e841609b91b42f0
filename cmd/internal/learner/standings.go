package learner

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/model"
)

// shownSources is how many sources of a partition have series of standing: those with most
// labels. A source that falls behind loses its series, so their number is bounded though names
// are not.
const shownSources = 20

// standingMetrics show the standing of sources to Prometheus, as of each partition's last save.
type standingMetrics struct {
	weight, flipRate *prometheus.Desc

	mu          sync.Mutex
	byPartition map[int][]model.Source // at most shownSources each; show and drop write it
}

func newStandingMetrics() *standingMetrics {
	labels := []string{"partition", "body", "source"}
	return &standingMetrics{
		weight: prometheus.NewDesc("hamlet_learner_source_weight",
			"How much the next label of a source counts, 0 to 1, by its agreement with others and by its role: the twenty sources of a partition with most labels.", labels, nil),
		flipRate: prometheus.NewDesc("hamlet_learner_source_flip_rate",
			"How often labels of a source contradict the model, of the sources in source_weight.", labels, nil),
		byPartition: map[int][]model.Source{},
	}
}

// show takes the sources of a partition, those with most labels first.
func (s *standingMetrics) show(partition int, all []model.Source) {
	shown := make([]model.Source, 0, shownSources)
	for _, from := range all {
		if from.Labels > 0 && len(shown) < shownSources {
			shown = append(shown, from)
		}
	}
	s.mu.Lock()
	s.byPartition[partition] = shown
	s.mu.Unlock()
}

func (s *standingMetrics) drop(partition int) {
	s.mu.Lock()
	delete(s.byPartition, partition)
	s.mu.Unlock()
}

// Describe implements prometheus.Collector.
func (s *standingMetrics) Describe(to chan<- *prometheus.Desc) { to <- s.weight; to <- s.flipRate }

// Collect implements prometheus.Collector. Of names that are equal in the 64 bytes that a
// model keeps, the one with most labels is shown.
func (s *standingMetrics) Collect(to chan<- prometheus.Metric) {
	type series struct {
		partition  int
		body, name string
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[series]bool{}
	for partition, shown := range s.byPartition {
		for _, from := range shown {
			at := series{partition, from.Body, from.ShownName()}
			if seen[at] {
				continue
			}
			seen[at] = true
			labels := []string{strconv.Itoa(partition), at.body, at.name}
			to <- prometheus.MustNewConstMetric(s.weight, prometheus.GaugeValue, from.Weight, labels...)
			to <- prometheus.MustNewConstMetric(s.flipRate, prometheus.GaugeValue, from.Rate, labels...)
		}
	}
}
