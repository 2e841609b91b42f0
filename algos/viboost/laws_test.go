package viboost_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"hamlet/algos/algotest"
	"hamlet/algos/boost"
	"hamlet/algos/viboost"
)

// A rebuilt is a classifier of the stream: it keeps its last events and boosts
// anew from them at every 20th.
type rebuilt struct {
	dim    int
	x      [][]float64
	y      []float64
	count  int
	latest *viboost.Ensemble
}

const (
	kept  = 100
	every = 20
)

func (r *rebuilt) Prob(x []float64) float64 {
	if r.latest == nil {
		return 0.5
	}
	return r.latest.Prob(x)
}

func (r *rebuilt) Update(x []float64, y float64) {
	if len(r.x) == kept {
		r.x, r.y = r.x[1:], r.y[1:]
	}
	r.x, r.y = append(r.x, append([]float64(nil), x...)), append(r.y, y)
	r.count++
	if r.count%every != 0 {
		return
	}
	d, err := boost.Quantise(r.x, 0)
	if err != nil {
		panic(err)
	}
	b, err := viboost.New(d, r.y, viboost.Config{Rounds: 15, Inner: 5})
	if err != nil {
		panic(err)
	}
	for b.Round() {
	}
	r.latest = b.Ensemble()
}

func (r *rebuilt) AppendBinary(dst []byte) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(r.count))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(r.x)))
	for i, row := range r.x {
		for _, v := range append(row[:r.dim:r.dim], r.y[i]) {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		}
	}
	if r.latest == nil {
		return dst, nil
	}
	return r.latest.AppendBinary(dst)
}

func restore(dim int, b []byte) (*rebuilt, error) {
	if len(b) < 8 {
		return nil, errors.New("cut short")
	}
	r := &rebuilt{dim: dim, count: int(binary.LittleEndian.Uint32(b))}
	n := int(binary.LittleEndian.Uint32(b[4:]))
	b = b[8:]
	if len(b) < 8*n*(dim+1) {
		return nil, errors.New("cut short")
	}
	for range n {
		row := make([]float64, dim+1)
		for j := range row {
			row[j] = math.Float64frombits(binary.LittleEndian.Uint64(b))
			b = b[8:]
		}
		r.x, r.y = append(r.x, row[:dim:dim]), append(r.y, row[dim])
	}
	if r.count < every {
		if len(b) > 0 {
			return nil, errors.New("too long")
		}
		return r, nil
	}
	r.latest = &viboost.Ensemble{}
	return r, r.latest.UnmarshalBinary(b)
}

func TestLaws(t *testing.T) {
	for _, dim := range []int{1, 5} {
		algotest.Run(t, algotest.Subject{
			Dim: dim,
			New: func() algotest.Classifier { return &rebuilt{dim: dim} },
			Restore: func(b []byte) (algotest.Classifier, error) {
				return restore(dim, b)
			},
		})
	}
}
