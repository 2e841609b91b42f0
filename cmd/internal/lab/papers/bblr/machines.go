package bblr

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"hamlet/algos/lab/svm"
)

// costs are the C that support vector machines choose from.
var costs = []float64{1e-2, 1e-1, 1}

// machineGap ends a fit of a machine: the relative duality gap.
const machineGap = 1e-4

// A standardised classifier takes rows as given.
type standardised struct {
	classifier
	center, inverse []float64
}

func (s standardised) Label(x []float64) float64 { return s.classifier.Label(s.row(x)) }

func (s standardised) row(x []float64) []float64 {
	scaled := make([]float64, len(x))
	for j, v := range x {
		scaled[j] = (v - s.center[j]) * s.inverse[j]
	}
	return scaled
}

// measure returns the means of the columns and the inverses of their standard deviations,
// 0 for a constant column.
func measure(x [][]float64) (s standardised) {
	n := float64(len(x))
	s.center, s.inverse = make([]float64, len(x[0])), make([]float64, len(x[0]))
	for j := range s.center {
		squares := 0.0
		for _, row := range x {
			s.center[j] += row[j] / n
		}
		for _, row := range x {
			squares += (row[j] - s.center[j]) * (row[j] - s.center[j])
		}
		if squares > 0 {
			s.inverse[j] = math.Sqrt(n / squares)
		}
	}
	return s
}

// linearMachine is a linear support vector machine of standardised columns, whose C is
// chosen by an inner cross validation.
var linearMachine = tuned("SVM", len(costs), func(ctx context.Context, setting int, x [][]float64,
	y []float64) (classifier, error) {
	s := measure(x)
	rows := make([][]float64, len(x))
	for i := range x {
		rows[i] = s.row(x[i])
	}
	m, _, err := svm.Fit(ctx, svm.Config{C: costs[setting], Bias: 1, Gap: machineGap}, svm.DenseRows(rows), y, nil)
	s.classifier = m
	return s, err
})

// sparseLinearMachine is a linear support vector machine of rows as given, whose C is
// chosen on a held-out fifth.
var sparseLinearMachine = sparseTuned("SVM", len(costs),
	func(ctx context.Context, setting int, s sparseSet) (sparseClassifier, error) {
		rows := svm.NewRows(s.columns)
		for _, row := range s.x {
			index := make([]int32, len(row.Index))
			for k, j := range row.Index {
				index[k] = int32(j)
			}
			rows.Add(index, row.Value)
		}
		m, _, err := svm.Fit(ctx, svm.Config{C: costs[setting], Bias: 1, Gap: machineGap}, rows, s.y, nil)
		if err != nil {
			return nil, err
		}
		w, b := m.Weights()
		return sparseLinear{w, b}, nil
	})

// A kernelMachine is a support vector machine with the kernel exp(−|x−x'|²/2D) over
// standardised rows. It has no bias, which a kernel of this width hardly misses.
type kernelMachine struct {
	standardised
	report svm.Report
}

func fitKernelMachine(ctx context.Context, c float64, x [][]float64, y []float64) (*kernelMachine, error) {
	s := measure(x)
	scaled := make([][]float64, len(x))
	for i := range x {
		scaled[i] = s.row(x[i])
	}
	m, report, err := svm.FitKernel(ctx, svm.Config{C: c, Gap: 1e-3}, float64(len(x[0])), scaled, y, nil)
	s.classifier = m
	return &kernelMachine{s, report}, err
}

// kernelCosts are the C that a machine with a kernel chooses from.
var kernelCosts = []float64{0.1, 1, 10}

// tunedKernelMachine chooses C on a fifth of the rows that is held out.
func tunedKernelMachine(ctx context.Context, f fold, random *rand.Rand) (*kernelMachine, error) {
	wrong := make([]int, len(kernelCosts))
	for inner := range folds(f.x, f.y, random) {
		for i, c := range kernelCosts {
			m, err := fitKernelMachine(ctx, c, inner.x, inner.y)
			if err != nil {
				return nil, err
			}
			wrong[i] = inner.errors(m)
		}
		break
	}
	return fitKernelMachine(ctx, kernelCosts[slices.Index(wrong, slices.Min(wrong))], f.x, f.y)
}
