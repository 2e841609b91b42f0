package bblr

import (
	"context"
	"fmt"
	"time"

	"hamlet/algos/bblr"
	"hamlet/cmd/internal/lab/experiment"
)

// A domain is a set of reviews: its names here and in the paper, and the paper's numbers.
type domain struct {
	set, file, name, columns string
	errors                   map[string]string
}

var domains = []domain{
	{"reviews-books", "reviews/books.svm", "Books", "28234", map[string]string{"LR": "19.75", "SVM": "20.45", "BBLR3": "18.38", "BBLR4": "18.15"}},
	{"reviews-dvd", "reviews/dvd.svm", "DVDs", "28310", map[string]string{"LR": "18.05", "SVM": "21.4", "BBLR3": "17.5", "BBLR4": "16.8"}},
	{"reviews-electronics", "reviews/electronics.svm", "Electronics", "14943", map[string]string{"LR": "16.4", "SVM": "17.75", "BBLR3": "16.29", "BBLR4": "15.21"}},
	{"reviews-kitchen", "reviews/kitchen.svm", "Kitchen", "12130", map[string]string{"LR": "13.5", "SVM": "14.6", "BBLR3": "13.0", "BBLR4": "13.0"}},
}

// reviewSets are the names of all sets of reviews.
func reviewSets() []string {
	var names []string
	for _, d := range domains {
		names = append(names, d.set)
	}
	return names
}

const otherReviews = "There are several versions of these reviews, with other words and counts."

var table11 = experiment.Experiment{
	Name: "bblr/table-11", Title: "Table 11: the sets of reviews", Where: "section 5.1.4, table 11",
	Claim: "Four sets of 1,000 positive and 1,000 negative reviews have 12,130 to 28,310 unigrams.",
	Sets:  reviewSets(), Cost: time.Second,
	Run: func(_ context.Context, r *experiment.Run) (*experiment.Report, error) {
		p := &experiment.Report{}
		for _, d := range domains {
			s, err := readSparse(r, d.file, 1)
			if err != nil {
				return nil, err
			}
			positive := 0
			for _, y := range s.y {
				if y > 0 {
					positive++
				}
			}
			p.Figure(d.name, "reviews", experiment.Exact(float64(len(s.x))), "2000", experiment.Neither).Reason = otherReviews
			p.Figure(d.name, "positive reviews", experiment.Exact(float64(positive)), "1000", experiment.Neither).Reason = otherReviews
			p.Figure(d.name, "words", experiment.Exact(float64(s.columns)), d.columns, experiment.Neither).Reason = otherReviews
		}
		return p, nil
	},
}

// reviewFolds are the parts of the cross validation, as in the paper.
const reviewFolds = 10

var table12 = experiment.Experiment{
	Name: "bblr/table-12", Title: "Table 12: errors on reviews", Where: "section 5.1.4, table 12",
	Claim: "On all four sets of reviews BBLR3 and BBLR4 err less often than logistic regression and a linear support vector machine.",
	Sets:  reviewSets(), Cost: 4 * time.Minute,
	Run: func(ctx context.Context, r *experiment.Run) (*experiment.Report, error) {
		p := &experiment.Report{}
		// Counts of words are not standardised: that would make every 0 a number.
		methods := bigMethods(bblr.Config{Raw: true})
		for _, d := range domains {
			s, err := readSparse(r, d.file, 1)
			if err != nil {
				return nil, err
			}
			s = s.withBias()
			type part struct {
				Rows  int
				Wrong [][]int // by method, of the fold's test rows
			}
			parts, err := experiment.Steps(ctx, r, d.set, reviewFolds, func(ctx context.Context, at int) (part, error) {
				train, test := s.split(r.Rand(d.set+" order", 0).Perm(len(s.x)), reviewFolds, at)
				result := part{Rows: len(test.x)}
				for _, m := range methods {
					c, err := m.fit(ctx, train, r.Rand(d.set+" inner", at))
					if err != nil {
						return result, fmt.Errorf("%s: %w", m.name, err)
					}
					result.Wrong = append(result.Wrong, test.wrong(c))
				}
				return result, nil
			})
			if err != nil {
				return nil, err
			}
			all := make([][]int, len(methods)) // rows that a method gets wrong, over all folds
			for at, part := range parts {
				for i := range methods {
					for _, row := range part.Wrong[i] {
						all[i] = append(all[i], at*len(s.x)+row)
					}
				}
			}
			by := map[string][]int{}
			for i, m := range methods {
				by[m.name] = all[i]
				ours := share(len(all[i]), len(s.x))
				row := p.Figure(d.name, m.name+", errors in percent", ours, d.errors[m.name], experiment.Lower)
				row.PaperSE, row.Reason = ours.SE, otherReviews
			}
			for _, name := range []string{"BBLR3", "BBLR4"} {
				for _, other := range []string{"LR", "SVM"} {
					p.Claim(d.name, "McNemar's z, "+name+" better than "+other, experiment.Exact(mcNemar(by[name], by[other])), experiment.AtLeast, "0").Reason = otherReviews
				}
			}
		}
		p.Note("One split into 10 folds. Rows are counts of words as given, and a 1 for the bias. Errors have the standard error of a draw of test rows. The paper tests as many rows, so its numbers have the same error.")
		return p, nil
	},
}

// withBias appends a column of 1.
func (s sparseSet) withBias() sparseSet {
	out := sparseSet{columns: s.columns + 1, y: s.y}
	for _, row := range s.x {
		out.x = append(out.x, bblr.SparseRow{
			Index: append(append([]int(nil), row.Index...), s.columns),
			Value: append(append([]float64(nil), row.Value...), 1),
		})
	}
	return out
}
