package trust

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/internal/codec"
)

// A standingOracle is equations (5) to (8) and what follows them in the package doc, over
// maps, forgetting nobody. Labels are weighted by trust.
type standingOracle struct {
	own              map[string][2]float64
	count            map[string]int
	sum, share       map[string]float64
	late             map[string]bool
	r, p             [2]float64
	rSum, pSum, drip float64
	anchors          float64
}

func oracleRate(t [2]float64, first float64) float64 {
	return min(max((t[0]+10*first)/(t[1]+10), 0), 1)
}

// weigh returns w, and whether it is the drip's.
func (o *standingOracle) weigh(s string, q, common float64) (w, dripped, least float64) {
	heard := o.anchors >= 5
	e, n := oracleRate(o.own[s], oracleRate(o.p, 0.1)), o.own[s][1]+10
	if o.count[s] < 50 {
		n += o.p[1]
	}
	x := e - 1.64*math.Sqrt((e*(1-e)+0.02)/n) - oracleRate(o.r, 0.1)
	if w = math.Pow(max(0, 1-2*max(0, x-0.05)), 2); w < 0.1 {
		w = 0
	}
	others := max(0, o.r[1]-o.share[s])
	if !heard {
		w = max(w, 1-others/20)
	}
	cost := 0.0
	if q >= 0.3 && w < 0.5 {
		cost = 0.25
	} else if w == 0 {
		cost = 1
	}
	if cost > 0 && o.drip >= cost && !heard {
		w, dripped = 1, cost
	}
	late, known := o.late[s], o.count[s] > 0
	if late || !known && o.rSum >= 200 || heard {
		least = 1 / (10 + o.sum[s] + o.pSum)
	}
	if heard {
		least = max(least, 0.05)
	}
	ε := max(common, least)
	ω := Phi(q, min(max(0.45, ε), 5*ε), common)
	if ω < 0.2 && (heard || o.count[s] < 50 && o.own[s][1]+o.p[1] < 30 && others > 60) {
		w, dripped = 0, 0
	}
	return w, dripped, least
}

func (o *standingOracle) observe(s string, anchor bool, p, q, w, dripped float64) {
	heard := o.anchors >= 5
	d, n := 1-q-2*p*(1-p), (1-2*p)*(1-2*p)
	by, counted := w, w
	if dripped > 0 {
		by, counted = 0, 0
		o.drip -= dripped
	}
	if heard {
		counted = 0
	}
	o.anchors *= 0.999
	if anchor {
		counted = 1
		o.anchors += n
	}
	for name := range o.share {
		o.share[name] *= 0.999
	}
	o.share[s] += counted * n
	if o.count[s] == 0 {
		o.late[s] = o.rSum >= 200
	}
	o.rSum += counted * n
	o.r = [2]float64{0.999*o.r[0] + counted*d, 0.999*o.r[1] + counted*n}
	if o.count[s] < 50 {
		o.p = [2]float64{0.99*o.p[0] + d, 0.99*o.p[1] + n}
		o.pSum += n
	}
	own := o.own[s]
	o.own[s] = [2]float64{0.99*own[0] + d, 0.99*own[1] + n}
	o.sum[s] += n
	o.count[s]++
	o.drip = min(2, o.drip+0.02*by)
}

