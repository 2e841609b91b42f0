package learner

import (
	"context"

	"hamlet/stream"
	"hamlet/stream/predictions"
)

// maxPredicted is how many predictions a learner holds at most until it writes them. At 8,000
// events/s that is every other second. A save writes them too.
const maxPredicted = 32 * predictions.MaxEvents

// predict notes what the model predicted of an event before it learnt the label. Withdrawals,
// corrections and assumed answers are not noted: their labels were not new to the model.
func (w *worker) predict(a *Applied) {
	if w.l.cfg.Predictions == nil {
		return
	}
	w.learnt, w.moved = a.Offset+1, true
	if a.Outcome != Learned {
		return
	}
	w.predicted = append(w.predicted, predictions.Prediction{
		Offset: a.Offset,
		Spam:   a.Event.Label == stream.Spam, LogOdds: float32(a.Effect.Prediction.LogOdds),
	})
}

// publishPredictions returns when all predictions are acknowledged, and behind them how far the
// log is learnt. No save is made before, so a save covers no event whose prediction is not out.
func (w *worker) publishPredictions(ctx context.Context) error {
	if w.l.cfg.Predictions == nil || len(w.predicted) == 0 && !w.moved {
		return nil
	}
	var records []stream.Record
	for rest := w.predicted; ; {
		n := min(len(rest), predictions.MaxEvents)
		b := predictions.Block{Model: w.l.cfg.Name, Events: w.l.cfg.Topic, Predictions: rest[:n]}
		if n == len(rest) {
			b.Learnt = w.learnt
		}
		value, err := b.AppendBinary(nil)
		if err != nil {
			return err
		}
		records = append(records, stream.Record{Value: value})
		if rest = rest[n:]; len(rest) == 0 {
			break
		}
	}
	if err := w.l.cfg.Predictions.Append(ctx, records...); err != nil {
		return &PredictionsError{predictions.Topic(w.l.cfg.Name), err}
	}
	w.predicted, w.moved = w.predicted[:0], false
	return nil
}

// A PredictionsError says that predictions could not be written.
type PredictionsError struct {
	Topic string
	Err   error
}

func (e *PredictionsError) Error() string { return "publish predictions: " + e.Err.Error() }
func (e *PredictionsError) Unwrap() error { return e.Err }
