package model

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/eval"
	"hamlet/algos/feature"
	"hamlet/algos/text"
)

// personalThree is what the help recommends.
var personalThree = []string{text.HeaderWords, text.Text5Grams, text.TextWords}

// newsletters returns n messages to three tenants. a and b label newsletters, which are
// alike, in opposite ways; c gets none. All agree on pills and meetings.
func newsletters(n int, seed uint64) []Example {
	r := rand.New(rand.NewPCG(seed, 11))
	all := make([]Example, n)
	for i := range all {
		tenant := []string{"a", "b", "c"}[r.IntN(3)]
		kind := []string{"pill", "meet", "news"}[r.IntN(3)]
		if tenant == "c" && kind == "news" {
			kind = "meet"
		}
		var b strings.Builder
		for range 8 + r.IntN(12) {
			word := "w"
			if r.IntN(3) > 0 {
				word = kind
			}
			fmt.Fprintf(&b, "%s%d ", word, r.IntN(5))
		}
		body := []byte(b.String())
		all[i] = Example{
			ID: fmt.Sprint("n", i), Source: "desk", Spam: kind == "pill" || kind == "news" && tenant == "b",
			Body: Body{Tenant: tenant, Message: &feature.Message{Head: []byte("from: " + kind + "@example.org\n"), Body: body, BodyBytes: len(body)}},
		}
	}
	return all
}

// newsletterTo returns a newsletter to a tenant.
func newsletterTo(tenant string) *Body {
	body := []byte("news0 news1 news2 news3 news4 w1 w2")
	return &Body{Tenant: tenant, Message: &feature.Message{Head: []byte("from: news@example.org\n"), Body: body, BodyBytes: len(body)}}
}

// Without personal experts no input depends on the tenant, nothing is salted, and a model's
// parts are the same bytes whoever the mail is for. (TestGolden of cmd/hamlet shows that
// they are the bytes from before there were personal experts.)
func TestWithoutPersonalExpertsTenantsAreNotRead(t *testing.T) {
	cfg := Config{TableBits: 8, TextExperts: []string{text.Lean}, SecondHead: 0.99, TextEnsembles: []string{"adaboost"}, Window: 50, Rebuild: 50}
	many, one := newOf(t, cfg), newOf(t, cfg)
	for _, ex := range newsletters(200, 1) {
		a := apply(t, many, ex)
		ex.Body.Tenant = "one"
		if b := apply(t, one, ex); a.Prediction != b.Prediction {
			t.Fatalf("%s: %+v to its tenant, %+v to another", ex.ID, a.Prediction, b.Prediction)
		}
	}
	for section := range sectionCount {
		if section == sectionSeen || section == sectionSites { // they hold hashes of (tenant, source, id)
			continue
		}
		a, err1 := many.appendSection(nil, section)
		b, err2 := one.appendSection(nil, section)
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("section %d differs between tenants: %v, %v", section, err1, err2)
		}
	}
	for _, l := range many.own.vectorizer.byKind[ofText].lists {
		if l.from != nil || l.Salts != nil {
			t.Error("a list is salted")
		}
	}
	if strings.Contains(string(image(t, many)), "personal") {
		t.Error("the bytes mention personal experts")
	}
}

// Tenants who label the same newsletters in opposite ways are both answered well.
func TestPersonalExpertsSeparateTenants(t *testing.T) {
	loss := func(personal []string) float64 {
		m := newOf(t, Config{TableBits: 14, PersonalExperts: personal})
		var tally, n = 0.0, 0
		for i, ex := range newsletters(900, 2) {
			p := apply(t, m, ex).Prediction
			if i >= 300 {
				tally += eval.LogLoss(ex.Spam, p.LogOdds)
				n++
			}
		}
		return tally / float64(n)
	}
	common, personal := loss(nil), loss(personalThree)
	if !(personal < common/4) {
		t.Errorf("log loss %.4f with personal experts, %.4f without; want a quarter at most", personal, common)
	}
}

