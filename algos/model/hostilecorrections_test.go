package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/trust"
)

// A liar who labels each message first as the model would, and then corrects himself, teaches
// no more than one who lies at once: by one name, by new names, and with true labels between.
func TestLyingByCorrections(t *testing.T) {
	lossAfter := func(trueOnes int, newNames, corrects, lies bool) float64 {
		m, all := small(t), named(letters(2600, 41))
		for i, ex := range all[:2000] {
			ex.Source = []string{"desk", "trap"}[i%2]
			apply(t, m, ex)
			if !lies || i < 1000 || i%4 != 0 {
				continue
			}
			from := "user"
			if newNames {
				from = fmt.Sprint("user", i)
			}
			letter := func(name string, seed int) Example {
				x := named(letters(1, uint64(seed)))[0]
				x.ID, x.Source, x.Identity = name, from, name
				return x
			}
			for j := range trueOnes {
				apply(t, m, letter(fmt.Sprint("true", i, j), 90_000+i+7_000*j))
			}
			lie := letter(fmt.Sprint("lie", i), 5_000+i)
			if corrects {
				apply(t, m, lie)
				lie = correction(fmt.Sprint("c", i), lie, !lie.Spam)
			} else {
				lie.Spam = !lie.Spam
			}
			apply(t, m, lie)
		}
		loss := 0.0
		for _, ex := range all[2000:] {
			loss += math.Log1p(math.Exp(-toward(t, m, ex.Body, ex.Spam))) / 600
		}
		return loss
	}
	honest := lossAfter(0, false, false, false)
	for what, c := range map[string]struct {
		trueOnes int
		newNames bool
	}{"one name": {0, false}, "new names": {0, true}, "three true labels for each lie": {2, false}} {
		if loss := lossAfter(c.trueOnes, c.newNames, true, true); loss > 1.5*honest {
			t.Errorf("%s: log loss %v, without lies %v", what, loss, honest)
		}
	}
}

// A label that counted for nothing, or was assumed, stands in nobody's way: the same label by
// somebody else teaches as if there had been none.
func TestLabelsThatCountForNothing(t *testing.T) {
	for what, c := range map[string]struct{ assumed, same, own bool }{
		"assumed, confirmed": {true, true, true}, "assumed, corrected": {true, false, true},
		"muted, the same": {false, true, true}, "muted, the other": {false, false, true},
		"muted, the same, any source": {false, true, false}, "muted, the other, any source": {false, false, false},
	} {
		m, plain, all := small(t), small(t), named(letters(300, 31))
		for _, m := range []*Model{m, plain} {
			apply(t, m, all[:200]...)
			if err := m.SetRole("mute", trust.Muted); err != nil {
				t.Fatal(err)
			}
		}
		ex := all[250]
		first := ex
		first.Source, first.Spam = "mute", ex.Spam == c.same
		if c.assumed {
			first = assumption(ex, ex.Spam == c.same)
		}
		apply(t, m, first)
		fix := correction("c", ex, ex.Spam)
		fix.OwnOnly = c.own
		e := apply(t, m, fix)
		apply(t, plain, ex)
		if e.Receipt == nil || e.Receipt.Outcome != Replaced {
			t.Errorf("%s: %+v", what, e.Receipt)
		}
		if got, want := toward(t, m, ex.Body, ex.Spam), toward(t, plain, ex.Body, ex.Spam); got < want-0.3 {
			t.Errorf("%s: log-odds %v, of the label alone %v", what, got, want)
		}
	}
}

// Who is muted takes nothing back from others, by whatever name.
func TestMutedTakesNothingBack(t *testing.T) {
	m, all := small(t), named(letters(200, 31))
	apply(t, m, all...)
	if err := m.SetRole("mute", trust.Muted); err != nil {
		t.Fatal(err)
	}
	for _, ex := range []Example{
		{ID: "a", Action: Unlearn, Of: all[150].ID, Body: all[150].Body},
		{ID: "b", Action: Relearn, Of: all[151].ID, Body: all[151].Body, Spam: true},
		{ID: "c", Action: Unlearn, Of: all[152].Identity, Body: all[152].Body},
	} {
		ex.Source = "mute"
		if e, err := m.Apply(&ex); err == nil {
			t.Errorf("%s: %+v", ex.ID, e.Receipt)
		}
	}
	if left := checkSum(t, m); left != 200 {
		t.Errorf("%d sites stand of 200", left)
	}
}

// A correction has a body of the kind that its message had. The head is not taught the inputs of
// another text.
func TestCorrectionsWithAnotherBody(t *testing.T) {
	m, all := small(t), named(letters(300, 31))
	apply(t, m, all[:200]...)
	other := correction("c", all[198], !all[198].Spam)
	other.Body = Body{Tenant: other.Body.Tenant, Vector: []feature.Number{{Name: "a", Value: 1}}}
	if e, err := m.Apply(&other); err == nil || !strings.Contains(err.Error(), "another kind") {
		t.Errorf("a vector for a text: %+v, %v", e, err)
	}
	text := correction("d", all[199], !all[199].Spam)
	text.Body = all[298].Body
	ring := m.submodels[ofText].sites
	inputs := func() []float64 {
		return slices.Clone(ring.Head(ring.Of(nil, m.message(text.Body.Tenant, all[199].Identity))[0]).X)
	}
	before := inputs()
	if e := apply(t, m, text); e.Receipt.Outcome != Replaced || slices.Equal(inputs(), before) {
		t.Errorf("another text: %+v, the head learnt the inputs of the first", e.Receipt)
	}
	same := correction("e", text, all[199].Spam)
	same.Of = text.Of
	before = inputs()
	if e := apply(t, m, same); e.Receipt.Outcome != Replaced || !slices.Equal(inputs(), before) {
		t.Errorf("the same text: %+v, the head did not learn its first inputs", e.Receipt)
	}
}

func TestCountsThatWrap(t *testing.T) {
	m := small(t)
	apply(t, m, letters(100, 31)...)
	m.leftOut, m.unlearnt = 50, ^uint64(49)
	if back, err := Restore(image(t, m)); err == nil {
		t.Errorf("restored with %d unlearnt of %d events", back.Unlearnt(), back.Events())
	}
}

// The first label of a source may be a correction that is believed: its bytes can be restored.
func TestCorrectionAsTheFirstLabelOfASource(t *testing.T) {
	m, all := small(t), named(letters(200, 31))
	apply(t, m, all[:100]...)
	fix := correction("c", all[50], !all[50].Spam)
	fix.Source, fix.OwnOnly = "new", false
	apply(t, m, fix)
	fix = correction("d", all[60], !all[60].Spam)
	apply(t, m, fix, all[150])
	if _, err := Restore(image(t, m)); err != nil {
		t.Error(err)
	}
}
