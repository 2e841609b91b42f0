package model_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hamlet/algos/drift"
	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/algos/text"
)

// wordy returns n labelled events of words drawn from a list that is the same for
// all, of which from event from on every third is spam in words of its own: mails
// or vectors of names.
func wordy(n, from int, vectors bool) []model.Example {
	r := rand.New(rand.NewPCG(21, 22))
	all := make([]model.Example, n)
	for i := range all {
		ex := model.Example{ID: strconv.Itoa(i), Source: "desk", Spam: r.IntN(2) == 0, Body: model.Body{Tenant: "t"}}
		unheard := i >= from && i%3 == 0
		var words []string
		for range 20 + r.IntN(40) {
			switch {
			case unheard:
				words = append(words, strconv.FormatUint(r.Uint64(), 36))
			case r.IntN(4) == 0:
				words = append(words, fmt.Sprint(map[bool]string{true: "pill", false: "meet"}[ex.Spam], r.IntN(30)))
			default:
				words = append(words, fmt.Sprint("word", r.IntN(300)))
			}
		}
		ex.Spam = ex.Spam || unheard
		if !vectors {
			text := strings.Join(words, " ")
			ex.Body.Message = &feature.Message{Body: []byte(text), BodyBytes: len(text)}
			all[i] = ex
			continue
		}
		slices.SortFunc(words, cmp.Compare[string])
		for _, w := range slices.Compact(words) {
			ex.Body.Vector = append(ex.Body.Vector, feature.Number{Name: w, Value: 1})
		}
		all[i] = ex
	}
	return all
}

// covariateRaised applies events and returns those at which the covariate alarm
// was raised, from 1, and what else was raised.
func covariateRaised(t *testing.T, cfg model.Config, events []model.Example) (at []int, others []string) {
	t.Helper()
	m := newModel(t, cfg)
	for i := range events {
		effect, err := m.Apply(&events[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range effect.Alerts {
			switch {
			case a.State == drift.Raised && a.Kind == drift.KindCovariate:
				at = append(at, i+1)
			case a.State == drift.Raised:
				others = append(others, a.Kind)
			}
		}
	}
	return at, others
}

// Mail in words that nobody has used raises the covariate alarm, once and alone;
// so do vectors of such names, as long as no dense names say what is usual. Words
// that were there before do not.
func TestUnheardWordsRaiseCovariate(t *testing.T) {
	const n, from = 2200, 1700
	for _, vectors := range []bool{false, true} {
		at, others := covariateRaised(t, model.Config{}, wordy(n, from, vectors))
		if len(at) != 1 || at[0] <= from || at[0] > from+300 || len(others) > 0 {
			t.Errorf("vectors %v: raised at %v, want once from %d to %d; others %v", vectors, at, from+1, from+300, others)
		}
		if at, others := covariateRaised(t, model.Config{}, wordy(n, n, vectors)); len(at)+len(others) > 0 {
			t.Errorf("vectors %v: nothing happens, and covariate is raised at %v, others %v", vectors, at, others)
		}
	}
}

// Without the expert that counts, the alarm looks at the head's leverage, to which
// words say nothing.
func TestCovariateWithoutAnExpertThatCounts(t *testing.T) {
	const n, from = 2200, 1700
	cfg := model.Config{TextExperts: []string{text.HeaderWords, text.Text5Grams, text.TextWords}}
	if at, _ := covariateRaised(t, cfg, wordy(n, from, false)); len(at) > 0 {
		t.Errorf("raised at %v by the leverage of experts' log-odds", at)
	}
}
