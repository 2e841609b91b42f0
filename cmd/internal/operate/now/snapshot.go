package now

import (
	"time"

	"hamlet/cmd/internal/service/answered"
	"hamlet/stream"
)

// A Snapshot is what a Feed knew at one moment. All who look share it, and nobody changes it.
type Snapshot struct {
	At      time.Time
	Model   string
	Journal Journal
	Labels  Labels
	Errors  Errors
	Alarms  Alarms
	Learnt  Learnt
}

// A Journal says what scorers answered in the last hour. Where Away is not empty, the figures
// are the last that were read.
type Journal struct {
	Away    string // why the journal cannot be read, as a sentence
	None    bool   // no scorer has written a journal yet
	Reading bool   // the past is not read yet

	Read      time.Time // the counts end then: At, or when the journal went away
	Since     time.Time // of the counts: an hour ago, or later if the past was too long to read
	Cut       bool      // Since is later than an hour ago
	OneOf     int       // of so many lines one is decoded just now; 1: all are
	Estimated bool      // some of the counts are scaled
	Damaged   int       // lines that cannot be read

	LastMinute float64  // answers in the last 60 seconds
	Hour       Counts   // all of it
	Minutes    []Minute // 60, the oldest first; the last one is not over
	Doors      []Door   // by name
}

// Counts are answers by verdict.
type Counts struct{ Spam, Ham, Unsure float64 }

// Total returns the number of answers.
func (c Counts) Total() float64 { return c.Spam + c.Ham + c.Unsure }

// SpamShare returns the fraction of spam; NaN without an answer.
func (c Counts) SpamShare() float64 { return c.Spam / c.Total() }

// UnsureShare returns the fraction without a verdict; NaN without an answer.
func (c Counts) UnsureShare() float64 { return c.Unsure / c.Total() }

func (c *Counts) add(verdict stream.Decision, weight float64) {
	switch verdict {
	case stream.DecideSpam:
		c.Spam += weight
	case stream.DecideHam:
		c.Ham += weight
	default:
		c.Unsure += weight
	}
}

func (c *Counts) sum(other Counts) {
	c.Spam, c.Ham, c.Unsure = c.Spam+other.Spam, c.Ham+other.Ham, c.Unsure+other.Unsure
}

// A Minute is the answers of one minute.
type Minute struct {
	Start time.Time
	Counts
}

// A Door is what came in by one door.
type Door struct {
	Name string
	Counts
	// Half and NineTenths of the answers took at most so many milliseconds, to within a tenth.
	Half, NineTenths float64
}

// Labels say how right the answers of the last day were whose messages got a label. The time
// is shorter where answers or labels of it had to be forgotten. Where Away is not empty, the
// figures are the last that were read.
type Labels struct {
	Away  string
	Since time.Time // of the answers that are counted
	answered.Figures
}

// Alarms are the incidents that are open.
type Alarms struct {
	Away    string
	Unread  bool // they were never read
	Damaged int  // alerts that cannot be read
	Open    []Alarm
	Doubts  answered.Doubts // times in which p was not to be trusted
}

// An Alarm is an open incident.
type Alarm struct {
	ID       string    // of the incident; empty if it has none
	Kind     string    // empty: a suspicion
	Since    time.Time // of the incident
	Sentence string    // of the newest alert
}

// Learnt is the newest checkpoint in Redis, and how far it is behind the log.
type Learnt struct {
	Away     string    // why Redis cannot be read
	Version  int64     // the newest; 0: there is none yet
	Served   int64     // scorers answer from it; 0 if it is not kept
	Pinned   bool      // by an operator
	Events   uint64    // of the newest
	Saved    time.Time // the newest
	Idle     bool      // no learner is active
	Next     int64     // the offset of the first record that the newest has not learnt
	LagAway  string    // why the lag is not known
	Lag      int64     // records that the newest has not learnt, if LagKnown
	LagKnown bool
}

// The sentences of what is not configured, of what has not answered yet, and of a NATS that
// is away.
const (
	natsSilent  = "NATS has not answered yet."
	redisSilent = "The store has not answered yet."
	kafkaSilent = "Kafka has not answered yet."

	natsAway = "NATS cannot be reached. These figures go on when it is back."

	noNATS  = "This console has no NATS: name its server with --nats."
	noRedis = "This console has no Redis: name it with --redis."
	noKafka = "This console has no Kafka, so the lag is not known: name its brokers with --kafka."
)
