package sla

import "math"

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
