package model

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"hamlet/algos/lastlabel"
	"hamlet/algos/trust"
)

// assumption returns the answer that an example's message is spam, or is not.
func assumption(of Example, spam bool) Example {
	return Example{ID: of.ID + "/assume", Source: "answers", Action: Assume, Of: of.Identity, Spam: spam, Body: of.Body}
}

// An assumed label teaches less than one that somebody gave, and no statistic of the labels
// but the rate of spam, and no alarm, knows of it.
func TestAssumedLabels(t *testing.T) {
	m, all := small(t), named(letters(300, 31))
	apply(t, m, all[:200]...)
	ex := all[250]
	given := small(t)
	if err := restoreInto(given, image(t, m)); err != nil {
		t.Fatal(err)
	}
	before := toward(t, m, ex.Body, ex.Spam)
	s := m.submodels[ofText]
	sources, ε := len(s.labels.Sources(nil, true)), s.labels.FlipRate()
	alarms := s.monitor.Alarms()
	e := apply(t, m, assumption(ex, ex.Spam))
	apply(t, given, ex)
	little, much := toward(t, m, ex.Body, ex.Spam)-before, toward(t, given, ex.Body, ex.Spam)-before
	if e.Unassumed || e.Phi != 1 || e.Standing != trust.AssumedWeight || e.Accused || !(little > 0 && little < much) {
		t.Errorf("an assumed label moves the log-odds by %v, one that was given by %v: %+v", little, much, e)
	}
	if n := len(s.labels.Sources(nil, true)); n != sources || s.labels.FlipRate() != ε {
		t.Errorf("%d sources and ε %v, were %d and %v", n, s.labels.FlipRate(), sources, ε)
	}
	if after := s.monitor.Alarms(); after != alarms {
		t.Errorf("the alarms have seen it: %+v, before %+v", after, alarms)
	}
	if left := checkSum(t, m); left != 201 || m.Assumed() != assumedOne(ex.Spam) || m.Events() != 201 {
		t.Errorf("%d sites, %+v assumed, %d events", left, m.Assumed(), m.Events())
	}
	back, err := Restore(image(t, m))
	if err != nil {
		t.Fatal(err)
	}
	if back.Assumed() != m.Assumed() || !bytes.Equal(image(t, back), image(t, m)) {
		t.Error("it does not survive saving")
	}
}

func assumedOne(spam bool) Assumed {
	if spam {
		return Assumed{Spam: 1}
	}
	return Assumed{Ham: 1}
}

// What somebody says of a message wins, whenever he says it.
func TestAssumptionsGiveWay(t *testing.T) {
	all := named(letters(300, 32))
	for what, c := range map[string]struct {
		earlier []Example
		ex      Example
	}{
		"a message with a label":          {all[:200], all[100]},
		"one that was assumed already":    {append(all[:200:200], assumption(all[250], true)), all[250]},
		"one whose label was withdrawn":   {append(all[:200:200], unlearn("u", all[150])), all[150]},
		"before people have taught":       {all[:4], all[250]},
		"before people have taught spam":  {onlyOf(all, false), all[250]},
		"before people, after the answer": {append(onlyOf(all, false), assumption(all[250], true)), all[250]},
	} {
		m := small(t)
		apply(t, m, c.earlier...)
		assumed := m.Assumed()
		p := toward(t, m, c.ex.Body, true)
		second := assumption(c.ex, !c.ex.Spam)
		second.ID += "2"
		if e := apply(t, m, second); !e.Unassumed || e.Receipt != nil || m.Assumed() != assumed || toward(t, m, c.ex.Body, true) != p {
			t.Errorf("%s: %+v", what, e)
		}
	}
	// Everybody corrects an assumed label as if nobody had given one, with the first in the head's sum.
	for what, muted := range map[string]bool{"everybody": false, "nobody who is muted": true} {
		m := small(t)
		apply(t, m, all[:200]...)
		if muted {
			if err := m.SetRole("a user", trust.Muted); err != nil {
				t.Fatal(err)
			}
		}
		ex := all[250]
		apply(t, m, assumption(ex, !ex.Spam))
		fix := correction("c", ex, ex.Spam)
		fix.Source = "a user"
		e := apply(t, m, fix)
		want, state := Replaced, lastlabel.Of(ex.Spam)
		if muted {
			want, state = NotAllowed, lastlabel.Of(!ex.Spam)
		}
		if e.Receipt == nil || e.Receipt.Outcome != want || m.labels.Get(m.message(ex.Body.Tenant, ex.Identity)).State != state {
			t.Errorf("%s corrects: %+v", what, e.Receipt)
		}
		if left := checkSum(t, m); left != 201 {
			t.Errorf("%s: %d sites", what, left)
		}
	}
}

// A label that the table of last labels has dropped is still known while its event can be withdrawn.
// After that nobody knows of it, and the answer is learnt: the table's size bounds how long
// an answer may wait.
func TestAssumptionsOfMessagesLabelledLongAgo(t *testing.T) {
	m, err := New(Config{TableBits: 8, DuplicateWindow: 20})
	if err != nil {
		t.Fatal(err)
	}
	all := named(letters(300, 34))
	apply(t, m, all[:200]...)
	ex := all[100]
	message := m.message(ex.Body.Tenant, ex.Identity)
	if m.labels.Get(message).State != lastlabel.Unknown {
		t.Fatal("the table holds a label of 100 messages ago")
	}
	if e := apply(t, m, assumption(ex, !ex.Spam)); !e.Unassumed {
		t.Errorf("an event of the message can be withdrawn: %+v", e)
	}
	for i := 0; len(m.submodels[ofText].sites.Of(nil, message)) > 0; i++ {
		other := all[i%len(all)]
		if i%len(all) == 100 {
			continue
		}
		other.ID += fmt.Sprintf(" again %d", i)
		apply(t, m, other)
	}
	again := assumption(ex, !ex.Spam)
	again.ID += "2"
	if e := apply(t, m, again); e.Unassumed {
		t.Errorf("nobody knows of the label: %+v", e)
	}
}

