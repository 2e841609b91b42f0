package model_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/algos/text"
)

// someOfEach returns events of all kinds of bodies and all actions.
func someOfEach(n int, seed uint64) []model.Example {
	learnt := madeUp(n, seed)
	var all []model.Example
	for i, ex := range learnt {
		ex.Body.Tenant = fmt.Sprint("t", i%3)
		ex.Identity = "message-" + ex.ID
		all = append(all, ex)
		old := all[len(all)/2]
		switch i % 7 {
		case 3:
			all = append(all, model.Example{ID: "u" + ex.ID, Source: old.Source, Action: model.Unlearn, Of: old.ID, Body: old.Body})
		case 4:
			all = append(all, model.Example{ID: "r" + ex.ID, Source: old.Source, Action: model.Relearn, Of: old.ID, Spam: !old.Spam, Body: old.Body})
		case 5, 6:
			all = append(all, model.Example{ID: "c" + ex.ID, Source: "user", Action: model.Correct, Of: ex.Identity, Spam: !ex.Spam, Body: ex.Body})
		}
	}
	return all
}

// A model that is given Readings, made by other goroutines in memory that is used again, says
// and becomes the same as one that reads for itself.
func TestReadingAheadChangesNothing(t *testing.T) {
	plain := small
	plain.Dense = dense
	personal := model.Config{TableBits: 10, PersonalExperts: []string{text.TextWords, text.HeaderWords}}
	for name, cfg := range map[string]model.Config{
		"full": plain, "personal": personal,
		"frozen":      plain.WithFrozen(frozenOf(t, 3, 10)),
		"frozen only": model.Config{TableBits: 8, TextExperts: []string{text.Lean}, SkipHeaders: []string{"from"}}.WithFrozen(frozenOf(t, 3, 11)),
	} {
		t.Run(name, func(t *testing.T) {
			alone, served := newModel(t, cfg), newModel(t, cfg)
			events := someOfEach(250, 4)
			given := make([]model.Example, len(events))
			copy(given, events)
			const readers, room = 2, 6 // each slot has one reader
			var ready, free [room]chan struct{}
			var readings [room]model.Extract
			for i := range room {
				ready[i], free[i] = make(chan struct{}, 1), make(chan struct{}, 1)
				free[i] <- struct{}{}
			}
			for w := range readers {
				r := served.NewExtractor()
				go func() {
					for i := w; i < len(given); i += readers {
						<-free[i%room]
						r.Read(&readings[i%room], &given[i].Body)
						ready[i%room] <- struct{}{}
					}
				}()
			}
			used := 0
			for i := range events {
				<-ready[i%room]
				if given[i].Body.Extract != nil {
					used++
				}
				want, wantErr := alone.Apply(&events[i])
				got, err := served.Apply(&given[i])
				if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("event %d: %v and %v (-read by the model +read ahead):\n%s", i, wantErr, err, diff)
				}
				free[i%room] <- struct{}{}
			}
			if used < len(events)*9/10 {
				t.Errorf("only %d of %d events were read ahead", used, len(events))
			}
			if sumOf(t, alone) != sumOf(t, served) {
				t.Error("the models differ")
			}
		})
	}
}

// What is no reading of the body by this model is not used.
func TestForeignReadings(t *testing.T) {
	cfg := model.Config{TableBits: 8, TextExperts: []string{text.TextWords}, PersonalExperts: []string{text.TextWords}}
	m, other := newModel(t, cfg), newModel(t, cfg)
	events := madeUp(200, 5)
	apply(t, m, events)
	body := func(words, tenant string) *model.Body {
		return &model.Body{Tenant: tenant, Message: &feature.Message{Body: []byte(words)}}
	}
	p := m.NewPredictor()
	this := body("Pill1 Pill2 Pill3", "t")
	want, err := p.Predict(this)
	if err != nil {
		t.Fatal(err)
	}
	of := func(m *model.Model, b *model.Body) *model.Extract {
		var r model.Extract
		m.NewExtractor().Read(&r, b)
		return &r
	}
	elsewhere := *this
	elsewhere.Tenant = "u"
	var again model.Extract
	m.NewExtractor().Read(&again, this)
	m.NewExtractor().Read(&again, body("meet1", "t"))
	for name, reading := range map[string]*model.Extract{
		"nothing was read": new(model.Extract), "another model": of(other, this), "another body": of(m, body("meet1", "t")),
		"another tenant": of(m, &elsewhere), "a vector": of(m, &model.Body{Vector: []feature.Number{{Name: "a", Value: 1}}}),
		"memory that was used again": &again, "this one": of(m, this),
	} {
		this.Extract = reading
		if got, err := p.Predict(this); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	refused := model.Body{Vector: []feature.Number{{Name: "b"}, {Name: "a"}}}
	m.NewExtractor().Read(&again, &refused)
	if refused.Extract != nil {
		t.Error("a body that the model refuses was read")
	}
}
