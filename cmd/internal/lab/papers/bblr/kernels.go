package bblr

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"hamlet/algos/bblr"
	"hamlet/cmd/internal/lab/experiment"
)

// kernelRepetitions are the random splits of tables 14 and 15.
const kernelRepetitions = 10

// A kernelTally holds what one fold says of a kernel classifier.
type kernelTally struct {
	Wrong map[string]int
	Rows  int
	// Support rows of the sparse classifier and of the support vector machine.
	Kept, Vectors float64
}

// kernelTable crosses the folds of each set with fits.
func kernelTable(ctx context.Context, r *experiment.Run, fit func(ctx context.Context, f fold, random *rand.Rand, t *kernelTally) error) (map[string][]kernelTally, error) {
	all := map[string][]kernelTally{}
	for _, set := range uci {
		x, y, err := r.Data.Table(set)
		if err != nil {
			return nil, err
		}
		all[set], err = experiment.Steps(ctx, r, set, 5*kernelRepetitions, func(ctx context.Context, step int) (t kernelTally, err error) {
			at := 0
			for f := range folds(x, y, r.Rand(set+" split", step/5)) {
				if at++; at-1 != step%5 {
					continue
				}
				t = kernelTally{Wrong: map[string]int{}, Rows: len(f.test)}
				err = fit(ctx, f, r.Rand(set+" inner", step), &t)
			}
			return t, err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// percent returns a method's errors in percent, by repetition.
func percent(tallies []kernelTally, name string) []float64 {
	var v []float64
	for at := 0; at < len(tallies); at += 5 {
		wrong, rows := 0, 0
		for _, t := range tallies[at : at+5] {
			wrong += t.Wrong[name]
			rows += t.Rows
		}
		v = append(v, 100*float64(wrong)/float64(rows))
	}
	return v
}

// minus returns the paired differences a − b.
func minus(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range d {
		d[i] = a[i] - b[i]
	}
	return d
}

func kernelFit(ctx context.Context, f fold, cfg bblr.KernelConfig) (*bblr.KernelMachine, error) {
	m, _, err := bblr.FitKernel(ctx, cfg, f.x, f.y, nil)
	return m, err
}

// kernelLambdas are the penalties that the dense kernel fit chooses from.
var kernelLambdas = []float64{1e-2, 1e-1, 1, 10}

// tunedKernel chooses λ on a fifth of the rows that is held out.
func tunedKernel(ctx context.Context, f fold, random *rand.Rand) (*bblr.KernelMachine, error) {
	best, fewest := 0.0, math.MaxInt
	for inner := range folds(f.x, f.y, random) {
		for _, λ := range kernelLambdas {
			m, err := kernelFit(ctx, inner, bblr.KernelConfig{Lambda: λ})
			if err != nil {
				return nil, err
			}
			if n := inner.errors(m); n < fewest {
				best, fewest = λ, n
			}
		}
		break
	}
	return kernelFit(ctx, f, bblr.KernelConfig{Lambda: best})
}

const whyMachine = "The paper tuned C and the width on each training set. Here the width is fixed, C is one of .1, 1 and 10, and there is no bias."

const whyKept = "The number of rows kept depends on the kernel's width and on the floors of the prior's widths, which the paper does not print."

const whyKernel = "The paper does not say how it chose the kernel's width and λ. Here s² is the number of standardised columns, and λ is chosen on a held-out fifth."

var table14 = experiment.Experiment{
	Name: "bblr/table-14", Title: "Table 14: dense kernels", Where: "section 5.3, table 14",
	Claim: "Kernel BBLR errs less often than linear BBLR on heart and liver.",
	Sets:  uci, Cost: 80 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run) (*experiment.Report, error) {
		linear := variant("BBLR", bblr.BBLR3)
		all, err := kernelTable(ctx, r, func(ctx context.Context, f fold, random *rand.Rand, t *kernelTally) error {
			m, err := linear.fit(ctx, f.x, f.y, random)
			if err != nil {
				return err
			}
			t.Wrong["BBLR"] = f.errors(m)
			k, err := tunedKernel(ctx, f, random)
			if err != nil {
				return err
			}
			t.Wrong["KBBLR"] = f.errors(k)
			machine, err := tunedKernelMachine(ctx, f, random)
			if err != nil {
				return err
			}
			t.Wrong["SVM"] = f.errors(machine)
			return nil
		})
		if err != nil {
			return nil, err
		}
		p := &experiment.Report{}
		paper := map[string][3]string{
			"breast": {"2.82", "3.26", "2.98"}, "heart": {"17.08", "17.76", "16.27"}, "liver": {"31.80", "29.61", "26.91"}, "pima": {"21.57", "22.44", "22.9"},
		}
		for _, set := range uci {
			for i, name := range []string{"BBLR", "SVM", "KBBLR"} {
				row := p.Figure(set, name+", errors in percent", experiment.Mean(percent(all[set], name)), paper[set][i], experiment.Lower)
				row.PaperSE, row.Reason = row.Ours.SE, whyKernel
				switch name {
				case "BBLR":
					row.Reason = whyTuned
				case "SVM":
					row.Reason = whyMachine
				}
			}
		}
		for _, set := range []string{"heart", "liver"} {
			d := minus(percent(all[set], "KBBLR"), percent(all[set], "BBLR"))
			p.Claim(set, "KBBLR minus BBLR", experiment.Mean(d), experiment.AtMost, "0").Reason = whyKernel
		}
		p.Note("The paper does not say which BBLR this is, nor how often it split. BBLR3 is shown. The Monte Carlo error of its numbers is taken to be that of ours.")
		return p, nil
	},
}

var table15 = experiment.Experiment{
	Name: "bblr/table-15", Title: "Table 15: sparse kernels and their support", Where: "section 5.4, table 15",
	Claim: "With the Gauss–Laplace prior, kernel BBLR keeps fewer rows than a support vector machine on all sets but breast, and errs less often on all but pima.",
	Sets:  uci, Cost: 45 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run) (*experiment.Report, error) {
		all, err := kernelTable(ctx, r, func(ctx context.Context, f fold, random *rand.Rand, t *kernelTally) error {
			machine, err := tunedKernelMachine(ctx, f, random)
			if err != nil {
				return err
			}
			t.Wrong["SVM"], t.Vectors = f.errors(machine), float64(machine.report.Support)
			m, err := kernelFit(ctx, f, bblr.KernelConfig{Sparse: true})
			if err != nil {
				return err
			}
			support, _ := m.Support()
			t.Wrong["sparse"], t.Kept = f.errors(m), float64(len(support))
			return nil
		})
		if err != nil {
			return nil, err
		}
		p := &experiment.Report{}
		paper := map[string][4]string{ // errors and support, sparse KBBLR and SVM
			"breast": {"2.83", "127", "3.26", "107"}, "heart": {"16.40", "85", "17.76", "148"},
			"liver": {"28.74", "111", "29.61", "269"}, "pima": {"23.52", "269", "22.44", "548"},
		}
		for _, set := range uci {
			row := p.Figure(set, "sparse KBBLR, errors in percent", experiment.Mean(percent(all[set], "sparse")), paper[set][0], experiment.Lower)
			row.PaperSE, row.Reason = row.Ours.SE, whyKernel
			row = p.Figure(set, "SVM, errors in percent", experiment.Mean(percent(all[set], "SVM")), paper[set][2], experiment.Lower)
			row.PaperSE, row.Reason = row.Ours.SE, whyMachine
			var kept, vectors []float64
			for _, t := range all[set] {
				kept, vectors = append(kept, t.Kept), append(vectors, t.Vectors)
			}
			p.Figure(set, "support vectors of SVM", experiment.Mean(vectors), paper[set][3], experiment.Neither).Reason = whyMachine
			p.Figure(set, "rows kept", experiment.Mean(kept), paper[set][1], experiment.Neither).Reason = whyKept
			if set != "breast" {
				p.Claim(set, "rows kept minus support vectors", experiment.Mean(minus(kept, vectors)), experiment.AtMost, "0").Reason = whyKept
			}
			if set != "pima" {
				p.Claim(set, "sparse KBBLR minus SVM, errors in percent", experiment.Mean(minus(percent(all[set], "sparse"), percent(all[set], "SVM"))),
					experiment.AtMost, "0").Reason = whyKernel
			}
		}
		p.Note("The Monte Carlo error of the paper's errors is taken to be that of ours. Fewer rows kept are neither better nor worse: with larger errors they are another operating point. The floors of the prior's widths, without which its likelihood has no maximum, are ours.")
		return p, nil
	},
}
