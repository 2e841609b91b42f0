package sizing

import "math"

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
	LearnerCores float64 `json:"learner_cores"` // above 1 one model is not enough: its events are learnt one after the other

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
	loads := c.Load / l.SaveEvery / l.Busy                                                                  // cores of a scorer process
	processes := math.Max(1, math.Ceil(scores*c.Score/l.Busy/(scorerCores-math.Min(loads, scorerCores/2)))) // each has loads too
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
