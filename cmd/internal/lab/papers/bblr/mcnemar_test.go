package bblr

import (
	"math"
	"testing"

	"hamlet/algos/lab/mcnemar"

	"hamlet/cmd/internal/lab/experiment"
)

// The pooled z is that of the sums of the counts. Its error is that of the differences
// between repetitions.
func TestPooled(t *testing.T) {
	tests := []mcnemar.Test{{Only1: 12, Only2: 5}, {Only1: 3, Only2: 9}, {Only1: 20, Only2: 4}}
	e := pooled(tests)
	// The differences 7, −6 and 16 have the variance 122⅓.
	wantZ, wantSE := (35.0-18)/math.Sqrt(53), math.Sqrt(3*(367./3)/53)
	if math.Abs(e.Value-wantZ) > 1e-12 || math.Abs(e.SE-wantSE) > 1e-12 {
		t.Errorf("z is %v ± %v, want %v ± %v", e.Value, e.SE, wantZ, wantSE)
	}
	if e := pooled(make([]mcnemar.Test, 3)); e.Value != 0 {
		t.Errorf("z without differences is %v, want 0", e.Value)
	}
}

// A z as large as the paper's is reproduced, one of the other sign is not.
func TestTable8Verdicts(t *testing.T) {
	for _, c := range []struct {
		better, worse int
		want          experiment.Verdict
	}{{160, 100, experiment.Reproduced}, {100, 160, experiment.NotReproduced}, {400, 100, experiment.Better}} {
		all := make([]comparison, mcNemarRuns)
		for i := range all { // in all ten, z is 3.7 for 160 and 100
			m := mcnemar.Test{Only1: c.better/10 + i%2, Only2: c.worse/10 + i%2}
			all[i] = comparison{LR: m, SVM: m}
		}
		p := &experiment.Report{}
		addPooled(p, true, all)
		if _, err := p.Judge(); err != nil {
			t.Fatal(err)
		}
		for _, row := range p.Rows {
			if row.What == "z, BBLR3 against SVM" && row.Verdict != c.want {
				t.Errorf("z = %.2f ± %.2f beside %s: %q, want %q", row.Ours.Value, row.Ours.SE, row.Paper,
					row.Verdict, c.want)
			}
		}
	}
}
