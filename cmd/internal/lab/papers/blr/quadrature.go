package blr

import "math"

// expect returns E f(z), z ~ N(m, a), by the trapezoidal rule: for smooth f its error
// falls faster than any power of the step.
func expect(m, a float64, f func(z float64) float64) float64 {
	const reach = 9.0
	s := math.Sqrt(a)
	step := min(.2, .2/max(s, 1e-3)) // in standard deviations: σ changes within a nat or so
	sum, total := 0.0, 0.0
	for i := -int(reach / step); i <= int(reach/step); i++ {
		u := float64(i) * step
		weight := math.Exp(-u * u / 2)
		total += weight
		sum += weight * f(m+s*u)
	}
	return sum / total
}

// An exactPosterior holds what the text approximates, by quadrature: for one or two
// weights with the prior N(0, I/α).
type exactPosterior struct {
	LogEvidence float64
	Mean        []float64
	Variance    []float64
	Alpha       float64 // E(α | D)
}

// givenAlpha integrates over the weights at one α. It walks a grid around the mode of the
// integrand, as wide as the curvature there says.
func givenAlpha(x [][]float64, y []float64, α float64) exactPosterior {
	d := len(x[0])
	mode, root := laplace(x, y, α)
	log := func(w []float64) float64 {
		sum := float64(d)/2*math.Log(α/(2*math.Pi)) - α/2*dot(w, w)
		for n, row := range x {
			sum += logSigma(y[n] * dot(w, row))
		}
		return sum
	}
	reach, step := 14.0, .6
	if len(x) >= 100 { // then it is nearly Gaussian
		reach, step = 8, .8
	}
	n := int(reach / step)
	top, cell := log(mode), math.Log(step*root[0][0])
	steps := []int{0}
	if d == 2 {
		cell += math.Log(step * root[1][1])
		steps = steps[:0]
		for k := -n; k <= n; k++ {
			steps = append(steps, k)
		}
	}
	sum, first, second := 0.0, make([]float64, d), make([]float64, d)
	w := make([]float64, d)
	for i := -n; i <= n; i++ {
		for _, k := range steps {
			u := []float64{float64(i) * step, float64(k) * step}
			for j := range w {
				w[j] = mode[j]
				for l := range j + 1 {
					w[j] += root[j][l] * u[l]
				}
			}
			density := math.Exp(log(w) - top)
			sum += density
			for j := range w {
				first[j] += density * w[j]
				second[j] += density * (w[j] - mode[j]) * (w[j] - mode[j])
			}
		}
	}
	p := exactPosterior{LogEvidence: top + cell + math.Log(sum), Alpha: α, Mean: first, Variance: second}
	for j := range w {
		p.Mean[j] /= sum
		p.Variance[j] = second[j]/sum - (p.Mean[j]-mode[j])*(p.Mean[j]-mode[j])
	}
	return p
}

// laplace returns the mode of the integrand and a lower triangular root of the inverse of
// its curvature, for one or two weights.
func laplace(x [][]float64, y []float64, α float64) (mode []float64, root [2][2]float64) {
	d := len(x[0])
	mode = make([]float64, d)
	var v [2][2]float64
	for range 200 {
		slope, h := [2]float64{}, [2][2]float64{{α, 0}, {0, α}}
		for j := range d {
			slope[j] = -α * mode[j]
		}
		for n, row := range x {
			p := sigma(-y[n] * dot(mode, row))
			for j := range d {
				slope[j] += y[n] * p * row[j]
				for k := range d {
					h[j][k] += p * (1 - p) * row[j] * row[k]
				}
			}
		}
		det := h[0][0]*h[1][1] - h[0][1]*h[1][0]
		v = [2][2]float64{{h[1][1] / det, -h[0][1] / det}, {-h[1][0] / det, h[0][0] / det}}
		moved, size := 0.0, 1.0
		delta := [2]float64{v[0][0]*slope[0] + v[0][1]*slope[1], v[1][0]*slope[0] + v[1][1]*slope[1]}
		for j := range d {
			moved = max(moved, math.Abs(delta[j]))
		}
		if moved > 2 { // a long step may overshoot where the curvature fades
			size = 2 / moved
		}
		for j := range d {
			mode[j] += size * delta[j]
		}
		if moved < 1e-9 {
			break
		}
	}
	root[0][0] = math.Sqrt(v[0][0])
	root[1][0] = v[0][1] / root[0][0]
	root[1][1] = math.Sqrt(max(0, v[1][1]-root[1][0]*root[1][0]))
	return mode, root
}

// exact integrates over α ~ Gam(shape, rate) too, by the trapezoidal rule in ln α.
func exact(x [][]float64, y []float64, shape, rate float64) exactPosterior {
	const step = .5
	d := len(x[0])
	all := exactPosterior{LogEvidence: math.Inf(-1), Mean: make([]float64, d), Variance: make([]float64, d)}
	var parts []exactPosterior
	var logs []float64
	// Beyond 60/rate the prior of α is e⁻⁶⁰. As α falls to 0, the evidence falls as
	// α^(d/2) where both labels overlap: below the first node it is e⁻²⁰.
	for t := -40.0 / float64(d); t <= math.Log(60/rate); t += step {
		α := math.Exp(t)
		p := givenAlpha(x, y, α)
		logs = append(logs, p.LogEvidence+shape*t-rate*α+shape*math.Log(rate)-lnΓ(shape)+math.Log(step))
		parts = append(parts, p)
		all.LogEvidence = addLogs(all.LogEvidence, logs[len(logs)-1])
	}
	for i, p := range parts {
		weight := math.Exp(logs[i] - all.LogEvidence)
		all.Alpha += weight * p.Alpha
		for j := range d {
			all.Mean[j] += weight * p.Mean[j]
			all.Variance[j] += weight * (p.Variance[j] + p.Mean[j]*p.Mean[j])
		}
	}
	for j := range d {
		all.Variance[j] -= all.Mean[j] * all.Mean[j]
	}
	return all
}

// addLogs returns ln(eᵃ + eᵇ).
func addLogs(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(a, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// student is ln ∫ N(w | 0, I/α) Gam(α | shape, rate) dα.
func student(w []float64, shape, rate float64) float64 {
	half := float64(len(w)) / 2
	return lnΓ(shape+half) - lnΓ(shape) + shape*math.Log(rate) - half*math.Log(2*math.Pi) - (shape+half)*math.Log(
		rate+dot(w, w)/2)
}
