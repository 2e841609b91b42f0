package bench

import (
	"fmt"
	"math"

	"hamlet/cmd/internal/lab/experiment"
)

// A dayResult is what a day used, and what the whole day needs.
type dayResult struct {
	Model   string  `json:"model"`
	Scores  int     `json:"scores"`
	Refused int     `json:"refused"` // questions that were answered "not now"
	Labels  int     `json:"labels"`
	Saves   float64 `json:"saves"`
	Seconds float64 `json:"seconds"`  // of the questions
	Median  float64 `json:"median_s"` // of an answer
	Late    float64 `json:"late_s"`   // 99 % of the answers came earlier

	Processes  []used   `json:"processes"`
	RedisBytes float64  `json:"redis_bytes"` // of all versions that it keeps
	Costs      costs    `json:"costs"`
	Demand     demand   `json:"demand"`
	Warnings   []string `json:"warnings,omitempty"`

	scale, peak, saveEvery float64 // of the whole day; seconds
}

// A used is what a process used while questions were asked.
type used struct {
	Name   string  `json:"name"`
	CPU    float64 `json:"cpu_s"`
	Memory float64 `json:"memory_bytes"` // at most since its start
}

func (r *dayResult) process(name string) used {
	for _, p := range r.Processes {
		if p.Name == name {
			return p
		}
	}
	return used{}
}

// costs are what one operation costs. Times are seconds of one core; sizes are bytes.
type costs struct {
	Score   float64 `json:"score_cpu_s"`   // scorer: one message, with the journal's line
	Load    float64 `json:"load_cpu_s"`    // scorer: one version of the model, after a save
	Gateway float64 `json:"gateway_cpu_s"` // gateway: one message
	NATS    float64 `json:"nats_cpu_s"`    // NATS: one message and its answer, with the journal; 0: not measured
	Ingest  float64 `json:"ingest_cpu_s"`  // ingest: one label
	Learn   float64 `json:"learn_cpu_s"`   // learner: one label of a backlog
	Rest    float64 `json:"rest_cores"`    // learner: cores beside labels and saves, while labels come one by one
	Save    float64 `json:"save_cpu_s"`    // learner: one save of one model

	ModelBytes   float64 `json:"model_bytes"`   // a checkpoint; a save rewrites at most all of it
	EventBytes   float64 `json:"event_bytes"`   // one label in Kafka's log, one replica
	JournalBytes float64 `json:"journal_bytes"` // one answer in the journal
	ScorerBytes  float64 `json:"scorer_bytes"`  // memory of a scorer
	LearnerBytes float64 `json:"learner_bytes"` // memory of a learner
}

// A phase is what was done, and the processor time of the services.
type phase struct {
	scores, labels, saves            float64
	ingest, learner, scorer, gateway float64 // seconds of one core
}

// costs splits what the phases used by what they did. A label costs what it does in a backlog,
// with the few saves of that phase. Labels that come one by one cost more: what they add is
// called rest, and does not grow with their number, because many come in one batch.
func (r *dayResult) costs(first, second, third phase) {
	c := &r.Costs
	c.Save, c.Load = third.learner/third.saves, third.scorer/third.saves
	c.Ingest, c.Learn, c.Gateway = first.ingest/first.labels, first.learner/first.labels, second.gateway/second.scores
	c.Rest = max(0, second.learner-c.Save*second.saves-c.Learn*second.labels) / r.Seconds
	c.Score = (second.scorer - c.Load*second.saves) / second.scores
	if c.Score <= 0 {
		c.Score = second.scorer / second.scores
		r.Warnings = append(r.Warnings, "there were too few questions: the cost of a score includes that of loading "+
			"models")
	}
}

// How the whole day is served.
const (
	secondsPerDay = 86400
	busy          = .5 // share of a core that is used in the busiest hour; the rest is for surprises
	scorerCores   = 8  // that one scorer process is taken to use
	keepDays      = 90 // of the events in Kafka
	replicas      = 3  // of Kafka's topics
	versions      = 33 // of a model in Redis: the newest and the daily ones
	journalDays   = 14
)

// A demand is what the whole day needs.
type demand struct {
	ScoresAtPeak float64 `json:"scores_at_peak"` // a second
	LabelsAtPeak float64 `json:"labels_at_peak"` // a second

	ScorerCores  float64 `json:"scorer_cores"`
	GatewayCores float64 `json:"gateway_cores"`
	NATSCores    float64 `json:"nats_cores"`
	IngestCores  float64 `json:"ingest_cores"`
	LearnerCores float64 `json:"learner_cores"` // above 1 one model is not enough: it learns one event at a time

	ScorerBytes  float64 `json:"scorer_bytes"`  // memory, a process with as many cores as a scorer uses, 8
	KafkaBytes   float64 `json:"kafka_bytes"`   // disk, all replicas
	RedisBytes   float64 `json:"redis_bytes"`   // memory
	RedisWrites  float64 `json:"redis_writes"`  // bytes a second that saves write at most
	RedisReads   float64 `json:"redis_reads"`   // bytes a second that scorers load at most
	JournalBytes float64 `json:"journal_bytes"` // disk, one replica
	LabelLimit   float64 `json:"label_limit"`   // labels a second that one model learns at most
}

