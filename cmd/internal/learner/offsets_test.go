package learner

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/sequencer"
)

// The gauges of one model of several partitions have the offset and the lag of each.
func TestGaugesOfOneModel(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	s := Status{Next: 7, End: 9, Offsets: sequencer.Offsets{40, 50}, Ends: []int64{45, 50},
		SavedEnd: 6, Events: 120, SavedEvents: 100, Order: &Standing{Active: true}}
	m.status(0, s)
	if s.Lag() != 5 {
		t.Errorf("lag %d, want 5", s.Lag())
	}
	got := map[string]float64{}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, metric := range f.Metric {
			for _, l := range metric.Label {
				if l.GetName() == "partition" {
					got[f.GetName()+" "+l.GetValue()] = metric.GetGauge().GetValue()
				}
			}
		}
	}
	for name, want := range map[string]float64{
		"hamlet_learner_next_offset 0": 40, "hamlet_learner_next_offset 1": 50,
		"hamlet_learner_lag_records 0": 5, "hamlet_learner_lag_records 1": 0, "hamlet_learner_order_lag_records 0": 2,
		"hamlet_learner_unsaved_records 0": 20, "hamlet_learner_active 0": 1,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %v (%v), want %v", name, value, ok, want)
		}
	}
}
