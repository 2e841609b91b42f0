package drift

import "math"

// Incidents decides what the signs of change mean. An incident goes
//
//	          ┌─────────────────────────────────┐ an alarm names at once
//	quiet ────┴──> suspected ──> named ──> cleared
//	                   └───────> withdrawn
//
// A suspicion says that something changed and not yet what. It is opened when a walk is up
// or the concept alarm is raised, while no other incident is open. If the concept alarm is raised
// when an incident is cleared, that incident explains it. An explained alarm is no sign until it
// has cleared. The walks are on 1−φ, on the same at a flip rate of .05, both by the head of the
// label-noise alarm, and on 1−q of the head that predicts. A suspicion is named by the first of
//
//   - an accused source: source, with its name;
//   - the label-noise alarm: label noise;
//   - the covariate alarm: covariate;
//   - the Bayes factor B of the labels since τ: label noise below −5 nats, concept above
//     5 nats while the covariate alarm's level is below .25, both after 30 labels of which 5
//     of each class;
//   - the sign of B after 400 labels: label noise below 0, concept above 1.
//
// Concept also needs that the labels which contradict the head speak for it: their part of B
// is above −1, and the credulous head gives more than ½ to at least one in five of them.
//
// τ is the event after which all walks were last 0 and the concept alarm was no sign, at most
// 300 before the suspicion. If the signs go away, or 400 labels decide nothing, the suspicion
// is withdrawn. A new one then waits until all signs were away.
//
// The first three also name where nothing was suspected. Label noise and an accused source
// are one incident: while source is open the label-noise alarm opens no other. If somebody is
// accused while label noise is open, that incident is raised a second time with his name. So
// there are at most one suspicion, one incident about labels, one covariate and one concept,
// and no suspicion beside a named one.
//
// An incident is cleared when its alarm is cleared and all walks are down; one with an accused
// source also waits for 1,000 events without an accusation. At most one incident is opened at
// one event: another waits for the next.
//
// What cannot be known: labels that were bad from the first event are the normal. Nothing is
// suspected within the first 500 events.
type Incidents struct {
	walks  [len(walkRules)]walk
	recent []contest // since τ: at most mostBack without a suspicion, below mostContests with one
	spent  bool      // a suspicion came to nothing, and its signs have not gone away since

	// The concept alarm was raised when an incident was cleared, and has not cleared since.
	explained bool

	// Invariant: if suspicion is open, none of named is.
	suspicion incident
	factor    factor // of recent, while suspicion is open; else zero
	named     [namedSlots]incident
	accused   uint64 // count of the last accusation, 0: none
}

// The incidents that can be open at the same time.
const (
	aboutLabels = iota // label noise or source
	aboutMail          // covariate
	aboutWorld         // concept
	namedSlots
)

const (
	mostBack    = 300
	accusedHold = 1_000
)

// Newcomers is Change.Source where new names take turns.
const Newcomers = "newcomers"

// An incident is an open incident. The zero value means that none is open.
type incident struct {
	number      uint64 // Observation.Event of the event that opened it
	transitions int    // so far, within transitionBounds
	since       uint64 // count of the last transition
	kind        string
	accused     bool
	source      string // if somebody is accused: who
}

// mostTransitions of an incident: suspected, named, accused, newcomers. The last one ends it.
const mostTransitions = 4

func (i *incident) open() bool { return i.number > 0 }

// transitionBounds returns the fewest and the most transitions of an open incident of i's kind.
// A suspicion has one. A named incident has one more if it was suspected first, label noise one
// for the accusation, and newcomers one because they may have taken the place of a source.
func (i *incident) transitionBounds() (least, most int) {
	least = 1
	if i.accused && i.kind == KindLabelNoise {
		least++
	}
	most = least
	if i.kind != KindUnknown {
		most++
	}
	if i.source == Newcomers {
		most++
	}
	return least, most
}

// Evidence is what an event tells Incidents.
type Evidence struct {
	Event     uint64  // Observation.Event
	Spam      bool    // the label
	Doubt     float64 // 1 − φ by the head of the label-noise alarm
	Watched   float64 // the probability of the label by that head
	Prob      float64 // the probability of spam by the head that predicts
	Credulous float64 // the probability of the label by the credulous head; NaN without such a head
	Surprise  float64 // the level of the covariate alarm

	Noise, Covariate, Concept bool // whether these alarms are raised

	Source  string // who gave the label
	Accused bool   // by standing (package trust)
	New     bool   // Source has hardly labelled before
}

// Observe takes event number count. It appends the transitions, without Status and Report, to
// dst. The numbers of e must be finite and its probabilities in [0, 1]. O(1).
func (n *Incidents) Observe(dst []Change, count uint64, e *Evidence) []Change {
	n.walk(e)
	up := n.up()
	n.explained = n.explained && e.Concept
	calm := !n.unexplained(e) && n.excess() == 0
	n.remember(e, calm)
	if e.Accused {
		n.accused = count
	}
	dst = n.clear(dst, count, e, up)
	if n.suspicion.open() {
		return n.judge(dst, count, e, calm)
	}
	labels := &n.named[aboutLabels]
	switch {
	case e.Accused && labels.open():
		return n.accuse(dst, count, e)
	case e.Accused:
		return n.raise(dst, count, e, incident{}, KindSource)
	case e.Noise && !labels.open():
		return n.raise(dst, count, e, incident{}, KindLabelNoise)
	case e.Covariate && !n.named[aboutMail].open():
		return n.raise(dst, count, e, incident{}, KindCovariate)
	case (up || n.unexplained(e)) && !n.spent && !n.anyNamed():
		n.suspicion = incident{number: e.Event, transitions: 1, since: count, kind: KindUnknown}
		n.weigh()
		return append(dst, n.suspicion.change(Suspected))
	}
	return dst
}

