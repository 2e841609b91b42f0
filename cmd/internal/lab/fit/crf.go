package fit

import (
	"context"

	"hamlet/algos/lab/crf"
)

func init() { register("crf.grid", crfGrid) }

// The energy of labels y = ±1 on the grid is
//
//	E(y) = −½ Σ f·y − coupling · (the number of pairs of neighbours with equal labels).
//
// F is in nats.
type crfGridRequest struct {
	F        [][]float64 `json:"f" shape:"R×C" in:"[-1e6,1e6]"`
	Coupling float64     `json:"coupling" default:"1" in:"[-1e6,1e6]"`
}

// P is P(y = +1) under e^−E. Labels have the least energy.
type crfGridReply struct {
	LogZ   float64     `json:"log_z"`
	P      [][]float64 `json:"p"`
	Labels [][]float64 `json:"labels"`
	Energy float64     `json:"energy"`
}

func crfGrid(_ context.Context, q *crfGridRequest) (*crfGridReply, error) {
	const (
		most   = crf.MaxOpen - 1
		states = 1 << 23 // of all tables: some 130 MB
	)
	rows, columns := len(q.F), len(q.F[0])
	short, long := min(rows, columns), max(rows, columns)
	if short > most {
		return nil, wrong("f", "%d×%d; exact inference takes at most %d rows or columns", rows, columns, most)
	}
	if rows*columns > states>>short {
		return nil, wrong("f", "%d×%d; with %d rows, exact inference takes at most %d columns", rows, columns, short,
			states>>short/short)
	}
	at := func(i int) (row, column int) { // the entry of f that is site i
		if row, column = i%short, i/short; rows > columns {
			row, column = column, row
		}
		return row, column
	}
	g := crf.Grid(short, long)
	f := crf.Field{Site: make([][2]float64, g.Sites()), Pair: make([][2][2]float64, len(g.Pairs()))}
	for i := range f.Site {
		row, column := at(i)
		half := q.F[row][column] / 2
		f.Site[i] = [2]float64{half, -half}
	}
	for l := range f.Pair {
		f.Pair[l] = [2][2]float64{{-q.Coupling, 0}, {0, -q.Coupling}}
	}
	m, y := g.Marginals(&f), g.Argmin(&f)
	r := &crfGridReply{LogZ: m.LogZ, Energy: g.Energy(&f, y)}
	for range rows {
		r.P, r.Labels = append(r.P, make([]float64, columns)), append(r.Labels, make([]float64, columns))
	}
	for i := range f.Site {
		row, column := at(i)
		r.P[row][column], r.Labels[row][column] = m.Site[i], y[i]
	}
	return r, nil
}
