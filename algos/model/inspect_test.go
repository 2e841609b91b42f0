package model

import (
	"fmt"
	"slices"
	"testing"

	"hamlet/algos/feature"
)

// Tables say which experts share one, and how many slots were learnt.
func TestTables(t *testing.T) {
	m := newOf(t, Config{TableBits: 8, TextExperts: []string{"header-words", "text-words", "header-words-robust"}, PersonalExperts: []string{"header-words"}})
	if all := m.Tables(); len(all) > 0 {
		t.Errorf("before the first event: %+v", all)
	}
	used := 0
	for i := range 3 {
		head := fmt.Sprintf("x-list: word%d\n", i)
		apply(t, m, Example{ID: fmt.Sprint(i), Spam: i == 0, Body: Body{Tenant: "t", Message: &feature.Message{Head: []byte(head), Subject: []byte("hello")}}})
		all := m.Tables()
		var names [][]string
		for _, table := range all {
			names = append(names, table.Experts)
			if table.Body != BodyText || table.Slots < 256 || table.Used > table.Slots {
				t.Errorf("%+v", table)
			}
		}
		want := [][]string{{"header-words", "header-words-robust"}, {"text-words"}, {"personal-header-words"}}
		if !slices.EqualFunc(names, want, slices.Equal) {
			t.Fatalf("tables are of %v, want %v", names, want)
		}
		if all[0].Used <= used {
			t.Errorf("%d slots are used after message %d, and before it %d", all[0].Used, i, used)
		}
		used = all[0].Used
	}
}

// The state of a stack is that of its stacker, and to ask for it changes no byte.
func TestStacks(t *testing.T) {
	m := newOf(t, Config{TableBits: 8, Dense: []string{"a", "b"}, SecondHead: 0.99})
	if all := m.Stacks(); len(all) > 0 {
		t.Errorf("before the first event: %+v", all)
	}
	events := circles(160, 1)
	apply(t, m, events[:40]...)
	all := m.Stacks()
	if len(all) != 1 || len(all[0].Members) != 3 || all[0].Members[2].Built || all[0].Serves || all[0].Started != 0 {
		t.Fatalf("before the first rebuild: %+v", all)
	}
	apply(t, m, events[40:]...)
	s := m.submodel(&events[0].Body)
	one := m.Stacks()[0]
	mean := make([]float64, s.stack.Stacker().Dim())
	s.stack.Stacker().MeanTo(mean)
	for i, want := range []string{"head", "second head", "logit-trees"} {
		if got := one.Members[i]; got.Name != want || got.Ensemble != (i == 2) || got.Mean != mean[i+1] || !got.Built || got.SD <= 0 {
			t.Errorf("member %d is %+v, want %s of weight %v", i, got, want, mean[i+1])
		}
	}
	if one.Body != BodyVector || !one.Serves || one.Gated || one.Started != 150 || one.Due != 200 {
		t.Errorf("after %d events: %+v", m.Events(), one)
	}
	if all := newOf(t, Config{TableBits: 8}).Stacks(); len(all) > 0 {
		t.Errorf("a head alone has %+v", all)
	}
}

// Each regression is the model's own, and to ask for it changes no byte.
func TestRegressions(t *testing.T) {
	m := newOf(t, Config{TableBits: 8, Dense: []string{"a", "b"}, SecondHead: 0.99})
	if all := m.Regressions(); len(all) > 0 {
		t.Errorf("before the first event: %+v", all)
	}
	apply(t, m, circles(160, 1)...)
	before, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range m.Regressions() {
		names = append(names, r.Name)
		if n := r.Posterior.Updates(); r.Body != BodyVector || n == 0 || n > 160 || (n < 160) != (r.Name == "stacker") {
			t.Errorf("%s of %s has learnt %d of 160 events", r.Name, r.Body, n)
		}
	}
	want := []string{"head", "stacker", "second head", "alarm's head", "credulous head"}
	if !slices.Equal(names, want) {
		t.Errorf("they are %v, want %v", names, want)
	}
	if after, err := m.AppendBinary(nil); err != nil || !slices.Equal(after, before) {
		t.Errorf("asking for them changed the model: %v", err)
	}
}
