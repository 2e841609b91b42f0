package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// The nodes of a world.
var (
	ingests  = []string{"ingest-1", "ingest-2"}
	learners = []string{"learner-1", "learner-2", "learner-3"}
	scorers  = []string{"scorer-1", "scorer-2"}
)

// The ports of a node.
const (
	portLog    = "log"
	portStore  = "store"
	portAlerts = "alerts"
	portBus    = "bus"
)

// A Kind is what an incident does to the world.
type Kind string

// The kinds of incident. Node and Port say where, For how long.
const (
	Kill       Kind = "kill"        // the process ends without a word; it starts again after For
	Stop       Kind = "stop"        // the process is asked to end, as by SIGTERM; it starts again after For
	CutOff     Kind = "cut off"     // the node's calls of a port get no answer
	Away       Kind = "away"        // every node's calls of a port fail
	CutLog     Kind = "cut log"     // a power failure takes the last N records
	Power      Kind = "power"       // the machine of a log in files loses power, after N more writes if that many come
	Replace    Kind = "replace log" // another log takes the place of the log, without its last N records
	SetBack    Kind = "set back"    // the store is as it was For ago
	Empty      Kind = "empty"       // the store has lost everything
	Flip       Kind = "flip"        // a bit of the newest checkpoint's bytes is another one
	Full       Kind = "full"        // the log has no room
	Clock      Kind = "clock"       // the node's wall clock is wrong by For, which may be years, until it is killed
	Refused    Kind = "refused"     // alerts are refused as if for ever
	BadRecords Kind = "bad records" // N records that are no events
	Misread    Kind = "misread"     // the node reads checkpoints with a bit that is another one, for For
	Damaged    Kind = "damaged"     // the node finds the log damaged where it reads, for For
	Older      Kind = "older store" // the store is away for For, and then is as it was twice as long ago
	Rot        Kind = "rot"         // a bit of a record in a log in files, N before its end or earlier, is another one
	StoreFull  Kind = "store full"  // the store has no room, N = 1: for checkpoints, for For
)

// kinds are all kinds, for Parse.
var kinds = []Kind{
	Kill, Stop, CutOff, Away, CutLog, Power, Replace, SetBack, Empty, Flip, Full, Clock, Refused, BadRecords, Misread,
	Damaged, Older, StoreFull, Rot, Pin, Rollback, Withdraw, Correct, Stand, Shadow, Promote, Demote, Restore, NewLog,
}

// An Incident happens once, at a time after the start.
type Incident struct {
	At   time.Duration
	Kind Kind
	Node string
	Port string
	For  time.Duration
	N    int
}

// String says what happens, on one line, with its time.
func (i Incident) String() string { return fmt.Sprintf("%10v %s", i.At, i.what()) }

func (i Incident) what() string {
	var b strings.Builder
	b.WriteString(string(i.Kind))
	if i.Node != "" {
		fmt.Fprintf(&b, " %s", i.Node)
	}
	if i.Port != "" {
		fmt.Fprintf(&b, " from %s", i.Port)
	}
	if i.N != 0 {
		fmt.Fprintf(&b, " %d", i.N)
	}
	if i.For != 0 {
		fmt.Fprintf(&b, " for %v", i.For)
	}
	return b.String()
}

// Rates say how often one call of a port goes wrong, from 0 to 1.
type Rates struct {
	Fail  float64 // it is not done
	Lost  float64 // it is done, and the caller hears that it failed
	Slow  float64 // it takes up to a second
	Stall float64 // it takes 30 s
}

// A Plan is what a seed draws.
type Plan struct {
	Seed      uint64
	Named     bool // the log knows its ID, as one in files does: what cuts its end ends all processes too
	Files     bool // and it is one in files
	Rates     Rates
	Incidents []Incident // by time
}

// String lists the plan, an incident a line. [Parse] reads it.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s; of the calls %v fail, %v lose their answer, %v are slow, %v stall\n",
		p.Seed, p.log(), p.Rates.Fail, p.Rates.Lost, p.Rates.Slow, p.Rates.Stall)
	for _, i := range p.Incidents {
		fmt.Fprintf(&b, "  %s\n", i)
	}
	return b.String()
}

// What log a plan has, in its text.
const (
	unnamed = "a log without an ID"
	named   = "a log with an ID"
	inFiles = "a log in files"
)

func (p *Plan) log() string {
	switch {
	case p.Files:
		return inFiles
	case p.Named:
		return named
	}
	return unnamed
}

// lasting is how long incidents happen. Then the world heals.
const lasting = time.Minute

// random returns the numbers that belong to a seed and a key.
func random(seed uint64, key string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, xxhash.Sum64String(key)))
}