// plan says what the whole day needs. deploy/SIZING.md states the model, which is linear. No chunk
// of two versions in Redis is taken to be shared: a busy model changes all between two days.
func (r *dayResult) plan() demand {
	c := &r.Costs
	scores, labels := r.wholeDay()
	scoreRate, labelRate := scores/secondsPerDay*r.peak, labels/secondsPerDay*r.peak
	fixed := c.Save/r.saveEvery + c.Rest
	loads := c.Load / r.saveEvery / busy // cores of each scorer process
	processes := math.Max(1, math.Ceil(scoreRate*c.Score/busy/(scorerCores-math.Min(loads, scorerCores/2))))
	return demand{
		ScoresAtPeak: scoreRate, LabelsAtPeak: labelRate,
		ScorerCores: scoreRate*c.Score/busy + processes*loads, ScorerBytes: processes * c.ScorerBytes,
		GatewayCores: scoreRate * c.Gateway / busy, NATSCores: scoreRate * c.NATS / busy,
		IngestCores: labelRate * c.Ingest / busy, LearnerCores: (labelRate*c.Learn + fixed) / busy,
		LabelLimit: math.Max(0, 1-fixed) / c.Learn,
		KafkaBytes: labels * keepDays * c.EventBytes * replicas, JournalBytes: scores * journalDays * c.JournalBytes,
		RedisBytes: versions * c.ModelBytes, RedisWrites: c.ModelBytes / r.saveEvery,
		RedisReads: processes * c.ModelBytes / r.saveEvery,
	}
}

// wholeDay is the messages and labels of the day that is meant.
func (r *dayResult) wholeDay() (scores, labels float64) {
	return float64(r.Scores+r.Refused) * r.scale, float64(r.Labels) * r.scale
}

// sections are the tables: what was used, what one thing costs, what the whole day needs.
func (r *dayResult) sections() []*experiment.Section {
	c, d := &r.Costs, &r.Demand
	usage := &experiment.Section{
		Lead: experiment.Plain(fmt.Sprintf("%d answers (%d refused) in %.0f s, %.0f a second; median %.1f ms, 99 %% "+
			"%.1f ms; %d labels, %.0f saves", r.Scores, r.Refused, r.Seconds, float64(r.Scores)/r.Seconds, 1e3*r.Median,
			1e3*r.Late, r.Labels, r.Saves)),
		Table: experiment.Table{Right: true, Head: [][]string{{"process", "CPU s", "memory MB"}}},
	}
	for _, p := range r.Processes {
		usage.Table.Addf("%s\t%.1f\t%.0f", p.Name, p.CPU, p.Memory/1e6)
	}
	if r.RedisBytes > 0 {
		usage.Notes = experiment.Plain(fmt.Sprintf("Redis' data grew by %s: a model of %s, in the versions that "+
			"it keeps", size(r.RedisBytes), size(c.ModelBytes)))
	}
	each := &experiment.Section{Lead: experiment.Plain("", "what one costs")}
	each.Table.Add("score", micros(c.Score), "scorer, with the line of the journal")
	each.Table.Add("score", micros(c.Gateway), "gateway, over HTTP")
	if c.NATS > 0 {
		each.Table.Add("score", micros(c.NATS), "NATS, with the line of the journal")
	}
	each.Table.Add("load", micros(c.Load), "scorer, each version that a learner saves")
	each.Table.Add("label", micros(c.Ingest), "ingest, in batches")
	each.Table.Add("label", micros(c.Learn), "learner, of a backlog")
	each.Table.Addf("rest\t%.1f %%\tlearner, of a core, while labels come one by one", 100*c.Rest)
	each.Table.Addf("save\t%s\tlearner, of %.0f MB", micros(c.Save), c.ModelBytes/1e6)
	if c.EventBytes > 0 {
		each.Table.Addf("label in Kafka\t%.0f B\tone replica", c.EventBytes)
	}
	each.Table.Addf("answer in the journal\t%.0f B\tone replica", c.JournalBytes)
	scores, labels := r.wholeDay()
	needs := &experiment.Section{
		Lead: experiment.Plain("", fmt.Sprintf("a day of %.3g answers and %.3g labels; peak %.3g times the mean, "+
			"cores %.0f %% busy then", scores, labels, r.peak, 100*busy)),
		Notes: experiment.Plain(r.Warnings...)}
	needs.Table.Addf("scorers\t%.1f cores\t%.0f answers a second; %.1f GB in processes of %d cores", d.ScorerCores,
		d.ScoresAtPeak, d.ScorerBytes/1e9, scorerCores)
	needs.Table.Addf("gateways\t%.1f cores\t", d.GatewayCores)
	if d.NATSCores > 0 {
		needs.Table.Addf("NATS\t%.1f cores\t", d.NATSCores)
	}
	needs.Table.Addf("ingest\t%.2f cores\t%.0f labels a second", d.IngestCores, d.LabelsAtPeak)
	needs.Table.Addf("learner\t%.2f cores\tone model learns %.0f labels a second at most", d.LearnerCores, d.LabelLimit)
	if d.KafkaBytes > 0 {
		needs.Table.Addf("Kafka\t%s\t%d days of labels, %d replicas", size(d.KafkaBytes), keepDays, replicas)
	}
	needs.Table.Addf("Redis\t%s\t%d versions at most; up to %s a second written and %s read", size(d.RedisBytes),
		versions, size(d.RedisWrites), size(d.RedisReads))
	needs.Table.Addf("journal\t%s\t%d days of answers", size(d.JournalBytes), journalDays)
	return []*experiment.Section{usage, each, needs}
}

func micros(seconds float64) string { return fmt.Sprintf("%.0f µs", 1e6*seconds) }

// size writes bytes in the unit that suits them.
func size(bytes float64) string {
	for _, u := range []struct {
		unit string
		size float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}} {
		if bytes >= u.size {
			return fmt.Sprintf("%.1f %s", bytes/u.size, u.unit)
		}
	}
	return fmt.Sprintf("%.0f B", bytes)
}
