package experiment

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestPrintedNumbers(t *testing.T) {
	for text, want := range map[string][2]float64{
		"0.86": {.86, .005}, ".5": {.5, .05}, "12": {12, .5}, "−1.40": {-1.4, .005}, "-3": {-3, .5},
		"1.5e-3": {.0015, .00005}, "2e3": {2000, 500},
	} {
		value, rounding, err := printed(text)
		if err != nil || value != want[0] || math.Abs(rounding-want[1]) > 1e-15 {
			t.Errorf("%q is %v ± %v, %v; want %v", text, value, rounding, err, want)
		}
	}
	for _, text := range []string{"", "a", "1.2.3", "NaN", "Inf", "86 %"} {
		if _, _, err := printed(text); err == nil {
			t.Errorf("%q is a printed number", text)
		}
	}
}

// The verdict follows the printed value: the same row with other values.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name string
		row  Row
		want Verdict
	}{
		{"within rounding", Row{Ours: Exact(.8649), Relation: Equals, Paper: ".86"}, Reproduced},
		{"beyond rounding", Row{Ours: Exact(.8651), Relation: Equals, Paper: ".86"}, NotReproduced},
		{"higher is better", Row{Ours: Exact(.87), Relation: Equals, Paper: ".86", Better: Higher}, Better},
		{"higher is worse", Row{Ours: Exact(.87), Relation: Equals, Paper: ".86", Better: Lower}, NotReproduced},
		{"lower is better", Row{Ours: Exact(.85), Relation: Equals, Paper: ".86", Better: Lower}, Better},
		{"within our error", Row{Ours: Statistic{Value: .88, SE: .01}, Relation: Equals, Paper: ".86"}, Reproduced},
		{"within the paper's error", Row{Ours: Exact(.88), PaperSE: .01, Relation: Equals, Paper: ".86"}, Reproduced},
		{"beyond our error", Row{Ours: Statistic{Value: .89, SE: .01}, Relation: Equals, Paper: ".86"}, NotReproduced},
		{"read off a picture", Row{Ours: Exact(.9), Relation: Equals, Paper: ".86", Slack: .04}, Reproduced},
		{"at the bound", Row{Ours: Exact(1), Relation: AtMost, Paper: "1"}, Reproduced},
		{"above the bound", Row{Ours: Exact(1.01), Relation: AtMost, Paper: "1"}, NotReproduced},
		{"below the bound", Row{Ours: Exact(.99), Relation: AtLeast, Paper: "1"}, NotReproduced},
		{"above the bound within our error", Row{Ours: Statistic{Value: 1.01, SE: .01}, Relation: AtMost, Paper: "1"},
			Reproduced},
		{"below the bound within our error", Row{Ours: Statistic{Value: .99, SE: .01}, Relation: AtLeast, Paper: "1"},
			Reproduced},
		{"below the bound, of one side", Row{Ours: Statistic{Value: .9825, SE: .01}, Relation: AtLeast, Paper: "1"},
			NotReproduced},
		{"below the bound beyond our error", Row{Ours: Statistic{Value: .97, SE: .01}, Relation: AtLeast, Paper: "1"},
			NotReproduced},
		{"nothing said", Row{Ours: Exact(1)}, NoVerdict},
	} {
		if err := c.row.judge(bonferroni(1)); err != nil || c.row.Verdict != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, c.row.Verdict, err, c.want)
		}
	}
	bad := Row{What: "a share", Ours: Exact(math.NaN())}
	if err := bad.judge(2); err == nil || !strings.Contains(err.Error(), "a share") {
		t.Errorf("a row without a number: %v", err)
	}
}

// The interval is Student's: with few repetitions it is wider than the normal one.
func TestFewRepetitions(t *testing.T) {
	for n, want := range map[int]float64{0: 1.959964, 2: 12.7062, 5: 2.776445, 10: 2.262157, 40: 2.022691} {
		_, hi := Statistic{SE: 1, N: n}.Interval()
		if math.Abs(hi-want) > 1e-4 {
			t.Errorf("%d repetitions: half the interval is %v errors, want %v", n, hi, want)
		}
	}
	// With m = 24 rows of ten repetitions and no difference but chance, one table in
	// twenty may have a row that is not reproduced.
	rng := rand.New(rand.NewPCG(1, 2))
	const tables = 500
	wrong := 0
	for range tables {
		p := &Report{}
		for range 24 {
			v := make([]float64, 10)
			for i := range v {
				v[i] = rng.NormFloat64()
			}
			p.Figure("", "mean", Mean(v), "0.000000000", Neither)
		}
		if verdict, err := p.Judge(); err != nil {
			t.Fatal(err)
		} else if verdict == NotReproduced {
			wrong++
		}
	}
	// Three standard errors of a share of .05.
	if share := float64(wrong) / tables; share > .05+3*math.Sqrt(.05*.95/tables) {
		t.Errorf("%v of the tables are not reproduced", share)
	}
}

// With 40 rows a verdict errs as often as with one.
func TestBonferroni(t *testing.T) {
	if p := bonferroni(1); p != .975 {
		t.Errorf("one comparison: %v", p)
	}
	if z := (Statistic{}).quantile(bonferroni(40)); math.Abs(z-3.2272) > 1e-3 {
		t.Errorf("factor of 40 comparisons: %v", z)
	}
	row := func() Row {
		return Row{Ours: Statistic{Value: .63, SE: .05}, Relation: Equals, Paper: ".500"}
	}
	one, many := &Report{Rows: []Row{row()}}, &Report{}
	for range 40 {
		many.Rows = append(many.Rows, row())
	}
	if v, err := one.Judge(); v != NotReproduced || err != nil {
		t.Errorf("a single row 2.6 errors away: %q, %v", v, err)
	}
	if v, err := many.Judge(); v != Reproduced || err != nil {
		t.Errorf("one of 40 rows 2.6 errors away: %q, %v", v, err)
	}
}

func TestReportVerdict(t *testing.T) {
	p := &Report{}
	if _, err := p.Judge(); err == nil {
		t.Error("a report without rows has a verdict")
	}
	p.Show("", "shown", Exact(1))
	if v, err := p.Judge(); v != NoVerdict || err != nil {
		t.Errorf("a report that compares nothing: %q, %v", v, err)
	}
	p.Figure("", "a", Exact(1), "1", Lower)
	if v, _ := p.Judge(); v != Reproduced {
		t.Errorf("one row as printed: %q", v)
	}
	p.Figure("", "b", Exact(1), "3", Lower)
	if v, _ := p.Judge(); v != Better {
		t.Errorf("one row better: %q", v)
	}
	p.Figure("", "c", Exact(5), "3", Lower)
	if v, _ := p.Judge(); v != NotReproduced || p.Count() != (Count{1, 1, 1}) {
		t.Errorf("one row of each kind: %q, %+v", v, p.Count())
	}
}

func TestMean(t *testing.T) {
	e := Mean([]float64{1, 2, 3, 4})
	if e.Value != 2.5 || math.Abs(e.SE-math.Sqrt(5.0/3/4)) > 1e-15 || e.N != 4 {
		t.Errorf("mean of 1…4: %+v", e)
	}
	if s := e.Scaled(-2); s.Value != -5 || s.SE != 2*e.SE {
		t.Errorf("scaled: %+v", s)
	}
}
