package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"hamlet/algos/blr"
	"hamlet/algos/feature"
	"hamlet/algos/internal/codec"
	"hamlet/algos/sites"
	"hamlet/algos/text"
)

// The inputs, their order and their prior are part of what a model's bytes mean: here
// they are written out.
func TestInputsAreThese(t *testing.T) {
	type input struct {
		name           string
		mean, variance float64
	}
	facts := func(dst []input) []input {
		for _, name := range []string{"body bytes", "text bytes", "html", "parts", "attachments", "upper case", "digits", "exclamation and dollar signs"} {
			dst = append(dst, input{"fact: " + name, 0, 0.4})
		}
		return dst
	}
	var names []input
	for _, name := range []string{"", " (naive Bayes)", " (naive Bayes), loudest", " (naive Bayes), difference of rates", ", damped"} {
		names = append(names, input{"hashed names" + name, 0.16, 0.08})
	}
	for _, tt := range []struct {
		name string
		cfg  Config
		kind kind
		want []input
	}{
		{"lean", Config{TextExperts: []string{text.Lean}}, ofText, facts([]input{
			{"bias", 0, 0.1}, {"header words", 0.2, 0.1}, {"text 5-grams", 0.2, 0.1}, {"text words", 0.2, 0.1},
			{"opening 4-grams (naive Bayes)", 0.2, 0.1},
		})},
		{"two lean experts and the rate of spam", Config{TextExperts: []string{text.LeanTextWords, text.LeanHeaderWords}, SpamShare: true}, ofText,
			append(facts([]input{{"bias", 0, 0.1}, {"text words", 0.4, 0.2}, {"header words", 0.4, 0.2}}), input{"recent share of spam", 0, 0.4})},
		{"experts with products", Config{TextExperts: []string{text.TextWords, text.TextBytes}}, ofText,
			append(facts([]input{{"bias", 0, 0.1}, {"text words", 0.4, 0.25 / 3}, {"text bytes", 0.4, 0.25 / 3}, {"text bytes, mean", 0.4, 0.25 / 3}}),
				input{"text words", 0, 0.01}, input{"text words", 0, 0.01},
				input{"text bytes", 0, 0.01}, input{"text bytes, mean", 0, 0.01}, input{"text bytes", 0, 0.01}, input{"text bytes, mean", 0, 0.01})},
		{"vector", Config{}, ofVector, []input{
			{"bias", 0, 0.3}, names[0], names[1], names[2], names[3], names[4], {"count of hashed names", 0, 0.3},
		}},
		{"dense", Config{Dense: []string{"b", "a"}}, ofVector, []input{
			{"bias", 0, 0.3}, {"a", 0, 0.3}, {"b", 0, 0.3},
			names[0], names[1], names[2], names[3], names[4], {"count of hashed names", 0, 0.3},
		}},
	} {
		l := newOf(t, tt.cfg).specs[tt.kind].layout
		var got []input
		for i, name := range l.names {
			got = append(got, input{name, l.prior.mean[i], 1 / l.prior.precision[i]})
		}
		products := 0
		for _, g := range l.groups {
			if g.product {
				products += len(g.names)
			}
		}
		if fmt.Sprintf("%.9v", got) != fmt.Sprintf("%.9v", tt.want) || l.dim() != len(tt.want) || l.raw != len(tt.want)-1-products {
			t.Errorf("%s: %v inputs, %d for ensembles\ngot  %v\nwant %v", tt.name, l.dim(), l.raw, got, tt.want)
		}
	}
}

