package bblr

import (
	"math"
	"strings"
	"testing"

	"hamlet/cmd/internal/lab/experiment"
)

// Each order has a row over all sets or one for each set, with its own reason.
func TestOrders(t *testing.T) {
	all := map[string][]tally{}
	for _, set := range uci {
		for k := range repetitions {
			wrong := map[string]int{"LR": 20 + k%2, "SVM": 30, "SLA": 18, "BBLR2": 25, "BBLR3": 19, "BBLR4": 17}
			if set == "pima" {
				wrong["BBLR3"] = 10
			}
			all[set] = append(all[set], tally{Rows: 100, Wrong: wrong})
		}
	}
	p := new(experiment.Report)
	foldReport(p, all, true, printedTable{}, []order{
		{less: "BBLR2", more: "SLA", why: "sigmoid"}, {less: "BBLR3", more: "LR", why: "tuned"},
		{less: "BBLR3", more: bestOther, why: "best", each: true},
	})
	if _, err := p.Judge(); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"mean of the sets, BBLR2 minus SLA, sigmoid": 7,
		"mean of the sets, BBLR3 minus LR, tuned": -3.75}
	for _, set := range uci {
		want[set+", BBLR3 minus "+bestOther+", best"] = 1 // than SLA
	}
	want["pima, BBLR3 minus "+bestOther+", best"] = -8
	for _, r := range p.Rows {
		if r.Relation == experiment.Alone {
			continue
		}
		key := strings.Join([]string{r.Group, r.What, r.Reason}, ", ")
		d, ok := want[key]
		if !ok || math.Abs(r.Ours.Value-d) > 1e-9 || (r.Verdict == experiment.Reproduced) != (d <= 0) {
			t.Errorf("%s: %v, %q; want %v", key, r.Ours.Value, r.Verdict, d)
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("rows are missing: %v", want)
	}
}

// A line has the exponent 1, a square root .5 and a logarithm .18, on either side of the
// bound of figure 7.
func TestExponent(t *testing.T) {
	for _, c := range []struct {
		grow func(n float64) float64
		want float64
	}{{func(n float64) float64 { return n / 3 }, 1}, {math.Sqrt, .5}, {math.Log, .18}} {
		var kept [][]float64
		for _, n := range sizes {
			kept = append(kept, []float64{math.NaN(), c.grow(float64(n))})
		}
		if got := exponent(kept, 1); math.Abs(got-c.want) > .005 {
			t.Errorf("exponent %v, want %v", got, c.want)
		}
	}
}
