package oracle

import (
	"math"

	"hamlet/algos/confseq"
	"hamlet/cmd/internal/service/worth"
)

// A State says what becomes of an oracle's answers.
//
//	trial ──the rate is shown to be below MostWrong──> trusted
//	trial <──the last answers speak against that─────  trusted
//	trial, trusted ──the rate is shown to be above MostWrong──> stopped
//
// Nothing leads out of stopped: an operator begins a new account.
type State string

const (
	Trial   State = "trial"   // it is asked about mail that people labelled, and teaches nothing
	Trusted State = "trusted" // it is asked about doubtful mail, and teaches
	Stopped State = "stopped" // it is not asked
)

// MostWrong is the share of false answers beyond which an oracle does more harm than good.
const MostWrong = 0.25

// What an account rests on. MEASURED.md has the errors of these rules.
const (
	window  = 100 // the last comparisons: a machine that was good may become bad
	least   = 10  // comparisons, before anything is decided
	against = 10  // how many times likelier the comparisons are than by a rate of MostWrong
)

var (
	below = confseq.NewBelow(MostWrong, 1)   // the evidence that it is wrong less often
	above = confseq.NewBelow(1-MostWrong, 1) // the evidence that it is right less often than that
	shown = math.Log(against)
)

// A record has the last comparisons, at most window: true is a wrong answer.
type record []bool

func (r *record) add(wrong bool) {
	if *r = append(*r, wrong); len(*r) > window {
		*r = append((*r)[:0], (*r)[1:]...)
	}
}

// count counts them.
func (r record) count() (wrong, right float64) {
	for _, w := range r {
		if w {
			wrong++
		}
	}
	return wrong, float64(len(r)) - wrong
}

// judge returns the evidence that it is wrong less often than MostWrong, and that it is wrong more often.
// Both are 0 before there are least comparisons.
func (r record) judge() (good, bad float64) {
	if len(r) < least {
		return 0, 0
	}
	wrong, right := r.count()
	return below.Log(wrong, right), above.Log(right, wrong)
}

// An Account compares an oracle's answers with the labels that people gave the same messages. It is a
// pure function of the comparisons, in their order. Its zero value is on trial.
//
// A machine may be right about easy mail and wrong about doubtful mail, which is what it teaches. Once there
// are least comparisons of doubtful mail, they alone end its trust, and easy mail does not bring that back.
type Account struct {
	last     record
	doubtful record // those of doubtful mail, which last has too while it is among the last
	doubted  bool   // doubtful mail spoke against it, and has not shown since that it is good
	total    int    // comparisons, from the first on
	wrong    int    // of total
	state    State  // "" is Trial
}

// State returns what becomes of the answers now.
func (a *Account) State() State {
	if a.state == "" {
		return Trial
	}
	return a.state
}

// Add counts a comparison of a message. It reports whether the state has changed.
func (a *Account) Add(wrong, doubtful bool) (changed bool) {
	if a.state == Stopped {
		return false
	}
	before := a.State()
	a.total++
	if wrong {
		a.wrong++
	}
	a.last.add(wrong)
	if doubtful {
		a.doubtful.add(wrong)
	}
	a.state = a.judge(before)
	return a.state != before
}

// judge returns the state that the last comparisons lead to. An oracle that is trusted stays so while
// they speak for it at all, or chance would have it come and go.
func (a *Account) judge(now State) State {
	good, bad := a.last.judge()
	goodDoubtful, badDoubtful := a.doubtful.judge()
	known := len(a.doubtful) >= least
	a.doubted = goodDoubtful < 0 || a.doubted && goodDoubtful < shown
	switch {
	case badDoubtful >= shown, bad >= shown && (!known || a.doubted):
		return Stopped
	case goodDoubtful >= shown:
		return Trusted
	case a.doubted:
		return Trial
	case good >= shown:
		return Trusted
	case good < 0 && !known:
		return Trial
	}
	return now
}

// recent counts the last comparisons.
func (a *Account) recent() (wrong, right float64) { return a.last.count() }

// Rate returns the share of false answers among the last comparisons, NaN without one.
func (a *Account) Rate() float64 {
	wrong, right := a.recent()
	return wrong / (wrong + right)
}

// Mail is doubtful if its p lies between these, and a label of it would teach so much, in nats. With
// the second rule an oracle is asked a third of the questions, and nearly as much is learnt.
const (
	leastP, mostP = 0.05, 0.95
	leastWorth    = 0.005
)

// Doubtful reports whether the answer p with its 90 % interval is worth a question.
func Doubtful(p, lo, hi float64) bool {
	return p > leastP && p < mostP && worth.Of(p, lo, hi) >= leastWorth
}

// Bounds of what a Policy remembers.
const (
	mostAsked = 20_000 // messages that the oracle was asked about; the oldest go

	// An answer waits for people's labels while the model learns so many labels. A model can withdraw one of its
	// last 2,500 events. Of an older answer only a label that contradicts it reaches the journal.
	mostWaiting = 2000
)

// An asked is what became of a question.
type asked struct {
	waits bool // for a label
	spam  bool // the answer, if it waits
	at    int  // Policy.learnt then
}

// A Policy decides which messages an oracle is asked about, and what its answers teach. It is a pure
// function of what it is told. A message has a key. No message is asked about or compared twice, as far
// as the Policy remembers.
type Policy struct {
	Account
	asked  map[string]asked // by key
	order  []string         // of asked, the oldest first
	learnt int              // labels and answers that the model learnt
}

// Learnt counts a label that the model has learnt, whoever gave it.
func (p *Policy) Learnt() { p.learnt++ }

// Knows reports whether the oracle was asked about a message.
func (p *Policy) Knows(key string) bool { _, known := p.asked[key]; return known }

// Asks reports whether the oracle is asked about a message that passes.
func (p *Policy) Asks(key string, doubtful bool) bool {
	return doubtful && p.State() == Trusted && !p.Knows(key)
}

// Answered notes the answer about a doubtful message that passes, and is learnt.
func (p *Policy) Answered(key string, spam bool) {
	p.learnt++
	p.note(key, asked{waits: true, spam: spam, at: p.learnt})
}

// Done notes that a message was asked about, and that no label is waited for.
func (p *Policy) Done(key string) { p.note(key, asked{}) }

func (p *Policy) note(key string, a asked) {
	if p.asked == nil {
		p.asked = map[string]asked{}
	}
	if !p.Knows(key) {
		p.order = append(p.order, key)
	}
	p.asked[key] = a
	if len(p.order) > mostAsked {
		delete(p.asked, p.order[0])
		p.order = p.order[1:]
	}
}

// Labelled takes a label that people gave a message. If the oracle's answer waits for it, that is compared. If
// the oracle was not asked, ask reports whether it is asked now, to be compared: on trial about any message, else
// about one that was doubtful. Its answer then goes to Compare and teaches nothing.
func (p *Policy) Labelled(key string, spam, doubtful bool) (ask, changed bool) {
	answer, known := p.asked[key]
	if !known {
		return p.State() == Trial || p.State() == Trusted && doubtful, false
	}
	if !answer.waits || p.learnt-answer.at > mostWaiting {
		return false, false
	}
	return false, p.Compare(key, answer.spam != spam, true)
}

// Compare counts the comparison of a message. It reports whether the state has changed.
func (p *Policy) Compare(key string, wrong, doubtful bool) (changed bool) {
	p.Done(key)
	return p.Add(wrong, doubtful)
}
