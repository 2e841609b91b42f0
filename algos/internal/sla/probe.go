package sla

import (
	"cmp"
	"context"
	"math"
	"slices"

	"hamlet/algos/internal/logistic"
)

// A Prober searches around a point for a better one, a coordinate at a time
// (algorithm 2, stage 2). A cheap lower bound of the objective rules out nearly all
// of the D·2R/ε points. The others are computed in full, so the bound never changes
// the result.
//
// A table holds the loss f of each label at margins v = −reach, −reach+h, …,
// reach. With σ = σ(v) and ρ = bσ/(lo+bσ),
//
//	f″ = (1−σ)·ρ·(σ − (1−σ)(1−ρ)),
//
// which lies in [−¼, ¼]. So linear interpolation errs by at most h²/8·¼. (The
// sigmoid loss has |f″| ≤ 1/(6√3).) f falls with v: it is at least f(−reach) left
// of the table and at least f(∞), the last entry, right of it. On an interval of
// steps an example's loss is least at one end, so steps are ruled out 1, 1, 2, 4,
// 8, … at a time.
// Examples are summed in ascending order of margin: a bad step costs most at small
// margins. The sum ends once it and the least losses of the rest exceed the goal.
//
// The bound allows for rounding. With u = 2⁻⁵³, margins M = γ(|m| + R|x|) and |f′|
// ≤ 1, rounding moves the argument of an example's loss by at most 3uM in full and
// by 6u(M+reach) in the table. So the losses together move by at most 9u·Σ
// weight·(M+reach). A sum of N losses has a relative error of about (N+8)u.
// line.margin covers both for N up to four million: 16u for the first, 10⁻⁹ for the
// second.
type Prober struct {
	*Objective
	cells    float64   // table entries per unit of v, 1/h
	span     int       // table entries per label
	table    []float64 // of label +1, then of −1
	slack    float64   // the largest error of the table in the sum of all losses
	order    []int     // the examples by margin, as of the last sort
	prepared int       // calls of prepare
	stale    bool      // order is to be sorted before its next use
	all      screen    // of all examples, by order; set for the point number filled
	filled   int       // the value of prepared when all was set
	spread   float64   // Σ weight·|at| of all
	straight []float64 // margins m in the rows' order
	col      []float64 // scratch: a column
	few      *fewRows  // for sparse columns; nil until the first
}

// A screen bounds the loss from below for steps along one coordinate.
type screen struct {
	at     []float64 // γm as a position in the table
	slope  []float64 // how far at moves per unit of step
	offset []int     // where the label's table begins
	mass   []float64 // the example's weight
	rest   []float64 // rest[k]: the least total loss of the examples from k on
	others float64   // the loss of the examples that the coordinate does not move
}

// newScreen returns a screen for up to n examples.
func newScreen(n int) screen {
	s := screen{offset: make([]int, n), rest: make([]float64, n+1)}
	for _, v := range []*[]float64{&s.at, &s.slope, &s.mass} {
		*v = make([]float64, n)
	}
	return s
}

const (
	reach    = 24      // the approach to a plateau is down to e⁻²⁴ = 4·10⁻¹¹ there
	rounding = 0x1p-49 // 16u

	tableError = 1e-12 // of an entry: see tabulate
)

// tabulate sets f to the losses at v = −reach, −reach+h, …, reach−h with h =
// 1/cells, and its last two entries to f(∞). Let p be the label's probability and δ
// = Δp/p. From entry to entry e^−v falls by the factor e^−h, and −ln p by ln(1+δ) =
// δ − δ²/2 + δ³/3 − δ⁴/4 + …, a quarter of the cost of a logarithm. Entries are
// exact if δ ≥ 2⁻⁹, and every 64th. So the error of the series is below 64·2⁻⁴⁵/5 =
// 4·10⁻¹³, and of rounding (4u a step in δ) 3·10⁻¹⁴.
func (s *Side) tabulate(f []float64, cells int) {
	last := len(f) - 2
	f[last], _ = s.At(math.Inf(1))
	f[last+1] = f[last]
	shrink := logistic.Exp(-1 / float64(cells))
	e, p := 0.0, 0.0
	for i := range f[:last] {
		v := float64(i-reach*cells) / float64(cells)
		if e *= shrink; i%64 == 0 {
			e = logistic.Exp(-v)
		}
		before := p
		up := 1 / (1 + e)
		p = s.Lo + float64(s.B*up)
		δ := (p - before) / before
		switch {
		case s.sigmoid:
			f[i] = e * up
		case i%64 == 0 || !(δ < 0x1p-9):
			f[i], _ = s.At(v)
		default:
			f[i] = f[i-1] - float64(δ*(1-float64(δ*(0.5-float64(δ*(1.0/3-float64(0.25*δ)))))))
		}
	}
}

