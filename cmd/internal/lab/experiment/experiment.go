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
	{"blr", "Bayesian logistic regression", "Variational, incremental, with automatic relevance determination", "J. Drugowitsch"},
	{"bblr", "BBLR", "A New Smooth Approximation to the Zero One Loss with a Probabilistic Interpretation", "M. K. Hasan, C. J. Pal"},
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
	Run  func(ctx context.Context, r *Run) (*Report, error)
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
