package bblr

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"hamlet/algos/lab/mcnemar"

	"hamlet/algos/lab/bblr"
	"hamlet/cmd/internal/lab/experiment"
)

// table8 is the pooled McNemar test of BBLR3 on the UCI sets.
var table8 = experiment.Experiment{
	Name: "bblr/table-8", Title: "Table 8: pooled McNemar tests on the UCI sets", Where: "section 5.1.2, table 8",
	Claim: "Over 10 repetitions of 5 folds on four UCI sets, BBLR3 errs significantly less often than logistic " +
		"regression (z = 3.17), but not than a linear SVM (0.69). With 10 % noise in the training rows it beats both " +
		"(4.33 and 3.7).",
	Sets: uci, Cost: 15 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, report *experiment.Report) error {
		for _, noisy := range []bool{false, true} {
			all, err := compareOnUCI(ctx, r, noisy)
			if err != nil {
				return err
			}
			addPooled(report, noisy, all)
			addSets(report, noisy, all)
		}
		report.Note("z = (b−c)/√(b+c), without a continuity correction, where b rows are wrong for the other method " +
			"alone and c for BBLR3 alone. The paper calls z ≥ 2.32 significant.")
		report.Note("Labels are signs of wᵀx, since the paper has no rule; p > ½ is the other rule.")
		report.Note("The paper pools all repetitions as if they were independent tests. They share their rows, so " +
			"that such a z has a standard deviation above 1 where the methods are equal. One repetition tests each " +
			"row once: its mid-p-value is exact up to the discreteness.")
		report.Note("λ of LR and C of the SVM are chosen in 5 folds of the training rows. Noise replaces a tenth of " +
			"the training rows by points of the bounding box, since the paper does not describe its protocol.")
		return nil
	},
}

const mcNemarRuns = 10 // repetitions of 5 folds, as in the paper

// A comparison is how BBLR3 compares with the others in one repetition, over all sets.
// The first classifier of each test is the other one.
type comparison struct {
	LR, SVM  mcnemar.Test
	Likelier mcnemar.Test   // against LR, if BBLR3's label is +1 where p > ½
	Sets     []mcnemar.Test // against LR, by set
}

// compareOnUCI compares the methods in every repetition.
func compareOnUCI(ctx context.Context, r *experiment.Run, noisy bool) ([]comparison, error) {
	what := "clean"
	if noisy {
		what = "noisy"
	}
	methods := [3]method{tunedVariant("LR", bblr.LR), linearMachine, variant("BBLR3", bblr.BBLR3)}
	type table struct {
		x [][]float64
		y []float64
	}
	data := map[string]table{}
	for _, set := range uci {
		x, y, err := r.Data.Table(set)
		if err != nil {
			return nil, err
		}
		data[set] = table{x, y}
	}
	parts, err := experiment.Steps(ctx, r, what, mcNemarRuns*len(uci),
		func(ctx context.Context, i int) (c comparison, err error) {
			set := uci[i%len(uci)]
			random := r.Rand(what, i)
			for f := range folds(data[set].x, data[set].y, random) {
				if noisy {
					f = f.withNoise(random)
				}
				var wrong [3][]bool
				var likelier []bool // wrong by p > ½
				for k, m := range methods {
					fitted, err := m.fit(ctx, f.x, f.y, random)
					if err != nil {
						return c, fmt.Errorf("%s on %s: %w", m.name, set, err)
					}
					for i, x := range f.test {
						wrong[k] = append(wrong[k], fitted.Label(x) != f.testY[i])
						if k == 2 {
							p := fitted.(*bblr.Linear).Prob(x)
							likelier = append(likelier, (p > 0.5) != (f.testY[i] > 0))
						}
					}
				}
				for i, ours := range wrong[2] {
					c.LR.Add(wrong[0][i], ours)
					c.SVM.Add(wrong[1][i], ours)
					c.Likelier.Add(wrong[0][i], likelier[i])
				}
			}
			return c, nil
		})
	if err != nil {
		return nil, err
	}
	all := make([]comparison, mcNemarRuns)
	for i, c := range parts {
		of := &all[i/len(uci)]
		of.LR.Merge(c.LR)
		of.SVM.Merge(c.SVM)
		of.Likelier.Merge(c.Likelier)
		of.Sets = append(of.Sets, c.LR)
	}
	return all, nil
}

// pooled returns z of all repetitions together. Its standard error is that of the sum
// of the differences, from their variance between repetitions.
func pooled(tests []mcnemar.Test) experiment.Statistic {
	var all mcnemar.Test
	differences := make([]float64, len(tests))
	for i, t := range tests {
		all.Merge(t)
		differences[i] = float64(t.Only1 - t.Only2)
	}
	scale := float64(len(tests)) / math.Sqrt(float64(max(all.Only1+all.Only2, 1)))
	return experiment.Mean(differences).Scaled(scale)
}

// addPooled adds the rows of clean or noisy sets.
func addPooled(report *experiment.Report, noisy bool, all []comparison) {
	group, printed := "clean", [2]string{"3.17", "0.69"}
	if noisy {
		group, printed = "noisy", [2]string{"4.33", "3.7"}
	}
	for k, other := range [2]string{"LR", "SVM"} {
		var tests []mcnemar.Test
		var p []float64
		for _, c := range all {
			t := [2]mcnemar.Test{c.LR, c.SVM}[k]
			tests, p = append(tests, t), append(p, t.MidP())
		}
		z := pooled(tests)
		row := report.Figure(group, "z, BBLR3 against "+other, z, printed[k], experiment.Higher)
		row.PaperSE = z.SE // its number of repetitions is ours
		row.Reason = "On heart and pima our BBLR3 errs more than LR. On heart it fits 216 rows of 13 columns too " +
			"closely, as the paper's BBLR2 does (table 5). On pima the class counts as α and β make a missed example " +
			"of the smaller class cost 1.35 nats, and one of the larger 0.93; so the fit does not count errors alike."
		slices.Sort(p)
		report.Show(group, "median mid-p of one repetition, BBLR3 against "+other, experiment.Exact((p[4]+p[5])/2))
	}
}

// addSets adds rows that say where the difference to LR comes from, and whether the rule
// for labels matters.
func addSets(report *experiment.Report, noisy bool, all []comparison) {
	group := "clean"
	if noisy {
		group = "noisy"
	}
	var likelier []mcnemar.Test
	for _, c := range all {
		likelier = append(likelier, c.Likelier)
	}
	report.Show(group, "z, BBLR3 by p > ½ against LR", pooled(likelier))
	for k, set := range uci {
		var tests []mcnemar.Test
		for _, c := range all {
			tests = append(tests, c.Sets[k])
		}
		report.Show(group, "z on "+set+" alone, against LR", pooled(tests))
	}
}
