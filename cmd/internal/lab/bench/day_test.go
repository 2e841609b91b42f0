package bench

import (
	"math"
	"testing"
)

// A day that can be computed by hand.
func TestPlan(t *testing.T) {
	c := costs{Score: 1e-3, Load: .15, Gateway: 2e-3, NATS: 1e-4, Ingest: 1e-4, Learn: 2e-4, Save: .3, Rest: .02,
		ModelBytes: 30e6, EventBytes: 4000, JournalBytes: 250, ScorerBytes: 100e6}
	r := dayResult{Scores: 86400, Labels: 864, Costs: c, scale: 1000, peak: 2, saveEvery: 3}
	got := r.plan()
	want := demand{
		ScoresAtPeak: 2000, LabelsAtPeak: 20,
		ScorerCores: 4 + .15/3/.5, GatewayCores: 8, IngestCores: .004, LearnerCores: (20*2e-4 + .12) / .5,
		KafkaBytes: 864000 * 90 * 4000 * 3, RedisBytes: 33 * 30e6, RedisWrites: 10e6, RedisReads: 10e6, NATSCores: .4,
		JournalBytes: 86400 * 1000 * 14 * 250, LabelLimit: .88 / 2e-4, ScorerBytes: 100e6,
	}
	for _, f := range []struct {
		name      string
		got, want float64
	}{
		{"scores at peak", got.ScoresAtPeak, want.ScoresAtPeak},
		{"labels at peak", got.LabelsAtPeak, want.LabelsAtPeak},
		{"cores of scorers", got.ScorerCores, want.ScorerCores},
		{"cores of gateways", got.GatewayCores, want.GatewayCores},
		{"cores of ingest", got.IngestCores, want.IngestCores},
		{"cores of the learner", got.LearnerCores, want.LearnerCores},
		{"memory of scorers", got.ScorerBytes, want.ScorerBytes}, {"disk of Kafka", got.KafkaBytes, want.KafkaBytes},
		{"memory of Redis", got.RedisBytes, want.RedisBytes}, {"writes to Redis", got.RedisWrites, want.RedisWrites},
		{"reads of Redis", got.RedisReads, want.RedisReads}, {"cores of NATS", got.NATSCores, want.NATSCores},
		{"disk of the journal", got.JournalBytes, want.JournalBytes}, {"most labels", got.LabelLimit, want.LabelLimit},
	} {
		if math.Abs(f.got-f.want) > 1e-9*math.Abs(f.want) {
			t.Errorf("%s: %v, want %v", f.name, f.got, f.want)
		}
	}
}

// The third phase tells the cost of a save and of a load from those of a label and a question.
func TestCosts(t *testing.T) {
	const label, save, score, load, rest = 180e-6, .21, 250e-6, .1, .02
	r := dayResult{Seconds: 400}
	r.costs(
		phase{labels: 5000, saves: 2, learner: 5000 * label, ingest: .5},
		phase{scores: 1e6, labels: 5000, saves: 160, learner: 5000*label + 160*save + 400*rest, scorer: 1e6*score +
			160*load, gateway: 100},
		phase{labels: 5, saves: 5, learner: 5 * save, scorer: 5 * load})
	for _, f := range []struct {
		name      string
		got, want float64
	}{
		{"label", r.Costs.Learn, label}, {"save", r.Costs.Save, save}, {"score", r.Costs.Score, score},
		{"rest", r.Costs.Rest, rest},
		{"load", r.Costs.Load, load}, {"ingest", r.Costs.Ingest, 1e-4}, {"gateway", r.Costs.Gateway, 1e-4},
	} {
		if math.Abs(f.got-f.want) > 1e-9 {
			t.Errorf("%s costs %v s, want %v", f.name, f.got, f.want)
		}
	}
	if len(r.Warnings) > 0 {
		t.Error(r.Warnings)
	}
	r = dayResult{Seconds: 1} // a load costs 2 s by the third phase, which is more than the questions took
	r.costs(phase{labels: 10, saves: 1, learner: 1}, phase{scores: 100, labels: 10, saves: 30, scorer: 1},
		phase{saves: 5, learner: 10, scorer: 10})
	if len(r.Warnings) != 1 || r.Costs.Rest != 0 || r.Costs.Score != .01 {
		t.Errorf("%+v, and the warnings %q", r.Costs, r.Warnings)
	}
}