func NewProber(o *Objective, εL float64) *Prober {
	// h makes the slack εL/8, so that steps that change nothing, as on a plateau,
	// are ruled out.
	cells := int(min(max(math.Sqrt(o.Total/float64(4*εL)), 32), 1024))
	p := &Prober{
		Objective: o,
		cells:     float64(cells),
		span:      2*reach*cells + 2,
		slack:     o.Total/float64(32*cells*cells) + float64(o.Total*tableError),
	}
	p.table = make([]float64, 2*p.span)
	o.Plus.tabulate(p.table[:p.span], cells)
	o.Minus.tabulate(p.table[p.span:], cells)
	p.order, p.all = make([]int, o.N), newScreen(o.N)
	for i := range p.order {
		p.order[i] = i
	}
	p.straight, p.col = make([]float64, o.N), make([]float64, o.N)
	return p
}

// Improve moves w to the first probe that lowers the objective by at least εL from
// value, the objective at w. It tries the coordinates in order, each with steps of
// spacing, −spacing, 2·spacing, −2·spacing, … up to radius. The error is ctx's.
func (p *Prober) Improve(ctx context.Context, w []float64, value, radius, spacing, εL float64) (bool, error) {
	p.prepare(w)
	steps := StepsWithin(radius, spacing)
	penalty := p.penalty(w)
	for j, was := range w {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		size := math.Abs(value) + math.Abs(penalty)
		var col []float64
		var l line
		if rows, numbers, ok := p.Entries(j); ok {
			l = p.alongFew(rows, numbers, was, radius, size)
		} else {
			col = p.Column(p.col, j)
			l = p.along(col, was, radius, size)
		}
		l.goal = value - εL - (penalty - p.penaltyOf(was))
		for first := 1; first <= steps; {
			last := min(max(first, 2*(first-1)), steps)
			up := p.mayReach(&l, float64(first)*spacing, float64(last)*spacing)
			down := p.mayReach(&l, -float64(last)*spacing, -float64(first)*spacing)
			for k := first; k <= last && (up || down); k++ {
				step := float64(float64(k) * spacing)
				if up && p.reaches(&l, col, step) {
					w[j] = was + step
					return true, nil
				}
				if down && p.reaches(&l, col, -step) {
					w[j] = was - step
					return true, nil
				}
			}
			first = last + 1
		}
	}
	return false, nil
}

// StepsWithin returns how many multiples of spacing lie within the radius.
func StepsWithin(radius, spacing float64) int { return int(radius/spacing + 1e-9) }

// A line is the objective along one coordinate.
type line struct {
	was    float64 // the coordinate now
	goal   float64 // the losses plus the coordinate's penalty must not exceed it
	margin float64 // how far the bound may exceed the computed sum
	*screen
	moved *fewRows // the examples that the coordinate moves; nil if all
}

// along prepares the line of a column, for steps up to radius and goals up to size.
func (p *Prober) along(col []float64, was, radius, size float64) line {
	p.fillAll()
	slopes := 0.0
	for k, i := range p.order {
		p.all.slope[k] = p.Gamma * p.Y[i] * col[i] * p.cells
		slopes += float64(p.all.mass[k] * math.Abs(p.all.slope[k]))
	}
	far := (p.spread + float64(radius*slopes)) / p.cells
	return line{was: was, margin: p.slack + float64(rounding*far) + float64(1e-9*(1+size)), screen: &p.all}
}

// prepare prepares the tables for the point w.
func (p *Prober) prepare(w []float64) {
	p.Margins(p.straight, w)
	// The order changes little between improvements; an old one only costs time.
	p.stale = p.stale || p.prepared%16 == 0
	p.prepared++
}

// fillAll sets the screen of all examples, once for each point. Points whose columns
// all have few entries do not need it.
func (p *Prober) fillAll() {
	if p.filled == p.prepared {
		return
	}
	if p.stale {
		slices.SortFunc(p.order, func(a, b int) int {
			return cmp.Or(cmp.Compare(p.straight[a], p.straight[b]), cmp.Compare(a, b))
		})
		p.stale = false
	}
	p.filled, p.spread = p.prepared, p.fill(&p.all, p.order)
}

