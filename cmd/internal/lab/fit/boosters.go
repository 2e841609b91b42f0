package fit

import (
	"context"

	"hamlet/algos/boost"
)

// A trainer is a booster.
type trainer interface {
	Train(ctx context.Context) error
}

// train builds a booster of labelled rows and runs it.
func train[B trainer, C any](ctx context.Context, x [][]float64, y []float64, build func(*boost.Data, []float64, C) (B, error), cfg C) (B, error) {
	var b B
	data, err := boost.NewData(x)
	if err != nil {
		return b, wrong("x", "%w", err)
	}
	if b, err = build(data, y, cfg); err != nil {
		return b, err
	}
	return b, b.Train(ctx)
}

// A stump is h(x) = polarity if x_feature > threshold, else −polarity.
type stump struct {
	Feature   int     `json:"feature"`
	Threshold float64 `json:"threshold"`
	Polarity  int     `json:"polarity"`
}

func stumpOf(s boost.Stump) stump { return stump{s.Feature, s.Threshold, s.Polarity} }
