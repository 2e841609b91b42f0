package model

import (
	"bytes"
	"testing"

	"hamlet/algos/text"
)

// A model that shares the tables of a twin answers, learns and withdraws as it does with its own, and
// the twin never changes.
func TestSharedTables(t *testing.T) {
	cfg := Config{TableBits: 8, PersonalExperts: []string{text.TextWordsBayes, text.HeaderWords}}
	straight, sharing := newOf(t, cfg), newOf(t, cfg)
	all := newsletters(100, 6)
	for i := range 20 {
		all = append(all, unlearn("u"+all[i].ID, all[i]))
	}
	var twins []*Model
	var were [][]byte
	for i := range all {
		if i%20 == 10 {
			before := image(t, sharing)
			twin, err := Restore(before)
			if err != nil {
				t.Fatal(err)
			}
			if !sharing.ShareTables(twin) || sharing.ShareTables(twin) {
				t.Fatalf("event %d: tables are not dropped once", i)
			}
			if sharing.submodels[ofText].tables[0] != twin.submodels[ofText].tables[0] {
				t.Fatalf("event %d: it has tables of its own", i)
			}
			if !bytes.Equal(image(t, sharing), before) {
				t.Fatalf("event %d: sharing changed its bytes", i)
			}
			twins, were = append(twins, twin), append(were, before)
		}
		want, err := straight.NewPredictor().Predict(&all[i].Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := sharing.NewPredictor().Predict(&all[i].Body); err != nil || got != want {
			t.Fatalf("event %d: predicted %v, %v; want %v", i, got, err, want)
		}
		apply(t, straight, all[i])
		apply(t, sharing, all[i])
		if !bytes.Equal(image(t, sharing), image(t, straight)) {
			t.Fatalf("event %d: it went on differently", i)
		}
	}
	for i, twin := range twins {
		if !bytes.Equal(image(t, twin), were[i]) {
			t.Errorf("twin %d was changed", i)
		}
	}
}

// A model that has learnt something else keeps its tables.
func TestOtherModelsAreNoTwins(t *testing.T) {
	cfg := Config{TableBits: 8}
	all := newsletters(20, 6)
	m := newOf(t, cfg)
	apply(t, m, all...)
	later, wider, before := newOf(t, cfg), newOf(t, Config{TableBits: 9}), newOf(t, cfg)
	apply(t, later, all[:19]...)
	apply(t, wider, all...)
	apply(t, before, all...)
	apply(t, m, unlearn("u", all[3]))
	apply(t, later, unlearn("u", all[3]))
	apply(t, wider, unlearn("u", all[3]))
	for name, twin := range map[string]*Model{"of fewer events": later, "without a withdrawal": before, "of other tables": wider, "empty": newOf(t, cfg)} {
		if m.ShareTables(twin) {
			t.Errorf("a model %s is taken for a twin", name)
		}
	}
}
