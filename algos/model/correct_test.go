package model

import (
	"bytes"
	"fmt"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/sites"
	"hamlet/algos/trust"
)

// named gives each of the examples an identity.
func named(all []Example) []Example {
	for i := range all {
		all[i].Identity = "message " + all[i].ID
	}
	return all
}

// correction returns the correction of an example's message.
func correction(id string, of Example, spam bool) Example {
	return Example{ID: id, Source: of.Source, Action: Correct, Of: of.Identity, OwnOnly: true, Spam: spam, Body: of.Body}
}

// toward returns m's log-odds for a label of a body.
func toward(t *testing.T, m *Model, b Body, spam bool) float64 {
	t.Helper()
	p, err := m.NewPredictor().Predict(&b)
	if err != nil {
		t.Fatal(err)
	}
	return sign(spam) * p.LogOdds
}

// Of 2,000 events 50 are corrected to the other label and back. The log-odds move to the label
// each time, and p is on the side of the right one at the end. The head is the prior and the
// sites that stand, summed, to 1e−9.
func TestCorrectionsOfTheWindow(t *testing.T) {
	m, all := small(t), named(letters(2000, 21))
	apply(t, m, all...)
	for i, ex := range all[1900:1950] {
		for step, spam := range []bool{!ex.Spam, ex.Spam} {
			before := toward(t, m, ex.Body, spam)
			e := apply(t, m, correction(fmt.Sprint("c", step, i), ex, spam))
			if e.Receipt == nil || e.Receipt.Outcome != Replaced || e.Receipt.Spam == spam || e.Receipt.Events != 1 || e.Receipt.Uncounted || e.Phi != 1 {
				t.Fatalf("%s: receipt %+v, φ %v", ex.ID, e.Receipt, e.Phi)
			}
			if after := toward(t, m, ex.Body, spam); after <= before {
				t.Errorf("%s corrected to spam %v: log-odds %v, before %v", ex.ID, spam, after, before)
			}
		}
		if toward(t, m, ex.Body, ex.Spam) < 0 {
			t.Errorf("%s, corrected and corrected back: p is on the other side", ex.ID)
		}
	}
	if left := checkSum(t, m); left != 2000 || m.Events() != 2100 {
		t.Errorf("%d sites of %d events, want 2000 of 2100", left, m.Events())
	}
}

// A label that is too old to be withdrawn is outweighed.
func TestCorrectionsBeyondTheWindow(t *testing.T) {
	m, all := small(t), named(letters(sites.Window+300, 22))
	for i := range all[:50] {
		all[i].Spam = !all[i].Spam
	}
	apply(t, m, all...)
	for i, ex := range all[:50] {
		before := toward(t, m, ex.Body, !ex.Spam)
		e := apply(t, m, correction(fmt.Sprint("c", i), ex, !ex.Spam))
		if e.Receipt == nil || e.Receipt.Outcome != Outweighed || e.Receipt.Spam != ex.Spam {
			t.Fatalf("%s: receipt %+v", ex.ID, e.Receipt)
		}
		if after := toward(t, m, ex.Body, !ex.Spam); after < min(before, 5) || after < 0 {
			t.Errorf("%s: log-odds of the right label %v, before %v", ex.ID, after, before)
		}
		again := apply(t, m, correction(fmt.Sprint("d", i), ex, !ex.Spam))
		if again.Receipt == nil || again.Receipt.Outcome != Unchanged {
			t.Errorf("%s, the same again: receipt %+v", ex.ID, again.Receipt)
		}
	}
	// What outweighs can be withdrawn, and leaves what was there before.
	was := small(t)
	if err := restoreInto(was, image(t, m)); err != nil {
		t.Fatal(err)
	}
	ex := all[60]
	apply(t, m, correction("e", ex, !ex.Spam))
	apply(t, m, Example{ID: "f", Source: ex.Source, Action: Unlearn, Of: ex.Identity, Body: ex.Body})
	for k, e := range m.submodels[ofText].experts {
		a, err1 := e.AppendBinary(nil)
		b, err2 := was.submodels[ofText].experts[k].AppendBinary(nil)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if m.specs[ofText].entries[k].Counts && !bytes.Equal(a, b) {
			t.Errorf("%s still holds something of what was withdrawn", m.specs[ofText].entries[k].Name)
		}
	}
}

