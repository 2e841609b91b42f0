package sizing

import (
	"fmt"
	"math"

	"hamlet/cmd/internal/lab/experiment"
)

// A result is what a day used, and what the whole day needs.
type result struct {
	Model   string  `json:"model"`
	Scores  int64   `json:"scores"`
	Refused int64   `json:"refused"` // questions that were answered "not now"
	Labels  int     `json:"labels"`
	Saves   float64 `json:"saves"`
	Seconds float64 `json:"seconds"`  // of the questions
	Median  float64 `json:"median_s"` // of an answer
	Late    float64 `json:"late_s"`   // 99 % of the answers came earlier

	Processes  []used   `json:"processes"`
	RedisBytes float64  `json:"redis_bytes"` // of all versions that it keeps
	Costs      Costs    `json:"costs"`
	Demand     Demand   `json:"demand"`
	Warnings   []string `json:"warnings,omitempty"`

	Load Load `json:"load"`
}

// A used is what a process used while questions were asked.
type used struct {
	Name   string  `json:"name"`
	CPU    float64 `json:"cpu_s"`
	Memory float64 `json:"memory_bytes"` // at most since its start
}

func (r *result) process(name string) used {
	for _, p := range r.Processes {
		if p.Name == name {
			return p
		}
	}
	return used{}
}

