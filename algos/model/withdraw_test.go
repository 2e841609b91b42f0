package model

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/feature"
	"hamlet/algos/sites"
	"hamlet/algos/text"
)

// letters returns n labelled texts, the same for the same seed.
func letters(n int, seed uint64) []Example {
	r := rand.New(rand.NewPCG(seed, 2))
	all := make([]Example, n)
	for i := range all {
		spam := r.IntN(3) == 0
		var b strings.Builder
		for range 5 + r.IntN(20) {
			word := []string{"w", "meet"}[r.IntN(2)]
			if spam && r.IntN(3) > 0 {
				word = "pill"
			}
			fmt.Fprintf(&b, "%s%d ", word, r.IntN(30))
		}
		text := []byte(b.String())
		all[i] = Example{
			ID: fmt.Sprint("e", i), Source: "desk", Spam: spam,
			Body: Body{Tenant: "t", Message: &feature.Message{Body: text, BodyBytes: len(text)}},
		}
	}
	return all
}

func apply(t *testing.T, m *Model, all ...Example) (last Effect) {
	t.Helper()
	for i := range all {
		var err error
		if last, err = m.Apply(&all[i]); err != nil {
			t.Fatalf("%s: %v", all[i].ID, err)
		}
	}
	return last
}

func small(t *testing.T) *Model {
	t.Helper()
	m, err := New(Config{TableBits: 8})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func image(t testing.TB, m *Model) []byte {
	t.Helper()
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unlearn(id string, of Example) Example {
	return Example{ID: id, Source: of.Source, Action: Unlearn, Of: of.ID, Body: of.Body}
}

// Learn 2,000 events, unlearn 50 of the last 500: (Λ, η) are the prior and the
// sites of the others, summed, to 1e−9 relative.
func TestUnlearningLeavesTheOtherSites(t *testing.T) {
	m := small(t)
	all := letters(2000, 3)
	apply(t, m, all...)
	r := rand.New(rand.NewPCG(4, 4))
	gone := map[string]bool{}
	for _, i := range r.Perm(500)[:50] {
		of := all[1500+i]
		gone[of.ID] = true
		e := apply(t, m, unlearn("u"+of.ID, of))
		if e.Receipt == nil || e.Receipt.Site.KL < 0 || e.Receipt.Site.LogDetV < 0 || e.Receipt.Spam != of.Spam {
			t.Fatalf("receipt %+v", e.Receipt)
		}
	}
	if m.Events() != 2050 || m.Unlearnt() != 50 {
		t.Errorf("%d events, %d of them unlearnt, want 2050 and 50", m.Events(), m.Unlearnt())
	}
	if left := checkSum(t, m); left != 1950 {
		t.Fatalf("%d sites are left, want 1950", left)
	}
}

// checkSum checks that the head's Λ and η are the prior's and those of the sites that stand,
// summed, to 1e−9 relative, and returns the number of these sites. No event may be older than
// the sites' window.
func checkSum(t *testing.T, m *Model) (left int) {
	t.Helper()
	d := m.submodels[ofText].head.Dim()
	before := m.specs[ofText].layout.prior
	wantΛ, wantη := mat.NewSymDense(d, nil), make([]float64, d)
	for j, τ := range before.precision {
		wantΛ.SetSym(j, j, τ)
		wantη[j] = τ * before.mean[j]
	}
	for slot := range m.submodels[ofText].sites.Remaining() {
		left++
		rec := m.submodels[ofText].sites.Head(slot)
		wantΛ.SymRankOne(wantΛ, rec.H, mat.NewVecDense(d, rec.X))
		for j, x := range rec.X {
			wantη[j] += rec.Eta * x
		}
	}
	gotΛ, gotη := mat.NewSymDense(d, nil), make([]float64, d)
	m.submodels[ofText].head.NaturalTo(gotη, gotΛ)
	for i := range d {
		for j := range d {
			if g, w := gotΛ.At(i, j), wantΛ.At(i, j); math.Abs(g-w) > 1e-9*max(1, math.Abs(w)) {
				t.Errorf("Λ[%d,%d] = %v, want %v", i, j, g, w)
			}
		}
		if g, w := gotη[i], wantη[i]; math.Abs(g-w) > 1e-9*max(1, math.Abs(w)) {
			t.Errorf("η[%d] = %v, want %v", i, g, w)
		}
	}
	return left
}

// What cannot be withdrawn is refused, changes nothing and ticks nothing.
func TestWithdrawalsThatAreRefused(t *testing.T) {
	m := small(t)
	all := letters(sites.Window+20, 5)
	apply(t, m, all...)
	apply(t, m, unlearn("u", all[sites.Window]))
	other := unlearn("x", all[sites.Window+1])
	other.Body = all[sites.Window+2].Body
	stranger := unlearn("y", all[sites.Window+3])
	stranger.Body.Tenant = "another"
	vector := unlearn("z", all[sites.Window+4])
	vector.Body = Body{Tenant: "t", Vector: []feature.Number{{Name: "a", Value: 1}}}
	foreign := unlearn("f", all[sites.Window+5])
	foreign.Source, foreign.OwnOnly = "another", true
	was := image(t, m)
	for _, c := range []struct {
		name string
		ex   Example
		want string
	}{
		{"another source's", foreign, sites.ErrNotOwn.Error()},
		{"unknown", Example{ID: "a", Source: "desk", Action: Unlearn, Of: "nobody", Body: all[0].Body}, sites.ErrUnknown.Error()},
		{"older than the window", unlearn("b", all[3]), sites.ErrUnknown.Error()},
		{"twice", unlearn("c", all[sites.Window]), sites.ErrWithdrawn.Error()},
		{"another body", other, sites.ErrOtherBody.Error()},
		{"another tenant's", stranger, sites.ErrUnknown.Error()},
		{"unknown action", Example{ID: "q", Action: 7, Of: "e9", Body: all[9].Body}, "action 7 is unknown"},
		{"another kind of body", vector, sites.ErrUnknown.Error()},
	} {
		_, err := m.Apply(&c.ex)
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Reason != c.want {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if !bytes.Equal(image(t, m), was) {
			t.Fatalf("%s: the model has changed", c.name)
		}
	}
	foreign.OwnOnly = false
	if e, err := m.Apply(&foreign); err != nil || e.Receipt == nil {
		t.Errorf("another source's, which may be withdrawn: %+v, %v", e, err)
	}
	again := unlearn("u", all[sites.Window])
	if e, err := m.Apply(&again); err != nil || !e.Duplicate {
		t.Errorf("the same withdrawal delivered twice: %+v, %v; want a duplicate", e, err)
	}
}

// A relearn is an unlearn and a learn: one tick, one receipt, the same belief.
func TestRelearnIsUnlearnAndLearn(t *testing.T) {
	all := letters(300, 6)
	wrong := all[250]
	wrong.Spam = !wrong.Spam
	stream := append(append([]Example{}, all[:250]...), wrong)
	stream = append(stream, all[251:]...)

	one := small(t)
	apply(t, one, stream...)
	re := all[250]
	re.ID, re.Action, re.Of = "again", Relearn, wrong.ID
	effect := apply(t, one, re)
	if effect.Receipt == nil || effect.Receipt.Spam != wrong.Spam || effect.Phi == 0 {
		t.Fatalf("effect %+v", effect)
	}
	two := small(t)
	apply(t, two, stream...)
	learn := all[250]
	learn.ID = "again"
	apply(t, two, unlearn("u", wrong), learn)
	if one.Events()+1 != two.Events() || one.Events() != 301 {
		t.Errorf("%d and %d events, want 301 and 302", one.Events(), two.Events())
	}
	a, b := make([]float64, one.submodels[ofText].head.Dim()), make([]float64, two.submodels[ofText].head.Dim())
	one.submodels[ofText].head.MeanTo(a)
	two.submodels[ofText].head.MeanTo(b)
	for j := range a {
		if a[j] != b[j] {
			t.Fatalf("w[%d] is %v and %v", j, a[j], b[j])
		}
	}
	if e, err := one.Apply(&Example{ID: "u2", Source: "desk", Action: Unlearn, Of: "again", Body: re.Body}); err != nil || e.Receipt.Spam != re.Spam {
		t.Errorf("what was relearnt cannot be withdrawn: %+v, %v", e, err)
	}
}

// Another source may correct what one source of the same tenant said.
func TestAnotherSourceWithdraws(t *testing.T) {
	m := small(t)
	all := letters(50, 7)
	apply(t, m, all...)
	u := unlearn("u", all[40])
	u.Source = "abuse-desk"
	if e := apply(t, m, u); e.Receipt.Since != 9 {
		t.Errorf("%d events came after it, want 9", e.Receipt.Since)
	}
}

// Restoring between events of all three kinds changes no bit.
func TestWithdrawalsSurviveRestoring(t *testing.T) {
	all := letters(120, 8)
	var stream []Example
	for i, ex := range all {
		stream = append(stream, ex)
		if i%10 == 9 {
			stream = append(stream, unlearn(fmt.Sprint("u", i), all[i-5]))
			re := all[i-3]
			re.ID, re.Action, re.Of, re.Spam = fmt.Sprint("r", i), Relearn, all[i-3].ID, !re.Spam
			stream = append(stream, re)
		}
	}
	straight, broken := small(t), small(t)
	apply(t, straight, stream...)
	for i := range stream {
		apply(t, broken, stream[i])
		var err error
		if broken, err = Restore(image(t, broken)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(image(t, straight), image(t, broken)) {
		t.Error("the bytes differ")
	}
}

// A header that is skipped tells the model nothing.
func TestSkippedHeadersAreNotRead(t *testing.T) {
	with := func(head string) Body {
		return Body{Message: &feature.Message{Head: []byte(head), Subject: []byte("x"), Body: []byte("lunch")}}
	}
	m, err := New(Config{TableBits: 8, SkipHeaders: []string{"Received", FromLine}})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, m, letters(100, 9)...)
	p := m.NewPredictor()
	a, b := with("From a Mon\nreceived: by here\nto: bob\n"), with("From b Tue\nto: bob\nreceived: by there")
	c := with("to: eve\n")
	apply(t, m, Example{ID: "m", Spam: true, Body: a})
	var got [3]Prediction
	for i, body := range []Body{a, b, c} {
		if got[i], err = p.Predict(&body); err != nil {
			t.Fatal(err)
		}
	}
	if got[0] != got[1] || got[0] == got[2] {
		t.Errorf("predictions %v: want the first two equal, and the third different", got)
	}
}

// Two sources may use one id: the body says which event is meant.
func TestWithdrawalByBody(t *testing.T) {
	m := small(t)
	all := letters(40, 10)
	all[20].ID, all[30].ID, all[30].Source = "42", "42", "another"
	apply(t, m, all...)
	u := unlearn("u", all[20])
	u.Source = "abuse-desk"
	if e := apply(t, m, u); e.Receipt.Since != 19 {
		t.Errorf("withdrew the event %d before the last, want 19", e.Receipt.Since)
	}
}

// Whatever an expert has counted and forgets again leaves no residue.
func TestCountsAreForgottenExactly(t *testing.T) {
	for _, set := range []string{text.Full, text.Lean} {
		cfg := Config{TableBits: 8, TextExperts: []string{set}}
		m, fresh := newOf(t, cfg), newOf(t, cfg)
		all := letters(400, 11)
		apply(t, m, all...)
		fresh.submodels[ofText] = newSubmodel(fresh.specs[ofText], fresh.cfg.Alarms)
		images := func(k int) (was, never []byte) {
			was, err1 := m.submodels[ofText].experts[k].AppendBinary(nil)
			never, err2 := fresh.submodels[ofText].experts[k].AppendBinary(nil)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			return was, never
		}
		for k, e := range m.specs[ofText].entries {
			if was, never := images(k); e.Counts && bytes.Equal(was, never) {
				t.Errorf("%s: %s has counted nothing", set, e.Name)
			}
		}
		for _, i := range rand.New(rand.NewPCG(12, 13)).Perm(len(all)) {
			apply(t, m, unlearn("u"+all[i].ID, all[i]))
		}
		for k, e := range m.specs[ofText].entries {
			if was, never := images(k); e.Counts && !bytes.Equal(was, never) {
				t.Errorf("%s: %s still holds something of what was unlearnt", set, e.Name)
			}
		}
	}
}

// A label that counted little is taken out of the experts with the weight that it had: the counts of other
// labels stay.
func TestCountsOfLittleWeightAreForgottenExactly(t *testing.T) {
	m := newOf(t, Config{TableBits: 12, TextExperts: []string{text.Lean}})
	all := letters(420, 11)
	for i := range all {
		all[i].Source = []string{"desk", "trap"}[i/2%2]
		if i >= 400 { // fewer and fewer believe it
			all[i].Source, all[i].Spam = "liar", !all[i].Spam
		}
	}
	apply(t, m, all[:400]...)
	images := func() (all []byte) {
		for k, e := range m.specs[ofText].entries {
			if !e.Counts {
				continue
			}
			var err error
			if all, err = m.submodels[ofText].experts[k].AppendBinary(all); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	before, little := images(), 0
	for _, lie := range all[400:] {
		apply(t, m, lie)
		r := apply(t, m, unlearn("u"+lie.ID, lie)).Receipt
		if r.Counted > 0 && r.Counted < 0.5 {
			little++
		}
		if !bytes.Equal(images(), before) {
			t.Fatalf("learning and unlearning %s has changed what other labels have taught", lie.ID)
		}
	}
	if little == 0 {
		t.Error("no label had little weight")
	}
}
