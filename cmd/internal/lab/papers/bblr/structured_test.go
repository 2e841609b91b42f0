package bblr

import (
	"math/rand/v2"
	"testing"

	"hamlet/cmd/internal/lab/experiment"
)

// The smooth loss lets neighbours outvote an outlier, where logistic regression does not:
// table 13's claim on one repetition of few pages. A trial is percent and nats.
func TestSmallTrial(t *testing.T) {
	s := settings[0]
	s.n = 120
	got, err := s.crossValidate(t.Context(), rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for m, name := range modelNames {
		if !(got.Joint[m] > 40 && got.Joint[m] <= 100 && got.Loss[m] > 0) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if !(got.Joint[bblr3] > got.Joint[mem] && got.Joint[bblr3] > got.Alone[bblr3]) {
		t.Errorf("BBLR3 is right in %.1f %% alone and in %.1f %% jointly, MEM in %.1f %%", got.Alone[bblr3],
			got.Joint[bblr3], got.Joint[mem])
	}
	if d := got.TestJoint[bblr3]; d.Only1 <= d.Only2 {
		t.Errorf("McNemar's counts are %+v, want more for MEM", d)
	}
}

func TestFigure6(t *testing.T) {
	e := figure6
	n := experiment.Runner{Data: experiment.NewData("nowhere"), Seed: 1, Cores: 1, Code: "test"}
	out, err := n.Run(t.Context(), []*experiment.Experiment{&e})
	if err != nil {
		t.Fatal(err)
	}
	if out[0].Err != nil || out[0].Verdict != experiment.Reproduced {
		t.Errorf("%v, verdict %q, want reproduced", out[0].Err, out[0].Verdict)
	}
}