// Whatever computes with inputs takes them from one layout: the head, the second head,
// ensembles, the noise alarm, sites, explanations; and fill writes each of them, in
// its place, whatever the body before left there.
func TestEveryInputIsFilled(t *testing.T) {
	cfg := Config{TableBits: 8, Dense: []string{"a", "b"}, SpamShare: true, SecondHead: 0.99, Window: 50, Rebuild: 50, TextEnsembles: []string{"adaboost"}}
	m := newOf(t, cfg)
	apply(t, m, circles(120, 1)...)
	apply(t, m, letters(120, 1)...)
	p := m.NewPredictor()
	for _, ex := range slices.Concat(circles(20, 2), letters(20, 2)) {
		s := m.submodel(&ex.Body)
		in := p.vectorizer.byKind[s.kind]
		for _, scratch := range [][]float64{in.x, in.inputs} {
			for i := range scratch {
				scratch[i] = math.NaN()
			}
		}
		if got := p.vectorizer.read(&ex.Body, s); got != in {
			t.Fatal("read into other features")
		}
		d := s.layout.dim()
		if len(in.x) != d || s.head.Dim() != d || s.stack.Second().Dim() != d || s.sites.Inputs != d || len(in.inputs) != s.layout.raw {
			t.Fatalf("%d inputs: x %d, head %d, second head %d, sites %d; ensembles %d", d,
				len(in.x), s.head.Dim(), s.stack.Second().Dim(), s.sites.Inputs, len(in.inputs))
		}
		var products []bool
		for _, g := range s.layout.groups {
			for range g.names {
				products = append(products, g.product)
			}
		}
		at := 0
		for i, name := range s.layout.names {
			if math.IsNaN(in.x[i]) {
				t.Errorf("%s is not filled", name)
			}
			if name == "bias" || products[i] {
				continue
			}
			want := in.x[i]
			if k := slices.Index(cfg.Dense, name); k >= 0 {
				want = feature.SignedLog(ex.Body.Vector[k].Value)
			}
			if got := in.inputs[at]; got != float64(float32(want)) {
				t.Errorf("ensembles see %s as %v, want %v", name, got, float32(want))
			}
			at++
		}
		ensembles := 0
		if s.stack.Serves() {
			ensembles = len(s.stack.Kinds())
		}
		if _, why, err := p.Explain(&ex.Body); err != nil || len(why) != 1+s.layout.raw+ensembles || (s.kind == ofVector) != (ensembles > 0) {
			t.Errorf("%d reasons for %d inputs and %d ensembles, %v", len(why), 1+s.layout.raw, ensembles, err)
		}
	}
}

// lean is a naive Bayes of one input.
var lean = text.NaiveBayesConfig{Shrinkage: 10, Margin: 7, Inputs: 1, Surprise: true}

// A new expert is one registration: this one gives three inputs, of which one is an
// opinion, and shares a list with another expert.
type counter struct{ *text.NaiveBayes }

func (c counter) Score(v *text.View) text.Score {
	s := c.NaiveBayes.Score(v)
	s.Inputs[1], s.Inputs[2] = 0.5, s.Surprise/20
	return s
}

// Terms explains the first input alone.
func (c counter) Terms(dst []text.Term, v *text.View) []text.Term {
	for _, term := range c.NaiveBayes.Terms(nil, v) {
		dst = append(dst, text.Term{term[0]})
	}
	return dst
}

func TestRegisteringAnExpertIsEnough(t *testing.T) {
	registered := text.Messages
	defer func() { text.Messages = registered }()
	text.Messages = append(slices.Clone(registered), &text.Entry{
		Name: "counter", Reads: text.ByName(text.TextWords).Reads,
		Inputs: []text.Input{{Name: "counter", Opinion: true}, {Name: "counter: half"}, {Name: "counter: surprise"}},
		New:    func(table text.Column) text.Expert { return counter{text.NewNaiveBayes(table, lean)} }, Size: text.NaiveBayesSize,
		Surprise: true, Counts: true, Mean: 0.8, Variance: 0.4,
	})
	cfg := Config{TableBits: 8, TextExperts: []string{text.TextWords, "counter"}}
	all := letters(300, 3)
	m := newOf(t, cfg)
	apply(t, m, all...)
	if in := m.own.vectorizer.byKind[ofText]; len(in.lists) != 1 || in.views[0] != in.views[1] {
		t.Errorf("two experts of one list have %d lists", len(in.lists))
	}
	if d := m.submodels[ofText].head.Dim(); d != 1+1+3+8+2 {
		t.Errorf("%d inputs, want 15", d)
	}
	again, err := Restore(image(t, m))
	if err != nil {
		t.Fatal(err)
	}
	_, why, err := again.NewPredictor().Explain(&all[0].Body)
	for _, name := range []string{"counter", "counter: half", "counter: surprise"} {
		if err != nil || !slices.ContainsFunc(why, func(c Contribution) bool { return c.Name == name }) {
			t.Errorf("no reason %q in %v, %v", name, why, err)
		}
	}
	for _, ex := range all {
		apply(t, again, unlearn("u"+ex.ID, ex))
	}
	left, err := again.submodels[ofText].experts[1].AppendBinary(nil)
	fresh, err2 := text.NewNaiveBayes(text.NewColumn(9), lean).AppendBinary(nil)
	if err != nil || err2 != nil || !slices.Equal(left, fresh) {
		t.Errorf("something is left of what was withdrawn: %v, %v", err, err2)
	}
	if _, err := New(Config{TextExperts: []string{"bigrams"}}); err == nil || !slices.Contains(text.Names(), "counter") {
		t.Errorf("error %v, names %v", err, text.Names())
	}
}