// fill sets the screen's examples and returns Σ weight·|at|.
func (p *Prober) fill(s *screen, order []int) (spread float64) {
	s.rest[len(order)] = 0
	for k := len(order) - 1; k >= 0; k-- {
		i := order[k]
		s.offset[k] = 0
		if p.Y[i] < 0 {
			s.offset[k] = p.span
		}
		s.at[k] = (float64(p.Gamma*p.straight[i]) + reach) * p.cells
		s.mass[k] = p.Weight[i]
		s.rest[k] = s.rest[k+1] + float64(s.mass[k]*p.table[s.offset[k]+p.span-1])
		spread += float64(s.mass[k] * math.Abs(s.at[k]))
	}
	return spread
}

// mayReach reports whether a step in [lo, hi] may reach the goal.
func (p *Prober) mayReach(l *line, lo, hi float64) bool {
	shortest := min(max(-l.was, lo), hi) // the step with the least penalty
	bound := l.goal - p.penaltyOf(l.was+shortest) + l.margin - l.others
	const block = 16 // examples between two comparisons
	n, top := len(l.at), 2*reach*p.cells
	at, slope, offset, mass, rest := l.at[:n], l.slope[:n], l.offset[:n], l.mass[:n], l.rest[:n+1]
	sum := 0.0
	for i := 0; i < n; {
		for end := min(i+block, n); i < end; i++ {
			step := lo
			if slope[i] > 0 {
				step = hi
			}
			v := at[i] + float64(step*slope[i])
			if !(v > 0) {
				v = 0
			}
			if v > top {
				v = top
			}
			k := int(v)
			f := p.table[offset[i]+k:]
			sum += float64(mass[i] * (f[0] + float64((f[1]-f[0])*(v-float64(k)))))
		}
		if sum+rest[i] > bound {
			return false
		}
	}
	return true
}

// reaches reports whether the step reaches the goal.
func (p *Prober) reaches(l *line, col []float64, step float64) bool {
	if !p.mayReach(l, step, step) {
		return false
	}
	if l.moved != nil {
		return l.others+p.sumOf(l.moved, step)+p.penaltyOf(l.was+step) <= l.goal
	}
	for i, x := range col {
		p.M[i] = p.straight[i] + float64(float64(p.Y[i]*step)*x)
	}
	return p.Sum()+p.penaltyOf(l.was+step) <= l.goal
}

// A fewRows is what a prober needs for a coordinate that moves few examples. A probe
// of it costs a sum over these, not over all.
type fewRows struct {
	screen             // of the examples of one column
	prepared int       // the prober's count when loss and total were set
	loss     []float64 // weight·loss by example, at the prober's point
	total    float64   // Σ loss
	rows     []int     // of the column
	numbers  []float64
}

// alongFew is along for a column that is 0 except in the given rows. The losses of
// the other rows enter with a relative error of about (N+8)u, which the margin covers.
func (p *Prober) alongFew(rows []int, numbers []float64, was, radius, size float64) line {
	f := p.few
	if f == nil {
		f = &fewRows{screen: newScreen(p.N), loss: make([]float64, p.N)}
		p.few = f
	}
	if f.prepared != p.prepared {
		f.prepared, f.total = p.prepared, 0
		for i, m := range p.straight {
			loss, _ := p.Side(p.Y[i]).At(float64(p.Gamma * m))
			f.loss[i] = float64(p.Weight[i] * loss)
			f.total += f.loss[i]
		}
	}
	n := len(rows)
	f.rows, f.numbers = rows, numbers
	f.at, f.slope, f.mass = f.at[:n], f.slope[:n], f.mass[:n]
	spread := p.fill(&f.screen, rows)
	slopes, mass, here := 0.0, 0.0, 0.0
	for k, i := range rows {
		f.slope[k] = p.Gamma * p.Y[i] * numbers[k] * p.cells
		slopes += float64(f.mass[k] * math.Abs(f.slope[k]))
		mass += f.mass[k]
		here += f.loss[i]
	}
	f.others = f.total - here
	far := (spread + float64(radius*slopes)) / p.cells
	slack := float64(p.slack * (mass / p.Total))
	return line{was: was, margin: slack + float64(rounding*far) + float64(1e-9*(1+size)), screen: &f.screen, moved: f}
}

// sumOf returns the loss of f's rows after the step.
func (p *Prober) sumOf(f *fewRows, step float64) float64 {
	sum := 0.0
	for k, i := range f.rows {
		m := p.straight[i] + float64(float64(p.Y[i]*step)*f.numbers[k])
		loss, _ := p.Side(p.Y[i]).At(float64(p.Gamma * m))
		sum += float64(p.Weight[i] * loss)
	}
	return sum
}
