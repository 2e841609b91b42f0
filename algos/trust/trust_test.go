package trust

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"hamlet/algos/internal/codec"
)

// Reference: equations (1) to (4), over maps, forgetting nobody.
func TestLabelsFollowTheEquations(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	labels, ε, π := New(), 0.1, 0.5
	doubts, count := map[string]float64{}, map[string]float64{}
	for i := range 2000 {
		source := fmt.Sprint("s", r.IntN(3))
		q := r.Float64()
		of := ε
		if len(count) > 1 && count[source] > 0 {
			of = max(0.0003, (20*ε+doubts[source])/(20+count[source]))
		}
		phi := func(e float64) float64 { return max(math.Pow(2*ε, 8), (1-e)*q/((1-e)*q+e*(1-q))) }
		want := Weights{Phi: phi(of), Head: phi(ε), Expert: phi(min(max(0.45, of), 5*of))}
		label := Label{Source: source, Spam: r.IntN(3) == 0, Q: q, Prob: 0.5}
		got := labels.Weigh(label, Policy{Heads: true, Experts: true, BySource: true})
		for k, v := range [][2]float64{{got.Phi, want.Phi}, {got.Head, want.Head}, {got.Expert, want.Expert}} {
			if math.Abs(v[0]-v[1]) > 1e-12 {
				t.Fatalf("label %d, weight %d: %v, want %v", i, k, v[0], v[1])
			}
		}
		if w := labels.Weigh(label, Policy{}); w.Head != 1 || w.Expert != 1 || math.Abs(w.Phi-phi(ε)) > 1e-12 {
			t.Fatalf("label %d without trust: %+v", i, w)
		}

		labels.Observe(label, got)
		ε = min(max(0.0003, ε+max(0.01, 1/(float64(i)+50))*(1-got.Phi-ε)), 0.5)
		doubts[source] = 0.99*doubts[source] + 1 - got.Phi
		count[source] = 0.99*count[source] + 1
		π *= 0.99
		if label.Spam {
			π += 0.01
		}
		if math.Abs(labels.FlipRate()-ε) > 1e-12 || math.Abs(labels.SpamRateLogit()-math.Log((π+.01)/(1-π+.01))) > 1e-9 {
			t.Fatalf("label %d: ε = %v, want %v; logit of π %v at π = %v", i, labels.FlipRate(), ε, labels.SpamRateLogit(), π)
		}
	}
}

func written(l *Labels) []byte {
	w := codec.NewWriter(nil)
	l.Write(w)
	b, _ := w.Finish()
	return b
}

// Labels that are read go on as those that were written. A full table of sources
// replaces the one that has been silent longest.
func TestReadGoesOn(t *testing.T) {
	l := New()
	for i := range maxSources + 300 {
		l.Observe(Label{Source: fmt.Sprint("s", max(0, i-200)), Spam: i%2 == 0, Prob: 0.9}, Weights{Phi: 0.5, Standing: 1})
		if i%700 > 0 {
			continue
		}
		var back Labels
		r := codec.NewReader(written(l), nil)
		back.Read(r, uint64(i+1))
		if err := r.Close(); err != nil || !bytes.Equal(written(&back), written(l)) {
			t.Fatalf("after %d labels: %v", i+1, err)
		}
		l = &back
	}
	if len(l.sources.known) != maxSources {
		t.Errorf("%d sources have rates, want %d", len(l.sources.known), maxSources)
	}
	if ε := l.sources.rate(l.sources.find("s0"), l.flipRate); ε != l.flipRate {
		t.Errorf("a source that was replaced has the rate %v, want the common %v", ε, l.flipRate)
	}
	if ε := l.sources.rate(l.sources.find("s4099"), l.flipRate); ε == l.flipRate {
		t.Error("the newest source has no rate of its own")
	}
}

func TestReadRefuses(t *testing.T) {
	good := func() *Labels {
		l := New()
		l.Observe(Label{Source: "a", Spam: true, Prob: 0.9}, Weights{Phi: 0.9, Standing: 1})
		l.Observe(Label{Source: "b", Prob: 0.9}, Weights{Phi: 0.9, Standing: 1})
		return l
	}
	for name, c := range map[string]struct {
		change func(l *Labels)
		want   string
	}{
		"a flip rate above ½":         {func(l *Labels) { l.flipRate = 0.51 }, "flip rate"},
		"a flip rate of NaN":          {func(l *Labels) { l.flipRate = math.NaN() }, "flip rate"},
		"a rate of spam of 1":         {func(l *Labels) { l.spamRate = 1 }, "rate of spam"},
		"a source twice":              {func(l *Labels) { l.sources.known[1].key = l.sources.known[0].key }, "twice"},
		"a label of the future":       {func(l *Labels) { l.sources.known[1].last = 2 }, "source 1"},
		"more doubts than labels":     {func(l *Labels) { l.sources.known[0].doubts = 3 }, "source 0"},
		"doubts of −0":                {func(l *Labels) { l.sources.known[0].doubts = math.Copysign(0, -1) }, "source 0"},
		"more labels than there were": {func(l *Labels) { l.sources.known[1].count = 3 }, "source 1"},
		"no label":                    {func(l *Labels) { l.sources.known[1].count = 0 }, "source 1"},
		"evidence of no label":        {func(l *Labels) { l.sources.known[0].tally.evidence = 1.5 }, "source 0"},
		"forgotten by less":           {func(l *Labels) { l.sources.known[0].slow.evidence = 0.9 }, "source 0"},
		"the key of another name":     {func(l *Labels) { l.sources.known[0].key++ }, "not its name's"},
		"more weighed than labels":    {func(l *Labels) { l.standing.weighed = 3 }, "standing"},
		"a long name":                 {func(l *Labels) { l.sources.known[0].name = strings.Repeat("n", mostName+1) }, "source 0"},
		"flips of infinity":           {func(l *Labels) { l.standing.reference.flips = math.Inf(1) }, "want a finite one"},
		"a reference of nobody":       {func(l *Labels) { l.standing.referenceSum = 3 }, "standing"},
		"newcomers of nobody":         {func(l *Labels) { l.standing.newcomers.evidence = -1 }, "standing"},
		"too many drips":              {func(l *Labels) { l.standing.drip = 2.5 }, "standing"},
		"more sources than labels": {func(l *Labels) {
			l.sources.known = append(l.sources.known, source{key: 1, labels: 1, count: 1})
		}, "3 sources of 2 labels"},
	} {
		l := good()
		c.change(l)
		r := codec.NewReader(written(l), nil)
		new(Labels).Read(r, 2)
		if err := r.Close(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	b := written(good())
	for n := range b {
		r := codec.NewReader(b[:n], nil)
		if new(Labels).Read(r, 2); r.Close() == nil {
			t.Errorf("%d of %d bytes: no error", n, len(b))
		}
	}
}