// walk moves the walks.
func (n *Incidents) walk(e *Evidence) {
	right, wrong := float64((1-doubtRate)*e.Watched), float64(doubtRate*(1-e.Watched))
	q := e.Prob
	if !e.Spam {
		q = 1 - q
	}
	still := n.up()
	for i, x := range [len(walkRules)]float64{e.Doubt, wrong / (right + wrong), 1 - q} {
		n.walks[i].observe(x, walkRules[i], still)
	}
	for i := range n.walks {
		if n.walks[i].spell > walkSettle {
			n.walks = [len(walkRules)]walk{}
		}
	}
}

func (n *Incidents) up() bool {
	for i := range n.walks {
		if n.walks[i].up() {
			return true
		}
	}
	return false
}

// unexplained reports whether the concept alarm is a sign.
func (n *Incidents) unexplained(e *Evidence) bool { return e.Concept && !n.explained }

// excess returns the greatest U of the walks, in units of its threshold.
func (n *Incidents) excess() (most float64) {
	for i := range n.walks {
		most = max(most, n.walks[i].excess/walkRules[i].threshold(&n.walks[i]))
	}
	return most
}

// remember keeps the event as one since τ, or begins at a new τ.
func (n *Incidents) remember(e *Evidence, calm bool) {
	if calm {
		n.recent, n.spent = n.recent[:0], false
		return
	}
	c := contest{spam: e.Spam, prob: e.Prob}
	if !math.IsNaN(e.Credulous) {
		c.credulous = mixed(e.Credulous)
	}
	if n.suspicion.open() {
		n.recent = append(n.recent, c)
		n.factor.add(&c)
		return
	}
	n.keep(mostBack - 1)
	n.recent = append(n.recent, c)
}

// keep drops all but the latest most of recent.
func (n *Incidents) keep(most int) {
	if over := len(n.recent) - most; over > 0 {
		n.recent = n.recent[:copy(n.recent, n.recent[over:])]
	}
}

// weigh computes the factor of recent.
func (n *Incidents) weigh() {
	n.factor = factor{}
	for i := range n.recent {
		n.factor.add(&n.recent[i])
	}
}

// clear ends the named incidents whose signs have gone away.
func (n *Incidents) clear(dst []Change, count uint64, e *Evidence, up bool) []Change {
	raised := [namedSlots]bool{aboutLabels: e.Noise, aboutMail: e.Covariate, aboutWorld: e.Concept}
	for k := range n.named {
		i := &n.named[k]
		if !i.open() || up || raised[k] || i.accused && count-n.accused < accusedHold {
			continue
		}
		i.transitions++
		dst = append(dst, i.change(Cleared))
		*i = incident{}
		n.explained = e.Concept
	}
	return dst
}

// judge names the suspicion, withdraws it or lets it stand.
func (n *Incidents) judge(dst []Change, count uint64, e *Evidence, calm bool) []Change {
	kind, decided := n.factor.verdict(e.Surprise)
	switch {
	case e.Accused:
		kind = KindSource
	case e.Noise:
		kind = KindLabelNoise
	case e.Covariate:
		kind = KindCovariate
	case calm:
		kind, decided = "", true
	}
	was := n.suspicion
	if kind != "" || decided {
		n.suspicion, n.factor = incident{}, factor{}
		n.keep(mostBack)
	}
	switch {
	case kind != "":
		return n.raise(dst, count, e, was, kind)
	case decided:
		n.spent = !calm
		was.transitions++
		return append(dst, was.change(Withdrawn))
	}
	return dst
}

// raise names an incident that was suspected, or opens one if was is none.
func (n *Incidents) raise(dst []Change, count uint64, e *Evidence, was incident, kind string) []Change {
	slot := aboutLabels
	switch kind {
	case KindCovariate:
		slot = aboutMail
	case KindConcept:
		slot = aboutWorld
	}
	if !was.open() {
		was.number = e.Event
	}
	was.kind, was.since = kind, count
	was.transitions++
	if kind == KindSource {
		was.accused, was.source = true, nameOf(e)
	}
	n.named[slot] = was
	return append(dst, was.change(Raised))
}

// accuse adds the accused source to the incident about labels.
func (n *Incidents) accuse(dst []Change, count uint64, e *Evidence) []Change {
	i := &n.named[aboutLabels]
	switch name := nameOf(e); {
	case !i.accused:
		i.accused, i.source = true, name
	case i.source != name && i.source != Newcomers && e.New:
		i.source = Newcomers
	default:
		return dst
	}
	i.transitions, i.since = i.transitions+1, count
	return append(dst, i.change(Raised))
}

func (n *Incidents) anyNamed() bool {
	for i := range n.named {
		if n.named[i].open() {
			return true
		}
	}
	return false
}

func (i *incident) change(state State) Change {
	return Change{Kind: i.kind, State: state, Incident: i.number, Transition: i.transitions, Source: i.source}
}

// mostSource bounds the bytes of a name that are kept.
const mostSource = 256

func nameOf(e *Evidence) string { return e.Source[:min(len(e.Source), mostSource)] }
