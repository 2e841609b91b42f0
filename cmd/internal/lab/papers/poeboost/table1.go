package poeboost

import (
	"context"
	"time"

	"hamlet/cmd/internal/lab/experiment"
)

// table1 counts the rows and features of the sets.
var table1 = experiment.Experiment{
	Name: "poeboost/table-1", Title: "Table 1: the data sets", Where: "section 6, table 1",
	Claim: "Six public sets with these numbers of rows and features. The seventh, Catalysis, is not public any more.",
	Sets:  names(), Cost: time.Second,
	Run: func(_ context.Context, r *experiment.Run) (*experiment.Report, error) {
		p := &experiment.Report{}
		for _, s := range sets {
			x, y, err := r.Data.Table(s.data)
			if err != nil {
				return nil, err
			}
			p.Figure(s.name, "rows", experiment.Exact(float64(len(x))), s.rows, experiment.Neither)
			features := p.Figure(s.name, "features", experiment.Exact(float64(len(x[0]))), s.features, experiment.Neither)
			if s.data == "spambase" {
				features.Reason = "The documentation of spambase names 57 features. The paper may not count the last, the total of capital letters."
			}
			if s.data == "wine-red" {
				positive := 0.0
				for _, v := range y {
					if v > 0 {
						positive += 1 / float64(len(y))
					}
				}
				p.Figure(s.name, "share of quality 5 and more", experiment.Exact(positive), "0.96", experiment.Neither)
			}
		}
		p.Note("The paper does not say at which quality it divides the wines. The accuracy that it prints, 0.96, is the share of the larger class if +1 means 5 and more.")
		p.Note("Ionosphere has 34 columns, of which the second is constant. It is left out.")
		return p, nil
	},
}