// An explanation names inputs, never words, and the inputs are the same for every tenant.
// To a tenant who has labelled nothing, personal experts say exactly nothing of words that
// others have labelled.
func TestExplanationsShowNoOtherTenantsWords(t *testing.T) {
	m := newOf(t, Config{TextExperts: []string{text.Lean}, PersonalExperts: personalThree})
	apply(t, m, newsletters(400, 3)...)
	names := newOf(t, m.cfg).specs[ofText].layout.names
	for tenant, knows := range map[string]bool{"a": true, "b": true, "c": false, "": false, "stranger": false} {
		_, why, err := m.NewPredictor().Explain(newsletterTo(tenant))
		if err != nil {
			t.Fatal(err)
		}
		personal := 0
		for _, c := range why {
			if !slices.Contains(names, c.Name) || strings.Contains(c.Name, "news") {
				t.Errorf("to %q: the reason %q is no input", tenant, c.Name)
			}
			if !strings.HasSuffix(c.Name, "(personal)") {
				continue
			}
			personal++
			// c has labelled other mail with the words w0 to w4.
			if silent := c.Contribution == 0 && c.SD == 0; silent && knows || !silent && tenant != "c" && !knows {
				t.Errorf("to %q: %s adds %v ± %v", tenant, c.Name, c.Contribution, c.SD)
			}
		}
		if personal != len(personalThree) {
			t.Errorf("to %q: %d personal reasons, want %d", tenant, personal, len(personalThree))
		}
	}
}

// The personal experts answer a tenant exactly as experts do that have learnt this
// tenant's mail only, over common indices, while no two features meet in a slot. The 800
// features of three tenants do not meet in 2^20 slots, or the test fails.
func TestPersonalAnswersAreOfOneTenant(t *testing.T) {
	cfg := Config{TableBits: 20, LabelTrust: TrustNone, TextExperts: []string{text.LeanTextWords}, PersonalExperts: personalThree, Alarms: Alarms{Off: true}}
	m := newOf(t, cfg)
	// The oracle: an expert of its own for each tenant, over the common indices.
	type own struct{ experts []text.Expert }
	tenants := map[string]own{}
	entries := byName(personalThree)
	h := [2]*feature.Hasher{feature.NewHasher(20), feature.NewHasher(21)}
	for _, ex := range newsletters(250, 4) {
		o, ok := tenants[ex.Body.Tenant]
		if !ok {
			for _, e := range entries {
				o.experts = append(o.experts, e.New(text.NewColumn(20+e.Reads.Bits)))
			}
			tenants[ex.Body.Tenant] = o
		}
		parts := &text.Parts{Head: ex.Body.Message.AppendH(nil, nil), Text: ex.Body.Message.AppendT(nil)}
		var want []text.Score
		for k, e := range entries {
			var v text.View
			e.Reads.Read(h[e.Reads.Bits], &v, parts)
			score := o.experts[k].Score(&v)
			want = append(want, score)
			o.experts[k].Learn(&v, score, ex.Spam, 1)
		}
		apply(t, m, ex)
		if got := m.own.vectorizer.byKind[ofText].scores[len(m.cfg.TextExperts):]; !slices.Equal(got, want) {
			t.Fatalf("%s: personal answers %+v, want %+v", ex.ID, got, want)
		}
	}
}

