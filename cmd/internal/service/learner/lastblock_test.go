package learner

import (
	"context"
	"testing"
	"time"

	"hamlet/stream"
	"hamlet/stream/predictions"
)

// blocks collects what says how far the log is learnt.
type blocks []int64

func (b *blocks) Append(_ context.Context, records ...stream.Record) error {
	for i := range records {
		block, err := predictions.Decode(records[i].Value)
		if err != nil {
			return err
		}
		*b = append(*b, block.Learnt)
	}
	return nil
}

// Of several blocks the last one says how far the log is learnt: who reads it has all predictions before.
func TestTheLastBlockSaysWhatIsLearnt(t *testing.T) {
	var got blocks
	r := newRig(t)
	a := r.hand("a", func(cfg *Config) { cfg.SaveEvery, cfg.Predictions = time.Hour, &got })
	n := 2*predictions.MaxEvents + 1
	for i := range n {
		a.w.predicted = append(a.w.predicted, predictions.Prediction{Offset: int64(i)})
	}
	a.w.learnt, a.w.moved = int64(n), true
	if err := a.w.publishPredictions(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0] != 0 || got[1] != 0 || got[2] != int64(n) {
		t.Errorf("the blocks say %v, and the last one alone should say %d", got, n)
	}
}
