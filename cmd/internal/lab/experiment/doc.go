// Laboratory: how an experiment is written, run and judged.

// Package experiment computes the tables, figures and claims of hamlet's sources
// again and judges each number against the printed one.
//
//	var table2 = experiment.Experiment{
//		Name: "poeboost/table-2", Title: "Accuracy on six sets", Where: "section 6, table 2",
//		Claim: "…what the source says, in our words…",
//		Sets:  []string{"pima"}, Cost: 20 * time.Second,
//		Run: func(ctx context.Context, r *experiment.Run) (*experiment.Report, error) {
//			x, y, err := r.Data.Table("pima")
//			…
//			errors, err := experiment.Steps(ctx, r, "split", 10, func(ctx context.Context, i int) (float64, error) {
//				rng := r.Rand("split", i)
//				…
//			})
//			report := &experiment.Report{}
//			report.Figure("pima", "POEBoost.CS", experiment.Mean(errors), "0.24", experiment.Lower)
//			return report, err
//		},
//	}
//
// # Steps
//
// All that takes longer than a second belongs into Steps: its calls run beside one
// another, each on one core, and what a call returned is kept on disk. A run that was
// interrupted goes on behind the last finished step. So a step's result is plain data
// with exported fields that JSON can hold: no NaN, no infinity. A step takes randomness
// from Run.Rand alone; then no number depends on cores, order or interruptions. A step
// takes some seconds at most, or a user who interrupts loses work.
//
// # Verdicts
//
// A row compares one number of ours with one of the source. It is
//
//   - reproduced, if the two agree within rounding and the Monte Carlo error of both;
//   - better, if they do not, and ours differs in the direction that is better;
//   - not reproduced else. Such a row says why, as far as it is known.
//
// An experiment with many rows makes many comparisons, so each has less room (Bonferroni):
// with m rows that depend on chance, the factor on standard errors is the 1 − .025/m
// quantile of Student's t, with one degree of freedom less than there were repetitions.
// So all rows agree with probability .95 or more where nothing differs but chance.
//
// A claim without a number ("the two perform alike", "the bound is never violated") is
// stated as a bound on a number that the run computes. It is reproduced if our value
// keeps the bound, or misses it by no more than its Monte Carlo error, on one side.
//
// An experiment is not reproduced if one of its rows is not; the counts say how many.
package experiment