// sections are the tables: what was used, what one thing costs, what the whole day needs.
func (r *result) sections() []*experiment.Section {
	c, d, l := &r.Costs, &r.Demand, &r.Load
	usage := &experiment.Section{
		Lead: experiment.Plain(fmt.Sprintf("%d answers (%d refused) in %.0f s, %.0f a second; median %.1f ms, 99 %% "+
			"%.1f ms; %d labels, %.0f saves", r.Scores, r.Refused, r.Seconds, float64(r.Scores)/r.Seconds, 1e3*r.Median,
			1e3*r.Late,
			r.Labels, r.Saves)),
		Table: experiment.Table{Right: true, Head: [][]string{{"process", "CPU s", "memory MB"}}},
	}
	for _, p := range r.Processes {
		usage.Table.Addf("%s\t%.1f\t%.0f", p.Name, p.CPU, p.Memory/1e6)
	}
	if r.RedisBytes > 0 {
		usage.Notes = experiment.Plain(fmt.Sprintf("Redis' data grew by %s: a model of %s, in the versions that "+
			"it keeps",
			size(r.RedisBytes), size(c.ModelBytes)))
	}
	costs := &experiment.Section{Lead: experiment.Plain("", "what one costs")}
	costs.Table.Add("score", micros(c.Score), "scorer, with the line of the journal")
	costs.Table.Add("score", micros(c.Gateway), "gateway, over HTTP")
	if c.NATS > 0 {
		costs.Table.Add("score", micros(c.NATS), "NATS, with the line of the journal")
	}
	costs.Table.Add("load", micros(c.Load), "scorer, each version that a learner saves")
	costs.Table.Add("label", micros(c.Ingest), "ingest, in batches")
	costs.Table.Add("label", micros(c.Learn), "learner, of a backlog")
	costs.Table.Addf("rest\t%.1f %%\tlearner, of a core, while labels come one by one", 100*c.Rest)
	costs.Table.Addf("save\t%s\tlearner, of %.0f MB", micros(c.Save), c.ModelBytes/1e6)
	if c.EventBytes > 0 {
		costs.Table.Addf("label in Kafka\t%.0f B\tone replica", c.EventBytes)
	}
	costs.Table.Addf("answer in the journal\t%.0f B\tone replica", c.JournalBytes)
	needs := &experiment.Section{Lead: experiment.Plain("",
		fmt.Sprintf("a day of %.3g answers and %.3g labels; peak %.3g times "+
			"the mean, cores %.0f %% busy then", l.Scores, l.Labels, l.Peak, 100*l.Busy)),
		Notes: experiment.Plain(r.Warnings...)}
	needs.Table.Addf("scorers\t%.1f cores\t%.0f answers a second; %.1f GB in processes of %d cores", d.ScorerCores,
		d.ScoresAtPeak,
		d.ScorerBytes/1e9, scorerCores)
	needs.Table.Addf("gateways\t%.1f cores\t", d.GatewayCores)
	if d.NATSCores > 0 {
		needs.Table.Addf("NATS\t%.1f cores\t", d.NATSCores)
	}
	needs.Table.Addf("ingest\t%.2f cores\t%.0f labels a second", d.IngestCores, d.LabelsAtPeak)
	needs.Table.Addf("learner\t%.2f cores\tone model learns %.0f labels a second at most", d.LearnerCores, d.LabelLimit)
	if d.KafkaBytes > 0 {
		needs.Table.Addf("Kafka\t%s\t%.0f days of labels, %.0f replicas", size(d.KafkaBytes), l.KeepDays, l.Replicas)
	}
	needs.Table.Addf("Redis\t%s\t%.0f versions at most; up to %s a second written and %s read", size(d.RedisBytes),
		l.Versions,
		size(d.RedisWrites), size(d.RedisReads))
	needs.Table.Addf("journal\t%s\t%.0f days of answers", size(d.JournalBytes), l.JournalOf)
	return []*experiment.Section{usage, costs, needs}
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

// Costs are what one operation costs. Times are seconds of one core; sizes are bytes.
type Costs struct {
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
	GatewayBytes float64 `json:"gateway_bytes"` // memory of a gateway
	IngestBytes  float64 `json:"ingest_bytes"`  // memory of an ingest
}

// A Load is a day, and how it is to be served.
type Load struct {
	Scores float64 `json:"scores"` // messages a day
	Labels float64 `json:"labels"` // labels a day

	Peak      float64 `json:"peak"`       // busiest hour's rate over the day's mean
	Busy      float64 `json:"busy"`       // share of a core that is used in that hour; the rest is for surprises
	SaveEvery float64 `json:"save_every"` // seconds
	KeepDays  float64 `json:"keep_days"`  // of the events in Kafka
	Replicas  float64 `json:"replicas"`   // of Kafka's topics
	Versions  float64 `json:"versions"`   // of a model in Redis: the newest and the daily ones
	JournalOf float64 `json:"journal_of"` // days that the journal is to hold
}

const secondsPerDay = 86400

// A Demand is what a Load needs.
type Demand struct {
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

// scorerCores is how many cores one scorer process is taken to use.
const scorerCores = 8

// Plan says what a load needs. The model is linear:
//
//	rate at peak     = operations a day / 86,400 · Peak
//	cores            = rate at peak · processor time of one operation / Busy
//	scorers' cores   = (scores at peak · Score + processes · Load / SaveEvery) / Busy
//	learner's cores  = (labels at peak · Learn + Save / SaveEvery + Rest) / Busy
//	Kafka's disk     = labels a day · KeepDays · EventBytes · Replicas
//	Redis' memory    = Versions · ModelBytes    no chunk is shared: a busy model changes all between two days
//	Redis' writes    ≤ ModelBytes / SaveEvery
//	Redis' reads     ≤ scorer processes · ModelBytes / SaveEvery
//	journal's disk   = scores a day · JournalOf · JournalBytes
//
// It holds while no process waits for another: costs are of processor time, and half of a core
// is left idle. It leaves out what Kafka and Redis compute.
func Plan(c Costs, l Load) Demand {
	scores, labels := l.Scores/secondsPerDay*l.Peak, l.Labels/secondsPerDay*l.Peak
	fixed := c.Save/l.SaveEvery + c.Rest
	// cores of a scorer process
	loads := c.Load / l.SaveEvery / l.Busy
	// each has loads too
	processes := math.Max(1, math.Ceil(scores*c.Score/l.Busy/(scorerCores-math.Min(loads, scorerCores/2))))
	d := Demand{
		ScoresAtPeak: scores, LabelsAtPeak: labels,
		ScorerCores: scores*c.Score/l.Busy + processes*loads, GatewayCores: scores * c.Gateway / l.Busy,
		IngestCores: labels * c.Ingest / l.Busy, LearnerCores: (labels*c.Learn + fixed) / l.Busy,
		KafkaBytes: l.Labels * l.KeepDays * c.EventBytes * l.Replicas, RedisBytes: l.Versions * c.ModelBytes,
		NATSCores:   scores * c.NATS / l.Busy,
		RedisWrites: c.ModelBytes / l.SaveEvery, RedisReads: processes * c.ModelBytes / l.SaveEvery,
		JournalBytes: l.Scores * l.JournalOf * c.JournalBytes,
		LabelLimit:   math.Max(0, 1-fixed) / c.Learn,
	}
	d.ScorerBytes = processes * c.ScorerBytes
	return d
}