// An operator takes assumed answers back by the name of their source, and keeps them out by it.
func TestAssumptionsHaveASource(t *testing.T) {
	m, all := small(t), named(letters(300, 35))
	apply(t, m, all[:200]...)
	ex := all[250]
	before := toward(t, m, ex.Body, ex.Spam)
	given := assumption(ex, ex.Spam)
	apply(t, m, given)
	with := toward(t, m, ex.Body, ex.Spam)
	back := given
	back.ID, back.Action, back.Of, back.OwnOnly = "back", Unlearn, given.ID, true
	if err := m.Withdrawable(&back); err != nil {
		t.Error(err)
	}
	if e := apply(t, m, back); e.Receipt == nil || e.Receipt.Events != 1 || math.Abs(toward(t, m, ex.Body, ex.Spam)-before) > (with-before)/2 {
		t.Errorf("withdrawn: %+v, log-odds %v, were %v and %v", e.Receipt, toward(t, m, ex.Body, ex.Spam), before, with)
	}
	checkSum(t, m)

	muted := small(t)
	apply(t, muted, all[:200]...)
	if err := muted.SetRole(given.Source, trust.Muted); err != nil {
		t.Fatal(err)
	}
	if e := apply(t, muted, given); e.Standing != 0 || math.Abs(toward(t, muted, ex.Body, ex.Spam)-before) > (with-before)/50 {
		t.Errorf("muted it counts %v: %v, was %v", e.Standing, toward(t, muted, ex.Body, ex.Spam), before)
	}
	without, err := New(Config{TableBits: 8, WithoutSources: []string{given.Source}})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, without, all[:200]...)
	if e := apply(t, without, given); !e.LeftOut {
		t.Errorf("left out: %+v", e)
	}
}

// onlyOf returns the first hundred examples with one label.
func onlyOf(all []Example, spam bool) (some []Example) {
	for _, ex := range all {
		if ex.Spam == spam && len(some) < 100 {
			some = append(some, ex)
		}
	}
	return some
}

// A model of nothing but its own answers would be its own teacher for ever: bounded by the table
// of last labels, each message is assumed once.
func TestAnAssumptionIsNoDuplicate(t *testing.T) {
	m, all := small(t), named(letters(300, 33))
	apply(t, m, all[:200]...)
	for i := range 5 {
		again := assumption(all[250], true)
		again.ID = fmt.Sprint(i)
		apply(t, m, again)
	}
	if m.Assumed() != (Assumed{Spam: 1}) || m.Events() != 205 {
		t.Errorf("%+v assumed of %d events", m.Assumed(), m.Events())
	}
	if _, err := m.Apply(&Example{ID: "x", Action: Assume, Spam: true, Body: all[250].Body}); err == nil {
		t.Error("an answer about no message was learnt")
	}
}

// Who forgets a message of which nothing is learnt yet keeps its answer from being learnt. The
// withdrawal is refused all the same, moves no clock, and a label is a first label.
func TestAForgottenMessageIsNotAssumed(t *testing.T) {
	all := named(letters(300, 36))
	ex := all[250]
	forget := Example{ID: "forget", Source: "users", Action: Unlearn, Of: ex.Identity, Identity: ex.Identity, OwnOnly: true, Body: ex.Body}
	m := small(t)
	apply(t, m, all[:200]...)
	var refused *RefusedError
	if _, err := m.Apply(&forget); !errors.As(err, &refused) || m.Events() != 200 {
		t.Fatalf("forgotten before it is learnt: %v, %d events", err, m.Events())
	}
	m, err := Restore(image(t, m))
	if err != nil {
		t.Fatal(err)
	}
	if e := apply(t, m, assumption(ex, ex.Spam)); !e.Unassumed {
		t.Errorf("the answer is learnt: %+v", e)
	}
	if e := apply(t, m, correction("fix", ex, ex.Spam)); e.Receipt != nil || e.Phi == 0 {
		t.Errorf("its first label: %+v", e)
	}

	// A withdrawal of an event that is not known says nothing of messages.
	was := image(t, m)
	event := forget
	event.Of, event.Body, event.Identity = "e9999", all[251].Body, all[251].Identity
	if _, err := m.Apply(&event); !errors.As(err, &refused) || !bytes.Equal(image(t, m), was) {
		t.Errorf("%v, or the model has changed", err)
	}
	// What is known of a message stays.
	old := all[10]
	m.labels.Put(m.message(old.Body.Tenant, "gone"), lastlabel.Label{Source: 8, State: lastlabel.Spam})
	event.Of, event.Identity = "gone", "gone"
	if _, err := m.Apply(&event); !errors.As(err, &refused) || m.labels.Get(m.message(old.Body.Tenant, "gone")).State != lastlabel.Spam {
		t.Errorf("%v, or an old label is lost", err)
	}
}
