// Package svm fits support vector machines, linear ones first. A fit minimises the hinge loss with
// an L2 penalty:
//
//	P(w) = ½|w|² + Σ Uᵢ·max(0, 1 − yᵢ·wᵀxᵢ),   Uᵢ = C·weightᵢ,   yᵢ = ±1.
//
// The dual maximises
//
//	D(α) = Σ αᵢ − ½|w|²,   w = Σ αᵢyᵢxᵢ,   0 ≤ αᵢ ≤ Uᵢ.
//
// P(w) ≥ D(α) for all w and α, with equality at the optimum only. So P − D bounds how far
// a result is from the optimum, whatever way it was found. Fit reports both.
//
//	rows := svm.DenseRows(x)
//	m, report, err := svm.Fit(ctx, svm.Config{C: 1, Bias: 1}, rows, y, nil)
//	if err != nil {
//		return err
//	}
//	label := m.Label(x[0]) // ±1
//
// # The fit
//
// Dual coordinate descent changes one αᵢ at a time, in a random order for each pass.
// With G = yᵢwᵀxᵢ − 1, the derivative of −D by αᵢ, a step is
//
//	α′ = min(max(αᵢ − G/|xᵢ|², 0), Uᵢ),   w ← w + (α′−αᵢ)yᵢxᵢ,
//
// which is exact in that coordinate and costs as much as the row has entries. A row whose
// α stays at an end of its range leaves the passes (shrinking). It returns before the
// gap is measured. A large C needs many passes; most of them visit few rows (MEASURED.md).
//
// Source: C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, A dual
// coordinate descent method for large-scale linear SVM (2008), algorithms 1 and 3. It
// stops by the projected gradient; here the relative gap decides.
//
// [FitKernel] does the same with a Gaussian kernel, for a few thousand rows at most.
package svm
