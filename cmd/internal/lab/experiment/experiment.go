// Laboratory: how an experiment is written, run and judged.

// Package experiment computes the tables, figures and claims of hamlet's sources
// again and judges each number against the printed one.
//
//	var table2 = experiment.Experiment{
//		Name: "poeboost/table-2", Title: "Accuracy on six sets", Where: "section 6, table 2",
//		Claim: "…what the source says, in our words…",
//		Sets:  []string{"pima"}, Cost: 20 * time.Second,
//		Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
//			x, y, err := r.Data.Table("pima")
//			…
//			errors, err := experiment.Steps(ctx, r, "split", 10, func(ctx context.Context, i int) (float64, error) {
//				rng := r.Rand("split", i)
//				…
//			})
//			p.Figure("pima", "POEBoost.CS", experiment.Mean(errors), "0.24", experiment.Lower)
//			return err
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
//   - not reproduced otherwise. The row says why, as far as it is known.
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
//
// # Tables and pages
//
// All that the laboratory measures is shown as a [Section], those of bench and faults too:
// sentences, a table, notes and pictures. Print writes it for a terminal, and a [Page] shows
// sections in a browser. A command has no layout and no template of its own.
package experiment

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Sources are the first parts of names, in the order of pages.
var Sources = []Source{
	{"viboost", "VIBoost", "A Bayesian Boosting Model", "A. Lorbert, D. M. Blei, R. E. Schapire, P. J. Ramadge"},
	{"poeboost", "POEBoost", "Boosting as a Product of Experts", "N. U. Edakunni, G. Brown, T. Kovacs"},
	{"blr", "Bayesian logistic regression", "Variational, incremental, with automatic relevance determination",
		"J. Drugowitsch"},
	{"bblr", "BBLR", "A New Smooth Approximation to the Zero One Loss with a Probabilistic Interpretation",
		"M. K. Hasan, C. J. Pal"},
	{"slides", "Slides on boosting", "AdaBoost, margins, games, BHBoost, AnyBoost", "lecture slides"},
}

// A Source is one of the texts that hamlet's mathematics comes from.
type Source struct{ Key, Name, Title, Authors string }

// An Experiment is one table, figure or claim of a source.
type Experiment struct {
	Name  string   // SOURCE/WHAT: "viboost/figure-8"
	Title string   // a line
	Where string   // the place in the source: "section 7, figure 8"
	Claim string   // what the source says, in our words
	Sets  []string // names of the data sets that it reads, see Sets
	// Cost is the processor time that it took when it was written. It serves the
	// estimate of the remaining time alone.
	Cost time.Duration
	Run  func(ctx context.Context, r *Run, p *Report) error // adds what it found to p
}

// Source returns the part of the name before the slash.
func (e *Experiment) Source() string {
	source, _, _ := strings.Cut(e.Name, "/")
	return source
}

var nameForm = regexp.MustCompile(`^[a-z]+/[a-z0-9]+(-[a-z0-9]+)*$`)

// Validate returns an error if the experiment breaks a rule of this package.
func (e *Experiment) Validate() error {
	if !nameForm.MatchString(e.Name) {
		return fmt.Errorf("experiment %q: its name is not SOURCE/WHAT", e.Name)
	}
	if !slices.ContainsFunc(Sources, func(s Source) bool { return s.Key == e.Source() }) {
		return fmt.Errorf("experiment %s: there is no source %q", e.Name, e.Source())
	}
	for _, set := range e.Sets {
		if _, ok := sets[set]; !ok {
			return fmt.Errorf("experiment %s: there is no data set %q", e.Name, set)
		}
	}
	if e.Title == "" || e.Where == "" || e.Claim == "" || e.Cost <= 0 || e.Run == nil {
		return fmt.Errorf("experiment %s: a field is missing", e.Name)
	}
	return nil
}
