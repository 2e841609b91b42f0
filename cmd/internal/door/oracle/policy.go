package oracle

import (
	"math"

	"hamlet/algos/confseq"
	"hamlet/cmd/internal/service/worth"
)

// A State says what becomes of an oracle's answers.
//
//	trial ──the rate is shown to be below MostWrong──> trusted
//	trial <──the last answers do not show that────────  trusted
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

// An Account compares an oracle's answers with the labels that people gave the same messages. It is a
// pure function of the comparisons, in their order. Its zero value is on trial.
type Account struct {
	last  []bool // the last comparisons, at most window: true is a wrong answer
	total int    // comparisons, from the first on
	wrong int    // of total
	state State  // "" is Trial
}

// State returns what becomes of the answers now.
func (a *Account) State() State {
	if a.state == "" {
		return Trial
	}
	return a.state
}

// Add counts a comparison. It reports whether the state has changed.
func (a *Account) Add(wrong bool) (changed bool) {
	if a.state == Stopped {
		return false
	}
	before := a.State()
	a.total++
	if wrong {
		a.wrong++
	}
	if a.last = append(a.last, wrong); len(a.last) > window {
		a.last = append(a.last[:0], a.last[1:]...)
	}
	a.state = a.judge(before)
	return a.state != before
}

// judge returns the state that the last comparisons lead to. An oracle that is trusted stays so while
// they speak for it at all, or chance would have it come and go.
func (a *Account) judge(now State) State {
	if len(a.last) < least {
		return now
	}
	wrong, right := a.recent()
	good := below.Log(wrong, right)
	switch {
	case above.Log(right, wrong) >= shown:
		return Stopped
	case good >= shown:
		return Trusted
	case good < 0:
		return Trial
	}
	return now
}

// recent counts the last comparisons.
func (a *Account) recent() (wrong, right float64) {
	for _, w := range a.last {
		if w {
			wrong++
		}
	}
	return wrong, float64(len(a.last)) - wrong
}

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

// mostAnswers bounds the oracle's answers that wait for people's labels. The oldest go.
const mostAnswers = 20_000

// A Policy decides which messages an oracle is asked about, and what its answers teach. It is a pure
// function of what it is told. A message has a key, which names it and its tenant.
type Policy struct {
	Account
	answers map[string]bool // by key: spam, of messages that nobody labelled yet
	order   []string        // of answers, the oldest first
}

// Asks reports whether the oracle is asked about a message that passes.
func (p *Policy) Asks(doubtful bool) bool { return doubtful && p.State() == Trusted }

// Answered notes the answer about a message that passes.
func (p *Policy) Answered(key string, spam bool) {
	if p.answers == nil {
		p.answers = map[string]bool{}
	}
	if _, known := p.answers[key]; !known {
		p.order = append(p.order, key)
	}
	p.answers[key] = spam
	if len(p.order) > mostAnswers {
		delete(p.answers, p.order[0])
		p.order = p.order[1:]
	}
}

// Labelled takes a label that people gave a message. If the oracle had answered, that is compared. If
// not, ask reports whether it is asked now, to be compared: on trial about any message, else about one
// that was doubtful. Its answer then goes to Compare and teaches nothing.
func (p *Policy) Labelled(key string, spam, doubtful bool) (ask, changed bool) {
	answer, known := p.answers[key]
	if !known {
		return p.State() == Trial || p.State() == Trusted && doubtful, false
	}
	delete(p.answers, key) // order still has the key: it goes with its turn
	return false, p.Add(answer != spam)
}