// Reference: the package doc's equations, with honest sources, liars, newcomers and for a
// while an anchor.
func TestStandingFollowsTheEquations(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	labels := New()
	o := &standingOracle{own: map[string][2]float64{}, count: map[string]int{}, sum: map[string]float64{}, share: map[string]float64{}, late: map[string]bool{}}
	policy := Policy{Heads: true, Experts: true, Agreement: true}
	var drips, drops, partial, full int
	for i := range 12_000 {
		source, flip := fmt.Sprint("honest", r.IntN(3)), 0.02
		switch {
		case i > 1500 && i < 4000 && r.IntN(2) == 0:
			source, flip = "liar", 0.9
		case i > 3000 && i < 6000 && r.IntN(3) == 0:
			source, flip = fmt.Sprint("new", i/20), 0.3*float64(i/1000%2)
		case i > 8000 && r.IntN(3) == 0:
			source, flip = "half", 0.3
		}
		role := Ordinary
		if source == "honest2" && i > 10_000 {
			role = Anchor
		}
		spam := r.IntN(2) == 0
		p := 1 / (1 + math.Exp(3*r.NormFloat64()-4))
		if !spam {
			p = 1 - p
		}
		said := spam != (r.Float64() < flip)
		q := p
		if !said {
			q = 1 - p
		}
		label := Label{Source: source, Role: role, Spam: said, Prob: p, Q: q}
		common := labels.FlipRate()
		got := labels.Weigh(label, policy)
		w, dripped, least := 1.0, 0.0, 0.0
		if role == Ordinary {
			w, dripped, least = o.weigh(source, q, common)
		}
		head := max(1e-12, w*Phi(q, max(common, least), common))
		ε := max(common, least)
		expert := w * Phi(q, min(max(0.45, ε), 5*ε), common)
		if math.Abs(got.Standing-w) > 1e-9 || got.dripped != dripped || math.Abs(got.Head-head) > 1e-9 || math.Abs(got.Expert-expert) > 1e-9 {
			t.Fatalf("label %d of %s: %+v, want w = %v, dripped %v, head %v, expert %v", i, source, got, w, dripped, head, expert)
		}
		switch {
		case dripped > 0:
			drips++
		case w == 0:
			drops++
		case w < 1:
			partial++
		default:
			full++
		}
		labels.Observe(label, got)
		o.observe(source, role == Anchor, p, q, w, dripped)
	}
	t.Logf("%d in full, %d partly, %d not at all, %d let in", full, partial, drops, drips)
	if drips == 0 || drops == 0 || partial == 0 {
		t.Error("the stream does not reach every rule")
	}
}

// A source that is alone always counts in full and is never accused, whatever it says.
func TestSoleSourceCountsInFull(t *testing.T) {
	labels, policy := New(), Policy{Agreement: true}
	for i := range 3000 {
		label := Label{Source: "alone", Spam: i < 1500, Q: 0.99, Prob: 0.99}
		if i >= 1500 {
			label.Q = 0.01
		}
		w := labels.Weigh(label, policy)
		if accused := labels.Observe(label, w); accused || w.Standing != 1 || w.Head != 1 || w.Expert != 1 {
			t.Fatalf("label %d: %+v, accused %v", i, w, accused)
		}
	}
}

// A liar loses its weight, is accused, and what it teaches is little. The operator's word
// stands above agreement.
func TestLiarIsAccused(t *testing.T) {
	labels, policy := New(), Policy{Heads: true, Experts: true, BySource: true, Agreement: true}
	say := func(source string, role Role, lie bool) (Weights, bool) {
		label := Label{Source: source, Role: role, Spam: !lie, Prob: 0.99, Q: 0.99}
		if lie {
			label.Q = 0.01
		}
		w := labels.Weigh(label, policy)
		return w, labels.Observe(label, w)
	}
	for range 300 {
		if w, accused := say("honest", Ordinary, false); w.Standing != 1 || accused {
			t.Fatalf("honest: %+v, accused %v", w, accused)
		}
	}
	first := 0
	for i := range 40 {
		w, accused := say("liar", Ordinary, true)
		if accused && first == 0 {
			first = i + 1
		}
		if i >= 20 && w.Standing > 0 && w.dripped == 0 {
			t.Errorf("lie %d: w = %v", i, w.Standing)
		}
	}
	if first == 0 || first > 10 {
		t.Errorf("the liar is accused after %d labels", first)
	}
	if w, accused := say("liar", Anchor, true); w.Standing != 1 || accused {
		t.Errorf("an anchor: %+v, accused %v", w, accused)
	}
	if w, accused := say("honest", Muted, false); w.Standing != 0 || w.Expert != 0 || !(w.Head > 0) || accused {
		t.Errorf("a muted source: %+v, accused %v", w, accused)
	}
}