// The trust of a label depends on the head and on the mean of the full experts' inputs. That
// of a label of the lean experts depends on the head alone.
func TestWitnesses(t *testing.T) {
	for set, share := range map[string]float64{text.Full: 0.25, text.Lean: 0} {
		m := newOf(t, Config{TableBits: 8, TextExperts: []string{set}})
		all := letters(200, 5)
		apply(t, m, all...)
		for _, ex := range all[:50] {
			s := m.submodel(&ex.Body)
			in := m.own.vectorizer.read(&ex.Body, s)
			predict(s, in)
			sum, n := 0.0, 0.0
			for k, e := range s.entries {
				for j := range e.Inputs {
					sum += early(e.EarlyGain, s) * in.scores[k].Inputs[j]
					n++
				}
			}
			want := (1-share)*in.head.LogOdds + share*sum/n
			if got := s.layout.witness(in); math.Abs(got-want) > 1e-12*(1+math.Abs(want)) {
				t.Errorf("%s: log-odds %v, want %v", set, got, want)
			}
		}
	}
}

// An input starts at 1 + gain times the expert's answer and ends at the answer, to the bit.
func TestEarlyGain(t *testing.T) {
	for events := range uint64(2000) {
		s := &submodel{events: events}
		got, want := early(2, s), 1+2*math.Exp(-float64(events)/30)
		if math.Abs(got-want) > 1e-15*want {
			t.Fatalf("after %d events the factor is %v, want %v", events, got, want)
		}
		if events > 0 && got > early(2, &submodel{events: events - 1}) {
			t.Fatalf("after event %d the factor grows", events)
		}
		if early(0, s) != 1 {
			t.Fatalf("without a gain the factor is %v", early(0, s))
		}
	}
	if late := early(2, &submodel{events: lateEvents}); late != 1 || early(2, nil) != 1 {
		t.Errorf("late the factor is %v, without events %v; want 1", late, early(2, nil))
	}
	if just := 1 + math.Exp(4)*math.Exp(-float64(lateEvents)/earlyEvents); just != 1 {
		t.Errorf("at event %d the factor jumps from %v", lateEvents, just)
	}

	// The head reads the answer times the factor; its products and lean experts do not.
	for _, tt := range []struct {
		set  string
		gain float64
	}{{text.TextWords, 2}, {text.LeanTextWords, 0}} {
		m := newOf(t, Config{TableBits: 8, TextExperts: []string{tt.set}})
		events := letters(12, 1)
		apply(t, m, events[:10]...)
		body := &events[11].Body
		s := m.submodel(body)
		in := m.NewPredictor().vectorizer.read(body, s)
		answer := in.scores[0].Inputs[0]
		if answer == 0 {
			t.Fatalf("%s: the expert says nothing", tt.set)
		}
		if want := answer * (1 + tt.gain*math.Exp(-10./30)); math.Abs(in.x[1]-want) > 1e-14*math.Abs(want) {
			t.Errorf("%s: the head reads %v, want %v", tt.set, in.x[1], want)
		}
		if tt.gain != 0 {
			html := in.facts[feature.FactHTML]
			if d := s.layout.dim(); in.x[d-2] != html*answer {
				t.Errorf("%s: the product with HTML is %v, want %v", tt.set, in.x[d-2], html*answer)
			}
		}
	}
}

// Sites hold an expert's largest input at the first event, and are read again. If a gain
// grew beyond what package sites reads, a young model could not be restored.
func TestSitesHoldEarlyInputs(t *testing.T) {
	for _, spec := range newOf(t, Config{TableBits: 8, TextExperts: text.Names()}).specs {
		own := newKindExtract(spec)
		own.frozen = 10
		largest := &features{kindExtract: own, scores: make([]text.Score, len(spec.entries)), x: make([]float64, spec.layout.dim()), inputs: make([]float64, spec.layout.raw)}
		for k := range largest.scores {
			largest.scores[k].Inputs = [text.MaxInputs]float64{10, -10, 10} // text.Score's bound
		}
		s := newSubmodel(spec, Alarms{Off: true})
		spec.layout.fill(largest, s)
		ring := sites.New(spec.shape())
		ring.Add(sites.Site{
			Head: blr.Site{X: largest.x, Y: 1, Phi: 1}, Counted: make([]float64, spec.shape().Counters),
		})
		w := codec.NewWriter(nil)
		ring.Write(w)
		b, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		r := codec.NewReader(b, nil)
		again := sites.Read(r, spec.shape())
		if err := r.Close(); err != nil || !slices.Equal(again.Head(0).X, largest.x) {
			t.Errorf("%s: inputs %v: %v", bodies[spec.kind], largest.x, err)
		}
	}
}