// Draw returns the plan of a seed. A seed has some kinds of fault and not the others: where
// everything breaks at once, much is hidden.
func Draw(seed uint64) Plan {
	r := random(seed, "plan")
	p := Plan{Seed: seed}
	switch r.IntN(4) {
	case 0:
		p.Named = true
	case 1:
		p.Named, p.Files = true, true
	}
	some := func(most float64) float64 {
		if r.IntN(2) == 0 {
			return 0
		}
		return math.Round(1e5*most*r.Float64()*r.Float64()) / 1e5
	}
	p.Rates = Rates{Fail: some(.1), Lost: some(.1), Slow: some(.2), Stall: some(.003)}
	all := []Kind{
		Kill, Kill, Kill, Stop, CutOff, CutOff, Away, CutLog, Replace, SetBack, Empty, Flip, Full, Clock, Refused,
		BadRecords, Misread, Damaged, Older, StoreFull,
	}
	all = append(all, commands...)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	these := all[:2+r.IntN(4)]
	if slices.Contains(these, Promote) && !slices.Contains(these, Shadow) || slices.Contains(these, Demote) {
		these = append(these, Shadow, Promote)
	}
	if slices.Contains(these, NewLog) { // the log lacks what a model has learnt: who loses it cannot learn it again
		these = slices.DeleteFunc(these, func(k Kind) bool {
			return slices.Contains([]Kind{SetBack, Empty, Older, Flip, Restore, CutLog, Replace}, k)
		})
	}
	for range 1 + r.IntN(12) {
		i := drawIncident(r, these[r.IntN(len(these))])
		if p.Files && i.Kind == CutLog { // it loses nothing that it has acknowledged
			i.Kind, i.N = Power, r.IntN(8)
		}
		i.At, i.For = i.At.Round(time.Millisecond), i.For.Round(time.Millisecond)
		p.Incidents = append(p.Incidents, i)
	}
	p.Incidents = append(p.Incidents, p.rots()...)
	slices.SortStableFunc(p.Incidents, func(a, b Incident) int { return int(a.At - b.At) })
	return p
}

// rots draws bits that the medium of a log in files changes. They have numbers of their own, so that seeds
// keep what they had before there were such bits. Another log has another medium, and of a second model it is not
// said which of the records it had read before. Where a model goes back to an older version, what was saved and said
// before came of a record that it does not learn again, so there are none either.
func (p *Plan) rots() (all []Incident) {
	r := random(p.Seed, "rot")
	if !p.Files || r.IntN(2) == 0 {
		return nil
	}
	for _, kind := range []Kind{
		Replace, NewLog, Shadow, Promote, Demote, Restore, SetBack, Older, Empty, Flip, Misread, Rollback,
	} {
		if p.has(kind) {
			return nil
		}
	}
	for range 1 + r.IntN(mostRotten) {
		all = append(all, Incident{
			At: time.Duration(r.Int64N(int64(lasting))).Round(time.Millisecond), Kind: Rot, N: r.IntN(40),
			For: time.Duration(r.ExpFloat64() * float64(4*time.Second)).Round(time.Millisecond),
		})
	}
	return all
}

func drawIncident(r *rand.Rand, kind Kind) Incident {
	among := func(list ...string) string { return list[r.IntN(len(list))] }
	nodes := slices.Concat(learners, learners, scorers, ingests, shadows[:1])
	i := Incident{At: time.Duration(r.Int64N(int64(lasting))), Kind: kind}
	short := time.Duration(r.ExpFloat64() * float64(4*time.Second))
	switch kind {
	case Kill, Stop:
		i.Node, i.For = among(nodes...), short
	case CutOff:
		i.Node, i.Port, i.For = among(nodes...), among(portLog, portStore, portAlerts, portBus), 2*short
	case Away:
		i.Port, i.For = among(portLog, portStore, portAlerts, portBus), 2*short
	case CutLog, Replace:
		i.N = 1 + r.IntN(30)
	case SetBack:
		i.For = 2*time.Second + 2*short
	case Full, Refused, Older:
		i.For = short
	case StoreFull:
		i.For, i.N = 2*short, r.IntN(2)
	case Misread:
		i.Node, i.For = among(slices.Concat(learners, scorers, shadows)...), 4*short
	case Damaged:
		i.Node, i.For = among(slices.Concat(learners, shadows)...), 2*short
	case Clock:
		i.Node = among(nodes...)
		by := []time.Duration{time.Minute, time.Hour, 10_000 * time.Hour}[r.IntN(3)]
		i.For = time.Duration(r.NormFloat64() * float64(by))
	case BadRecords:
		i.N = 1 + r.IntN(4)
	case Empty, Flip:
	default:
		drawCommand(r, &i, short)
	}
	return i
}

// Minimise returns the smallest plan that it finds that still fails. fails runs a plan.
func Minimise(p Plan, fails func(Plan) bool) Plan {
	for smaller := true; smaller; {
		smaller = false
		for n := (len(p.Incidents) + 1) / 2; n > 0; n /= 2 {
			for i := 0; i+n <= len(p.Incidents); {
				less := p
				less.Incidents = slices.Delete(slices.Clone(p.Incidents), i, i+n)
				if fails(less) {
					p, smaller = less, true
				} else {
					i += n
				}
			}
		}
		for _, rate := range []func(*Rates) *float64{
			func(r *Rates) *float64 { return &r.Fail }, func(r *Rates) *float64 { return &r.Lost },
			func(r *Rates) *float64 { return &r.Slow }, func(r *Rates) *float64 { return &r.Stall },
		} {
			less := p
			if *rate(&less.Rates) == 0 {
				continue
			}
			if *rate(&less.Rates) = 0; fails(less) {
				p, smaller = less, true
			}
		}
	}
	return p
}
