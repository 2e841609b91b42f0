package comparison

import (
	"errors"
	"fmt"
	"math"

	"hamlet/stream/predictions"
)

var (
	// ErrDiffers says that a model wrote two different predictions of one event. It was learnt
	// anew with another configuration, under the same name. Options.Since leaves out the old ones.
	ErrDiffers = errors.New("two predictions of one event differ")
	// ErrOtherLog says that two models do not learn one log, so that nothing pairs.
	ErrOtherLog = errors.New("the models do not learn the same log")
)

// lately is how many of a model's predictions are kept for the case that they come again. A
// learner that was killed repeats what it had written since its last save, some seconds. What
// comes again later is dropped unchecked.
const lately = 1 << 17

// A pairing joins what two models predicted, in the order of A. An event of A waits until B has
// predicted it, or is known to have left it out. So the pairs depend on the two logs alone, and
// not on when they are read.
type pairing struct {
	pair   func(a, b *predictions.Prediction)
	models [2]paired
	queue  []predictions.Prediction // of A: those that wait
}

// A paired is one of the two models.
type paired struct {
	name       string
	partitions []following // of the events topic
	recent     []written   // by place, of size lately; nil before the first
	waiting    int         // of B: predictions in the queues
	before     int
	only       int
	repeats    int
}

// A following is what is known of a partition of the events topic.
type following struct {
	begun       bool
	first, next int64                    // next: what is before has been predicted or left out
	queued      int                      // of A: predictions in the queue
	queue       []predictions.Prediction // of B: what A has not come to
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

func (m *paired) partition(n int) *following {
	for len(m.partitions) <= n {
		m.partitions = append(m.partitions, following{})
	}
	return &m.partitions[n]
}

// fresh notes a prediction that was in a record, and reports whether it is new.
func (m *paired) fresh(p *predictions.Prediction, record int64) (bool, error) {
	if m.recent == nil {
		m.recent = make([]written, lately)
	}
	slot := &m.recent[(p.Offset+int64(p.Partition)*0x9E3779B1)&(lately-1)]
	f := m.partition(p.Partition)
	if f.begun && p.Offset < f.next {
		m.repeats++
		if slot.known && slot.Partition == p.Partition && slot.Offset == p.Offset && !same(&slot.Prediction, p) {
			return false, fmt.Errorf("%w: model %s, partition %d, offset %d: %s in record %d of its predictions, %s in record %d: the model was learnt again otherwise; --since leaves out what was written before",
				ErrDiffers, m.name, p.Partition, p.Offset, said(&slot.Prediction), slot.record, said(p), record)
		}
		return false, nil
	}
	if !f.begun {
		f.begun, f.first = true, p.Offset
	}
	f.next = p.Offset + 1
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
	m, all := &j.models[model], b.Predictions
	for i := range all {
		fresh, err := m.fresh(&all[i], record)
		if err != nil {
			return err
		}
		switch {
		case !fresh:
		case model == 0:
			j.queue = append(j.queue, all[i])
			m.partition(all[i].Partition).queued++
		default:
			f := m.partition(all[i].Partition)
			f.queue = append(f.queue, all[i])
			m.waiting++
		}
	}
	for _, mark := range b.Learnt {
		f := m.partition(mark.Partition)
		if !f.begun {
			f.begun, f.first = true, mark.Next
		}
		f.next = max(f.next, mark.Next)
	}
	return nil
}

// join pairs what can be paired.
func (j *pairing) join() error {
	a, b := &j.models[0], &j.models[1]
	n := 0
	for ; n < len(j.queue); n++ {
		p := &j.queue[n]
		f := b.partition(p.Partition)
		for len(f.queue) > 0 && f.queue[0].Offset < p.Offset {
			b.alone(f, a.partition(p.Partition))
		}
		switch {
		case len(f.queue) > 0 && f.queue[0].Offset == p.Offset:
			q := f.queue[0]
			b.pop(f)
			if p.Spam != q.Spam {
				return fmt.Errorf("%w: of partition %d, offset %d, model %s says %s and model %s says %s", ErrOtherLog, p.Partition, p.Offset, a.name, said(p), b.name, said(&q))
			}
			j.pair(p, &q)
			continue
		case !f.begun || f.next <= p.Offset: // B comes to it
		case p.Offset < f.first:
			a.before++
			continue
		default:
			a.only++
			continue
		}
		break
	}
	for i := range j.queue[:n] {
		a.partition(j.queue[i].Partition).queued--
	}
	j.queue = append(j.queue[:0:0], j.queue[n:]...)
	for i := range b.partitions {
		of := a.partition(i)
		for f := &b.partitions[i]; of.queued == 0 && len(f.queue) > 0 && f.queue[0].Offset < of.next; {
			b.alone(f, of)
		}
	}
	return nil
}

// alone counts the first of a queue, which the other model has not predicted, and drops it.
func (m *paired) alone(f, other *following) {
	if f.queue[0].Offset < other.first {
		m.before++
	} else {
		m.only++
	}
	m.pop(f)
}

func (m *paired) pop(f *following) {
	f.queue = f.queue[1:]
	m.waiting--
}

// report completes what a result says of the two models.
func (j *pairing) report(r *Result) {
	for i, side := range []*Side{&r.A, &r.B} {
		m := &j.models[i]
		side.Model, side.Before, side.Only, side.Repeats = m.name, m.before, m.only, m.repeats
		side.Begins = []Place{}
		for n := range m.partitions {
			if f := &m.partitions[n]; f.begun {
				side.Begins = append(side.Begins, Place{n, f.first})
			}
		}
	}
	r.A.Ahead, r.B.Ahead = len(j.queue), j.models[1].waiting
}