func restoreInto(m *Model, b []byte) error {
	back, err := Restore(b)
	if err == nil {
		*m = *back
	}
	return err
}

// Who may correct what, and what happens then.
func TestWhoMayCorrect(t *testing.T) {
	all := named(letters(400, 23))
	for i := range all {
		all[i].Source = []string{"desk", "trap"}[i%2]
	}
	desk, copied := all[398], all[396]
	copied.ID, copied.Source = "copy", "trap" // the trap has labelled the same message
	base := small(t)
	for _, err := range []error{base.SetRole("chief", trust.Anchor), base.SetRole("mute", trust.Muted)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	apply(t, base, all...)
	apply(t, base, copied)
	apply(t, base, Example{ID: "gone", Source: "desk", Action: Unlearn, Of: all[380].Identity, Body: all[380].Body})
	stored := image(t, base)
	by := func(source string, ownOnly bool, of Example, spam bool) Example {
		c := correction("c", of, spam)
		c.Source, c.OwnOnly = source, ownOnly
		return c
	}
	stranger := desk
	stranger.Identity = "nobody's message"
	tenant := by("desk", true, desk, !desk.Spam)
	tenant.Body.Tenant = "another"
	for name, c := range map[string]struct {
		ex      Example
		outcome Outcome
		learnt  bool // as by Learn: there is no receipt
		events  int
	}{
		"its own":                      {by("desk", true, desk, !desk.Spam), Replaced, false, 1},
		"its own, the same":            {by("desk", true, desk, desk.Spam), Unchanged, false, 0},
		"another's":                    {by("trap", true, desk, !desk.Spam), NotAllowed, false, 0},
		"another's, the same":          {by("trap", true, desk, desk.Spam), NotAllowed, false, 0},
		"another's, by the right":      {by("trap", false, desk, !desk.Spam), Replaced, false, 1},
		"another's, by an anchor":      {by("chief", true, desk, !desk.Spam), Replaced, false, 1},
		"another's, by a muted source": {by("mute", false, desk, !desk.Spam), NotAllowed, false, 0},
		"its own of two":               {by("desk", true, all[396], !copied.Spam), Replaced, false, 1},
		"both of two":                  {by("chief", true, all[396], !copied.Spam), Replaced, false, 2},
		"nobody has labelled it":       {by("trap", true, stranger, true), 0, true, 0},
		"another tenant's":             {tenant, 0, true, 0},
		"it was forgotten":             {by("trap", true, all[380], all[380].Spam), 0, true, 0},
	} {
		m, err := Restore(stored)
		if err != nil {
			t.Fatal(err)
		}
		e := apply(t, m, c.ex)
		switch {
		case c.learnt != (e.Receipt == nil):
			t.Errorf("%s: receipt %+v", name, e.Receipt)
		case c.learnt:
			plain, _ := Restore(stored)
			ex := c.ex
			ex.Action, ex.Identity, ex.Of = Learn, ex.Of, ""
			apply(t, plain, ex)
			if !bytes.Equal(image(t, plain), image(t, m)) {
				t.Errorf("%s: the model is not that of a plain label", name)
			}
		case e.Receipt.Outcome != c.outcome || e.Receipt.Events != c.events:
			t.Errorf("%s: outcome %d with %d events, want %d with %d", name, e.Receipt.Outcome, e.Receipt.Events, c.outcome, c.events)
		case !c.outcome.taught():
			// All but the counts of events and the keys of duplicates is as it was.
			events, unlearnt, seen := m.events, m.unlearnt, m.seen
			m.events, m.unlearnt, m.seen = base.events, base.unlearnt, base.seen
			if !bytes.Equal(image(t, m), stored) {
				t.Errorf("%s: the model has changed", name)
			}
			m.events, m.unlearnt, m.seen = events, unlearnt, seen
		}
		if e, err := m.Apply(&c.ex); err != nil || !e.Duplicate {
			t.Errorf("%s, delivered twice: %+v, %v", name, e, err)
		}
	}
	if _, err := base.Apply(&Example{ID: "x", Source: "desk", Action: Correct, Body: desk.Body}); err == nil {
		t.Error("a correction without a message was applied")
	}
}

// Beyond the window the table of last labels says whose label it is.
func TestWhoMayCorrectBeyondTheWindow(t *testing.T) {
	m, all := small(t), named(letters(sites.Window+10, 24))
	apply(t, m, all...)
	other := correction("a", all[3], !all[3].Spam)
	other.Source = "trap"
	if e := apply(t, m, other); e.Receipt == nil || e.Receipt.Outcome != NotAllowed {
		t.Errorf("another source: receipt %+v", e.Receipt)
	}
	other.ID, other.OwnOnly = "b", false
	if e := apply(t, m, other); e.Receipt == nil || e.Receipt.Outcome != Outweighed || e.Standing != 1 {
		t.Errorf("another source with the right: %+v", e.Receipt)
	}
}

// A copy with other header fields is the same message: the counts of its text are withdrawn.
// Those of another text stay, and the receipt says so.
func TestCorrectionByACopy(t *testing.T) {
	mail := func(head, body string) Body {
		return Body{Tenant: "t", Message: &feature.Message{Head: []byte(head), Subject: []byte("offer"), Body: []byte(body), BodyBytes: len(body)}}
	}
	m := small(t)
	apply(t, m, letters(300, 25)...)
	learnt := Example{ID: "m", Source: "desk", Identity: "i", Body: mail("to: bob\n", "pill1 pill2 pill3")}
	apply(t, m, learnt)
	for _, c := range []struct {
		body      Body
		spam      bool
		uncounted bool
	}{
		{mail("received: by here\nto: bob\n", "pill1 pill2 pill3"), true, false},
		{mail("to: bob\n", "pill1 pill2 pill3\nthe list's footer"), false, true},
	} {
		ex := correction(fmt.Sprint("c", c.spam), learnt, c.spam)
		ex.Body = c.body
		e := apply(t, m, ex)
		if e.Receipt == nil || e.Receipt.Outcome != Replaced || e.Receipt.Uncounted != c.uncounted || e.Receipt.Counted == 0 {
			t.Errorf("copy %q: receipt %+v", c.body.Message.Head, e.Receipt)
		}
	}
}

// A source that has lost its standing does not win it back by calling each message first as
// the model does.
func TestCorrectionsCountByStanding(t *testing.T) {
	m, all := small(t), named(letters(900, 26))
	for i := range all {
		if i%3 == 2 {
			all[i].Source, all[i].Spam = "liar", !all[i].Spam
		}
	}
	apply(t, m, all...)
	first := named(letters(901, 26))[900]
	first.Source = "liar"
	apply(t, m, first)
	e := apply(t, m, correction("c", first, !first.Spam))
	if e.Receipt == nil || e.Receipt.Outcome != Replaced || e.Phi > 0.1 || e.Standing > 0.1 {
		t.Errorf("a liar's correction: receipt %+v, φ %v, standing %v", e.Receipt, e.Phi, e.Standing)
	}
}

// Restoring between learns, corrections and withdrawals by identity changes no bit.
func TestCorrectionsSurviveRestoring(t *testing.T) {
	all := named(letters(120, 27))
	var stream []Example
	for i, ex := range all {
		stream = append(stream, ex)
		switch i % 10 {
		case 7:
			stream = append(stream, correction(fmt.Sprint("c", i), all[i-5], !all[i-5].Spam))
		case 9:
			gone := all[i-3]
			stream = append(stream, Example{ID: fmt.Sprint("u", i), Source: gone.Source, Action: Unlearn, Of: gone.Identity, Body: gone.Body})
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

// Forgetting a message withdraws all its events that the source may withdraw.
func TestForgetting(t *testing.T) {
	m, all := small(t), named(letters(60, 28))
	twin := all[50]
	twin.ID = "twin"
	apply(t, m, all...)
	apply(t, m, twin)
	forget := Example{ID: "u", Source: "trap", Action: Unlearn, Of: twin.Identity, OwnOnly: true, Body: twin.Body}
	if _, err := m.Apply(&forget); err == nil || err.Error() != "refused: "+sites.ErrNotOwn.Error() {
		t.Errorf("another source forgets it: %v", err)
	}
	forget.Source = "desk"
	if e := apply(t, m, forget); e.Receipt == nil || e.Receipt.Outcome != Withdrawn || e.Receipt.Events != 2 {
		t.Errorf("receipt %+v, want two events", e.Receipt)
	}
	if left := checkSum(t, m); left != 59 {
		t.Errorf("%d sites are left, want 59", left)
	}
	forget.ID = "v"
	if _, err := m.Apply(&forget); err == nil {
		t.Error("it was forgotten twice")
	}
}
