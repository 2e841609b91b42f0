package poeboost

import (
	"slices"

	"hamlet/algos/boost"
)

// A pool is a standardised column in bins. The mean of a bin replaces its rows. A fit
// costs two exponentials per bin.
type pool struct {
	bins []byte    // of each row
	u, y []float64 // the examples 2b and 2b+1: the mean of bin b with the labels −1 and +1
	d    []float64 // scratch: their weights
}

// newPools returns the pools of quantised data's standardised columns, one after
// the other in u.
func newPools(d *boost.Data, u []float64) []pool {
	n := d.Rows()
	pools := make([]pool, d.Dim())
	for j := range pools {
		cuts := d.Cuts(j)
		k := 2 * (len(cuts) + 1)
		p := pool{bins: make([]byte, n), u: make([]float64, k), y: make([]float64, k), d: make([]float64, k)}
		for i, v := range d.Column(j) {
			b, _ := slices.BinarySearch(cuts, v)
			p.bins[i] = byte(b)
			p.u[2*b] += u[j*n+i]
			p.d[2*b]++
		}
		for e := 0; e < k; e += 2 {
			mean := p.u[e] / p.d[e] // no bin is empty
			p.u[e], p.u[e+1], p.y[e], p.y[e+1] = mean, mean, -1, 1
		}
		pools[j] = p
	}
	return pools
}

// weigh sets the weights of the pooled examples from those of the rows.
func (p *pool) weigh(y, d []float64) {
	clear(p.d)
	y, d = y[:len(p.bins)], d[:len(p.bins)]
	for i, b := range p.bins {
		e := 2 * int(b)
		if y[i] > 0 {
			e++
		}
		p.d[e] += d[i]
	}
}