// A model with personal experts that is saved, restored and continued equals one that never
// stopped; tables of a wrong length are refused.
func TestPersonalExpertsAreRestored(t *testing.T) {
	cfg := Config{TableBits: 9, TextExperts: []string{text.Lean}, PersonalExperts: append(personalThree, text.TextWordsBayes), SecondHead: 0.99}
	all := newsletters(300, 5)
	whole, half := newOf(t, cfg), newOf(t, cfg)
	apply(t, whole, all...)
	apply(t, half, all[:150]...)
	b := image(t, half)
	again, err := Restore(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(image(t, again), b) {
		t.Error("restored, it has other bytes")
	}
	apply(t, again, all[150:]...)
	if !bytes.Equal(image(t, again), image(t, whole)) {
		t.Error("continued, it is not what never stopped")
	}
	var section sections
	if section, err = split(b); err != nil {
		t.Fatal(err)
	}
	short := section
	short[sectionTables] = short[sectionTables][8:]
	if _, err := restoreSubmodel(&short, again.specs[ofText], again.cfg.Alarms, nil); err == nil {
		t.Error("tables of a slot less are taken")
	}
	without := newOf(t, Config{TableBits: 9, TextExperts: []string{text.Lean}, SecondHead: 0.99})
	if _, err := restoreSubmodel(&section, without.specs[ofText], without.cfg.Alarms, nil); err == nil {
		t.Error("a model without personal experts takes their tables")
	}
}

// Withdrawals undo what personal experts counted, by the tenant's name, in any order.
func TestPersonalExpertsAreWithdrawn(t *testing.T) {
	cfg := Config{TableBits: 8, TextExperts: []string{text.LeanTextWords}, PersonalExperts: []string{text.TextWordsBayes, text.HeaderWords}}
	m := newOf(t, cfg)
	all := newsletters(200, 6)
	apply(t, m, all...)
	personal := slices.IndexFunc(m.specs[ofText].entries, func(e *text.Entry) bool { return e.Counts })
	bytesOf := func() []byte {
		b, err := m.submodels[ofText].experts[personal].AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	entry := m.specs[ofText].entries[personal]
	fresh, err := entry.New(text.NewColumn(8 + entry.Reads.Bits)).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(bytesOf(), fresh) {
		t.Fatal("it has counted nothing")
	}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(all)) {
		apply(t, m, unlearn("u"+all[i].ID, all[i]))
	}
	if !bytes.Equal(bytesOf(), fresh) {
		t.Error("something is left of what was withdrawn")
	}
}

// Personal experts need no common expert that reads the same, and hash nothing a second time
// if there is one.
func TestPersonalListsComeFromCommonOnes(t *testing.T) {
	alone := newOf(t, Config{TableBits: 16, TextExperts: []string{text.LeanOpening}, PersonalExperts: []string{text.TextWords}})
	beside := newOf(t, Config{TableBits: 16, TextExperts: []string{text.LeanOpening, text.TextWords}, PersonalExperts: []string{text.TextWords}})
	for _, ex := range newsletters(50, 7) {
		a := alone.own.vectorizer.read(&ex.Body, nil)
		b := beside.own.vectorizer.read(&ex.Body, nil)
		if !slices.Equal(a.views[1].Index, b.views[2].Index) || slices.Equal(b.views[1].Index, b.views[2].Index) || len(a.views[1].Index) == 0 {
			t.Fatalf("alone %v, beside the common expert %v, which reads %v", a.views[1].Index, b.views[2].Index, b.views[1].Index)
		}
	}
	if l := alone.own.vectorizer.byKind[ofText].lists[1]; l.from != nil {
		t.Error("alone it is salted from another view")
	}
	if l := beside.own.vectorizer.byKind[ofText].lists[2]; l.from == nil || l.from != beside.own.vectorizer.byKind[ofText].views[1] {
		t.Error("it reads the text again")
	}
}

// Personal experts count among the k opinions, and the covariate alarm watches the common
// experts' surprise.
func TestPersonalInputsHaveThePriorOfOpinions(t *testing.T) {
	s := newOf(t, Config{TextExperts: []string{text.LeanOpening}, PersonalExperts: []string{text.LeanTextWords, text.LeanOpening}}).specs[ofText]
	for i, name := range []string{"opening 4-grams (naive Bayes)", "text words (personal)", "opening 4-grams (naive Bayes) (personal)"} {
		if mean, precision := s.layout.prior.mean[1+i], s.layout.prior.precision[1+i]; s.layout.names[1+i] != name ||
			math.Abs(mean-0.8/3) > 1e-12 || math.Abs(precision-3/0.4) > 1e-12 {
			t.Errorf("input %d: %s with prior mean %v and precision %v, want %s with .8/3 and 3/.4", 1+i, s.layout.names[1+i], mean, precision, name)
		}
	}
	if s.surprise != 0 {
		t.Errorf("the covariate alarm watches expert %d, want 0", s.surprise)
	}
	if s := newOf(t, Config{TextExperts: []string{text.LeanTextWords}, PersonalExperts: []string{text.LeanOpening}}).specs[ofText]; s.surprise != noExpert {
		t.Errorf("the covariate alarm watches the personal expert %d", s.surprise)
	}
}

func TestPersonalExpertsInConfigurations(t *testing.T) {
	for list, want := range map[string]string{
		text.TextBytes:          `personal_experts: "text-bytes" is not one of header-words`,
		text.Full:               `personal_experts: "full" is not one of`,
		"text-words,text-words": `personal_experts: "text-words" is given twice`,
	} {
		var c Config
		if err := c.Set("personal_experts", list); err != nil {
			t.Fatal(err)
		}
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", list, err, want)
		}
	}
	for _, none := range [][]string{nil, {}} {
		c := Config{PersonalExperts: none}
		if strings.Contains(string(c.JSON()), "personal") || len(c.Differences(Config{})) > 0 {
			t.Errorf("%#v: JSON %s, differences %v", none, c.JSON(), c.Differences(Config{}))
		}
	}
}
