package sizing

import (
	"math"
	"testing"
)

// A day that can be computed by hand.
func TestPlan(t *testing.T) {
	c := Costs{Score: 1e-3, Gateway: 2e-3, Ingest: 1e-4, Learn: 2e-4, Save: .3,
		ModelBytes: 30e6, EventBytes: 4000, JournalBytes: 250, ScorerBytes: 100e6}
	l := Load{Scores: 86400 * 1000, Labels: 86400 * 10, Peak: 2, Busy: .5, SaveEvery: 3,
		KeepDays: 90, Replicas: 3, Versions: 33, JournalOf: 14}
	got := Plan(c, l)
	want := Demand{
		ScoresAtPeak: 2000, LabelsAtPeak: 20,
		ScorerCores: 4, GatewayCores: 8, IngestCores: .004, LearnerCores: (20*2e-4 + .1) / .5,
		KafkaBytes: 864000 * 90 * 4000 * 3, RedisBytes: 33 * 30e6, RedisPerSec: 10e6,
		JournalBytes: 86400 * 1000 * 14 * 250, LabelLimit: .9 / 2e-4, ScorerBytes: 100e6,
	}
	for _, f := range []struct {
		name      string
		got, want float64
	}{
		{"scores at peak", got.ScoresAtPeak, want.ScoresAtPeak}, {"labels at peak", got.LabelsAtPeak, want.LabelsAtPeak},
		{"cores of scorers", got.ScorerCores, want.ScorerCores}, {"cores of gateways", got.GatewayCores, want.GatewayCores},
		{"cores of ingest", got.IngestCores, want.IngestCores}, {"cores of the learner", got.LearnerCores, want.LearnerCores},
		{"memory of scorers", got.ScorerBytes, want.ScorerBytes}, {"disk of Kafka", got.KafkaBytes, want.KafkaBytes},
		{"memory of Redis", got.RedisBytes, want.RedisBytes}, {"writes to Redis", got.RedisPerSec, want.RedisPerSec},
		{"disk of the journal", got.JournalBytes, want.JournalBytes}, {"most labels", got.LabelLimit, want.LabelLimit},
	} {
		if math.Abs(f.got-f.want) > 1e-9*math.Abs(f.want) {
			t.Errorf("%s: %v, want %v", f.name, f.got, f.want)
		}
	}
}

// Two phases with different numbers of labels and saves tell the two costs apart.
func TestSplit(t *testing.T) {
	const label, save = 180e-6, .21
	few := phase{labels: 5000, saves: 2, cpu: 5000*label + 2*save}
	many := phase{labels: 5000, saves: 160, cpu: 5000*label + 160*save}
	gotLabel, gotSave, ok := split(few, many)
	if !ok || math.Abs(gotLabel-label) > 1e-9 || math.Abs(gotSave-save) > 1e-9 {
		t.Errorf("a label costs %v s and a save %v s (%v), want %v and %v", gotLabel, gotSave, ok, label, save)
	}
	if _, _, ok := split(few, few); ok {
		t.Error("two equal phases tell two costs apart")
	}
}
