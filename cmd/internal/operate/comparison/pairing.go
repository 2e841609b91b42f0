package comparison

import (
	"errors"
	"fmt"
	"math"

	"hamlet/stream/predictions"
)

var (
	// ErrDiffers says that a model wrote two different predictions of one event. It was learnt
	// again with another configuration, under the same name. Options.Since leaves out the old ones.
	ErrDiffers = errors.New("two predictions of one event differ")
	// ErrOtherLog says that two models do not learn one log, so that nothing pairs.
	ErrOtherLog = errors.New("the models do not learn the same log")
)

// lately is how many of a model's predictions are kept for the case that they come again. A
// learner that was killed repeats what it had written since its last save, some seconds. What
// comes again later is dropped unchecked.
const lately = 1 << 17

// A pairing joins what two models predicted, in the order of the log. An event waits until the
// other model has predicted it, or is known to have left it out. So the pairs depend on the two
// topics alone, and not on when they are read.
type pairing struct {
	pair   func(a, b *predictions.Prediction)
	models [2]paired
}

// A paired is one of the two models.
type paired struct {
	name        string
	begun       bool
	first, next int64                    // next: what is before has been predicted or left out
	queue       []predictions.Prediction // those that wait, by offset
	recent      []written                // by offset, of size lately; nil before the first
	before      int
	only        int
	repeats     int
}

// A written is a prediction and the record that it was in.
type written struct {
	predictions.Prediction
	record int64
	known  bool
}

func newPairing(a, b string, pair func(a, b *predictions.Prediction)) *pairing {
	return &pairing{pair: pair, models: [2]paired{{name: a}, {name: b}}}
}

func (m *paired) begin(at int64) {
	if !m.begun {
		m.begun, m.first = true, at
	}
}

// fresh notes a prediction that was in a record, and reports whether it is new.
func (m *paired) fresh(p *predictions.Prediction, record int64) (bool, error) {
	if m.recent == nil {
		m.recent = make([]written, lately)
	}
	slot := &m.recent[p.Offset&(lately-1)]
	if p.Offset < m.next {
		m.repeats++
		if slot.known && slot.Offset == p.Offset && !same(&slot.Prediction, p) {
			return false, fmt.Errorf("%w: model %s, offset %d: %s in record %d of its predictions, %s in record %d: "+
				"the model was learnt again otherwise; --since leaves out what was written before",
				ErrDiffers, m.name, p.Offset, said(&slot.Prediction), slot.record, said(p), record)
		}
		return false, nil
	}
	m.begin(p.Offset)
	m.next = p.Offset + 1
	*slot = written{*p, record, true}
	return true, nil
}

func same(p, q *predictions.Prediction) bool {
	return p.Spam == q.Spam && math.Float32bits(p.LogOdds) == math.Float32bits(q.LogOdds)
}

func said(p *predictions.Prediction) string {
	label := "ham"
	if p.Spam {
		label = "spam"
	}
	return fmt.Sprintf("log-odds %g of %s", p.LogOdds, label)
}

// add takes a record of A's topic, model 0, or of B's, model 1.
func (j *pairing) add(model int, b *predictions.Block, record int64) error {
	m := &j.models[model]
	for _, p := range b.Predictions {
		fresh, err := m.fresh(&p, record)
		if err != nil {
			return err
		}
		if fresh {
			m.queue = append(m.queue, p)
		}
	}
	if b.Learnt > 0 {
		m.begin(b.Learnt)
		m.next = max(m.next, b.Learnt)
	}
	return nil
}

func (j *pairing) join() error {
	a, b := &j.models[0], &j.models[1]
	for len(a.queue) > 0 && len(b.queue) > 0 {
		p, q := &a.queue[0], &b.queue[0]
		switch {
		case p.Offset < q.Offset:
			a.alone(b)
		case p.Offset > q.Offset:
			b.alone(a)
		case p.Spam != q.Spam:
			return fmt.Errorf("%w: of offset %d, model %s says %s and model %s says %s",
				ErrOtherLog, p.Offset, a.name, said(p), b.name, said(q))
		default:
			j.pair(p, q)
			a.queue, b.queue = a.queue[1:], b.queue[1:]
		}
	}
	a.passed(b)
	b.passed(a)
	return nil
}

// passed drops what the other model has left out, as far as it has come.
func (m *paired) passed(other *paired) {
	for len(m.queue) > 0 && m.queue[0].Offset < other.next {
		m.alone(other)
	}
}

// alone counts the first of a queue, which the other model has not predicted, and drops it.
func (m *paired) alone(other *paired) {
	if m.queue[0].Offset < other.first {
		m.before++
	} else {
		m.only++
	}
	m.queue = m.queue[1:]
}

// report completes what a result says of the two models.
func (j *pairing) report(r *Result) {
	for i, side := range []*Side{&r.A, &r.B} {
		m := &j.models[i]
		side.Model, side.Begins, side.Ahead = m.name, m.first, len(m.queue)
		side.Before, side.Only, side.Repeats = m.before, m.only, m.repeats
	}
}
