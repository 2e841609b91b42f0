package model_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/algos/sites"
	"hamlet/algos/text"
)

var lean = model.Config{TableBits: 12, TextExperts: []string{text.Lean}}

// without returns lean without some sources.
func without(sources ...string) model.Config {
	cfg := lean
	cfg.WithoutSources = sources
	return cfg
}

func applied(t *testing.T, m *model.Model, ex model.Example) model.Effect {
	t.Helper()
	effect, err := m.Apply(&ex)
	if err != nil {
		t.Fatalf("event %s of %s: %v", ex.ID, ex.Source, err)
	}
	return effect
}

// A model without a source answers as one that never met it, and counts its events. What
// the source unlearns and relearns is left out too.
func TestWithoutASource(t *testing.T) {
	never, m := newModel(t, lean), newModel(t, without("liar"))
	const n = 900
	left := uint64(0)
	for i := range n {
		if i%3 == 2 {
			lie := said(i, i%2 == 1, "liar")
			switch i % 9 {
			case 5:
				lie.Action, lie.Of = model.Unlearn, fmt.Sprint(i-4)
			case 8:
				lie.Action, lie.Of = model.Relearn, fmt.Sprint(i-6)
			}
			before := bytesOf(t, m)
			if effect := applied(t, m, lie); !effect.LeftOut || effect.Receipt != nil || effect.Prediction != (model.Prediction{}) {
				t.Fatalf("event %d: %+v", i, effect)
			}
			if effect := applied(t, m, lie); !effect.Duplicate || bytes.Equal(bytesOf(t, m), before) {
				t.Fatal("a copy of what is left out is no duplicate, or the clock stands still")
			}
			left++
			continue
		}
		honest := said(i, i%2 == 0, "desk")
		want, got := applied(t, never, honest), applied(t, m, honest)
		if want.Prediction != got.Prediction || want.Phi != got.Phi || want.Standing != got.Standing {
			t.Fatalf("event %d: %+v, want %+v", i, got, want)
		}
	}
	if m.Events() != n || m.LeftOut() != left || never.LeftOut() != 0 {
		t.Errorf("%d events, %d of them left out; want %d and %d", m.Events(), m.LeftOut(), n, left)
	}
	again, err := model.Restore(bytesOf(t, m))
	if err != nil {
		t.Fatal(err)
	}
	if again.LeftOut() != left || !bytes.Equal(bytesOf(t, again), bytesOf(t, m)) {
		t.Error("restored, the model is another one")
	}
	if !applied(t, again, said(n, true, "liar")).LeftOut {
		t.Error("restored, the model learns from the source")
	}
}

// A model can take a source back, and cannot leave out one that has taught it.
func TestSourcesAreTakenBackOnly(t *testing.T) {
	m := newModel(t, without("b", "a"))
	applied(t, m, said(0, true, "a"))
	if got := m.Config().WithoutSources; len(got) != 2 || got[0] != "a" {
		t.Errorf("the sources are %q", got)
	}
	if err := m.Adopt(without("a", "c")); err == nil || !strings.Contains(err.Error(), `what source "c" has taught would stay`) {
		t.Errorf("one more source: %v", err)
	}
	if err := m.Adopt(without("a")); err != nil {
		t.Fatal(err)
	}
	if applied(t, m, said(1, true, "b")).LeftOut || !applied(t, m, said(2, true, "a")).LeftOut {
		t.Error("the source that was taken back is left out, or the other one is not")
	}
	if a := m.Adoptions(); len(a) != 1 || len(a[0].Config.WithoutSources) != 2 {
		t.Errorf("the change is recorded as %+v", a)
	}
	if _, err := model.Restore(bytesOf(t, m)); err != nil {
		t.Error(err)
	}
}

func TestNamesOfSourcesLeftOut(t *testing.T) {
	many := make([]string, model.MostLeftOut+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for want, names := range map[string][]string{
		"is not the name of a source": {"\xff"}, `"a" is given twice`: {"a", "a"}, "257 names, more than 256": many,
	} {
		if _, err := model.New(without(names...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.3q: %v, want %q", names, err, want)
		}
	}
	if a, b := lean.JSON(), without().JSON(); !bytes.Equal(a, b) || bytes.Contains(a, []byte("without_sources")) {
		t.Errorf("a model with all sources is configured as %s", a)
	}
}

// Withdrawable says what an Unlearn event would find, and changes nothing.
func TestWithdrawable(t *testing.T) {
	m := newModel(t, lean)
	un := said(1, true, "desk")
	un.ID, un.Of, un.Action = "un", "1", model.Unlearn
	other := said(2, true, "desk")
	other.ID, other.Of, other.Action = "un", "1", model.Unlearn
	for _, step := range []struct {
		of   model.Example
		want error
		then *model.Example
	}{
		{un, sites.ErrUnknown, new(said(1, true, "desk"))},
		{other, sites.ErrOtherBody, nil},
		{un, nil, &un},
		{un, sites.ErrWithdrawn, nil},
	} {
		if err := m.Withdrawable(&step.of); !errors.Is(err, step.want) {
			t.Errorf("got %v, want %v", err, step.want)
		}
		if step.then != nil {
			applied(t, m, *step.then)
		}
	}
	if m.Events() != 2 {
		t.Errorf("%d events, want 2", m.Events())
	}
}
