package learner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/predictions"
)

// maxPredicted is how many predictions a partition holds at most until it writes them. At 8,000
// events/s that is every other second. A save writes them too.
const maxPredicted = 32 * predictions.MaxEvents

// predict notes what the model predicted of an event before it learnt the label. Withdrawals,
// corrections and assumed answers are not noted: their labels were not new to the model.
func (p *partitionModel) predict(a *Applied) {
	if p.l.cfg.Predictions == nil {
		return
	}
	if p.learnt == nil {
		p.learnt = map[int]int64{}
	}
	p.learnt[a.Partition], p.moved = a.Offset+1, true
	if a.Outcome != Learned {
		return
	}
	p.predicted = append(p.predicted, predictions.Prediction{
		Partition: a.Partition, Offset: a.Offset,
		Spam: a.Event.Label == stream.Spam, LogOdds: float32(a.Effect.Prediction.LogOdds),
	})
}

// publishPredictions returns when all predictions are acknowledged, and behind them how far each
// partition is learnt. No save is made before, so a save covers no event whose prediction is not
// out.
func (p *partitionModel) publishPredictions(ctx context.Context) error {
	if p.l.cfg.Predictions == nil || len(p.predicted) == 0 && !p.moved {
		return nil
	}
	var marks []predictions.Mark
	for _, n := range slices.Sorted(maps.Keys(p.learnt)) {
		marks = append(marks, predictions.Mark{Partition: n, Next: p.learnt[n]})
	}
	var records []kafka.Record
	for rest := p.predicted; len(rest) > 0 || len(marks) > 0; {
		n := min(len(rest), predictions.MaxEvents)
		b := predictions.Block{Model: p.l.cfg.Name, Events: p.l.cfg.Consumer.Topic, Predictions: rest[:n]}
		if n == len(rest) {
			m := min(len(marks), predictions.MaxEvents)
			b.Learnt, marks = marks[:m], marks[m:]
		}
		value, err := b.AppendBinary(nil)
		if err != nil {
			return err
		}
		records = append(records, kafka.Record{Topic: predictions.Topic(p.l.cfg.Name), Value: value})
		rest = rest[n:]
	}
	if err := p.l.cfg.Predictions.Publish(ctx, records...); err != nil {
		return publishing(predictions.Topic(p.l.cfg.Name), err)
	}
	p.predicted, p.moved = p.predicted[:0], false
	return nil
}

// publishing says what can be done about predictions that cannot be written.
func publishing(topic string, err error) error {
	switch err = fmt.Errorf("publish predictions: %w", err); {
	case errors.Is(err, kafka.ErrAuth):
		return fmt.Errorf("%w; this user needs Create and Write on %s, or start the learner with --no-predictions", err, topic)
	case errors.Is(err, kafka.ErrUnknownTopic):
		return fmt.Errorf("%w; start the learner again, which creates %s, or start it with --no-predictions", err, topic)
	}
	return err
}