// Labels of a muted source change nothing for others. When it may speak again, it has the
// standing that its labels have earned it meanwhile.
func TestMutedSourceChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	policy := Policy{Heads: true, Experts: true, BySource: true, Agreement: true}
	with, without := New(), New()
	for i := range 3000 {
		spam := r.IntN(2) == 0
		label := Label{Source: fmt.Sprint("s", i%3), Spam: spam != (r.IntN(20) == 0), Prob: 0.05, Q: 0.05, Event: uint64(i + 1)}
		if spam {
			label.Prob = 0.95
		}
		if label.Spam == spam {
			label.Q = 0.95
		}
		if i > 10 && i%3 == 2 {
			label.Source = fmt.Sprint("new", i/30)
		}
		got, want := with.Weigh(label, policy), without.Weigh(label, policy)
		if got != want {
			t.Fatalf("label %d of %s: %+v beside a muted source, %+v without", i, label.Source, got, want)
		}
		if with.Observe(label, got) != without.Observe(label, want) {
			t.Fatalf("label %d of %s is accused beside a muted source or without, not both", i, label.Source)
		}
		for range 10 * min(1, i/10) {
			lie := Label{Source: "liar", Role: Muted, Spam: !spam, Prob: label.Prob, Q: 0.05}
			with.Observe(lie, with.Weigh(lie, policy))
		}
		if i%100 == 0 {
			from := codec.NewReader(written(with), nil)
			with = new(Labels)
			with.Read(from, uint64(i+1)*11)
			if err := from.Close(); err != nil {
				t.Fatalf("after label %d: %v", i, err)
			}
		}
	}
	lie := Label{Source: "liar", Spam: true, Prob: 0.05, Q: 0.05}
	if w := with.Weigh(lie, policy); w.Standing != 0 && w.dripped == 0 {
		t.Errorf("after 29,900 lies the liar has %+v", w)
	}
}

// A label that replaces another counts with at most the weight of that one, and with at most
// the present weight of its source.
func TestReplacedLabelKeepsItsWeight(t *testing.T) {
	labels, policy := New(), Policy{Heads: true, Experts: true, Agreement: true}
	say := func(label Label) Weights {
		w := labels.Weigh(label, policy)
		labels.Observe(label, w)
		return w
	}
	for range 300 {
		say(Label{Source: "honest", Spam: true, Prob: 0.99, Q: 0.99})
	}
	for given, want := range map[float64]float64{0: 0, 0.3: 0.3, 1: 1} {
		w := labels.Weigh(Label{Source: "honest", Spam: true, Prob: 0.99, Q: 0.99, Replaces: true, Given: given}, policy)
		if w.Standing != want || math.Abs(w.Expert-want) > 1e-3 || !(w.Head > 0) {
			t.Errorf("a label that replaces one of weight %v: %+v", given, w)
		}
	}
	for range 60 {
		say(Label{Source: "sleeper", Spam: true, Prob: 0.99, Q: 0.99})
	}
	for range 90 {
		say(Label{Source: "sleeper", Prob: 0.99, Q: 0.01})
	}
	replaced := Label{Source: "sleeper", Prob: 0.99, Q: 0.01, Replaces: true, Given: 1}
	if w := labels.Weigh(replaced, policy); w.Standing != 0 && w.dripped == 0 {
		t.Errorf("a sleeper replaces an honest label by a lie: %+v", w)
	}
	replaced.Given = 0
	if w := labels.Weigh(replaced, policy); w.Standing != 0 || w.dripped != 0 {
		t.Errorf("the drip lets in what replaces a label of weight 0: %+v", w)
	}
}
