package model_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"hamlet/algos/algotest/plant"
	"hamlet/algos/feature"
	"hamlet/algos/model"
)

// setAside returns lean with some events set aside.
func setAside(keys ...string) model.Config {
	cfg := lean
	cfg.SetAside = keys
	return cfg
}

// told is an event of a message that has the text.
func told(id, text string) model.Example {
	return model.Example{ID: id, Source: "desk", Spam: len(id)%2 == 0,
		Body: model.Body{Message: &feature.Message{Body: []byte(text), BodyBytes: len(text)}}}
}

// An event that cannot be read changes nothing, wherever it is read: by Apply, ahead, or by a
// predictor. The reason is the same, and the next event is learnt as if it had not been there.
func TestWhatCannotBeRead(t *testing.T) {
	plant.Reading(t, "poison")
	for name, ahead := range map[string]bool{"by Apply": false, "ahead": true} {
		t.Run(name, func(t *testing.T) {
			m, without := newModel(t, lean), newModel(t, lean)
			reader, readings := m.NewExtractor(), make([]model.Extract, 40)
			predictor := m.NewPredictor()
			for i := range readings {
				ex := told(fmt.Sprint(i), fmt.Sprintf("word%d word%d", i%7, i%3))
				bad := i%5 == 0 // the first one too: there is no sub-model yet
				if bad {
					ex.Body.Message.Body = append(ex.Body.Message.Body, " poison"...)
				}
				if ahead {
					reader.Read(&readings[i], &ex.Body)
				}
				_, asked := predictor.Predict(&ex.Body)
				before := bytesOf(t, m)
				_, err := m.Apply(&ex)
				if !bad {
					if err != nil || asked != nil {
						t.Fatalf("event %d: %v, %v", i, err, asked)
					}
					applied(t, without, ex)
					continue
				}
				var defect *model.Defect
				const want = "a defect of hamlet: read this body: a panic that a test has planted in a parser"
				if !errors.As(err, &defect) || err.Error() != want || !model.IsRefused(err) || !strings.Contains(string(defect.Stack), "planted.go") {
					t.Fatalf("event %d: got %v, want %s", i, err, want)
				}
				if asked == nil || asked.Error() != want {
					t.Errorf("event %d: a predictor says %v", i, asked)
				}
				if !bytes.Equal(bytesOf(t, m), before) {
					t.Fatalf("event %d has changed the model", i)
				}
				if err := m.Withdrawable(&ex); i > 0 && (err == nil || err.Error() != want) {
					t.Errorf("event %d: withdrawable says %v", i, err)
				}
			}
			if !bytes.Equal(bytesOf(t, m), bytesOf(t, without)) {
				t.Error("the model is not that of the other events")
			}
		})
	}
}

// learner learns events as a learner does: after a panic it goes back to the last bytes, sets
// the event aside, and learns again from there. It saves after every tenth event.
func learner(t *testing.T, m *model.Model, events []model.Example) (_ *model.Model, refused map[int]string) {
	t.Helper()
	saved, from, refused := bytesOf(t, m), 0, map[int]string{}
	for i := 0; i < len(events); i++ {
		ex := events[i]
		_, err := m.Attempt(&ex)
		var broken *model.PanicError
		switch {
		case errors.As(err, &broken):
			if _, err := m.AppendBinary(nil); !errors.Is(err, broken) || model.IsRefused(broken) {
				t.Fatalf("a damaged model gives its bytes: %v", err)
			}
			if _, err := m.Attempt(&events[0]); !errors.Is(err, broken) {
				t.Fatalf("a damaged model learns: %v", err)
			}
			if m, err = model.Restore(saved); err != nil {
				t.Fatal(err)
			}
			if err := m.SetAside(broken.Key); err != nil {
				t.Fatal(err)
			}
			saved, i = bytesOf(t, m), from-1
		case errors.Is(err, model.ErrSetAside):
			refused[i] = err.Error()
		case err != nil:
			t.Fatal(err)
		case i%10 == 9:
			saved, from = bytesOf(t, m), i+1
		}
	}
	return m, refused
}

// A model that met panics has the bytes of one that was told of these events from the
// beginning, in whichever order the keys are named. Each event is refused with its key.
func TestSetAsideFromTheBeginning(t *testing.T) {
	plant.Learning(t, "0", "13", "14", "29")
	var events []model.Example
	var keys []string
	want := map[int]string{}
	for i := range 40 {
		ex := told(fmt.Sprint(i), fmt.Sprintf("word%d word%d", i%7, i%3))
		events = append(events, ex)
		if i == 0 || i == 13 || i == 14 || i == 29 {
			keys = append([]string{ex.Key()}, keys...)
			want[i] = "a defect of hamlet: learning this event ended in a panic, and model.set_aside names it: " + ex.Key()
		}
	}
	events = append(events, events[13]) // a copy
	met, refused := learner(t, newModel(t, lean), events)
	told, refusedToo := learner(t, newModel(t, setAside(keys...)), events)
	if !bytes.Equal(bytesOf(t, met), bytesOf(t, told)) {
		t.Errorf("the models differ: %s and %s", met.Config().JSON(), told.Config().JSON())
	}
	want[40] = want[13] // its copy
	if !maps.Equal(refused, want) || !maps.Equal(refusedToo, want) {
		t.Errorf("refused %v and %v, want %v", refused, refusedToo, want)
	}
	again, err := model.Restore(bytesOf(t, met))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Attempt(&events[13]); !errors.Is(err, model.ErrSetAside) || !bytes.Equal(bytesOf(t, again), bytesOf(t, met)) {
		t.Errorf("restored, the model says %v", err)
	}
	if met.Events() != 36 {
		t.Errorf("%d events, want 36", met.Events())
	}
}

func TestKeysThatAreSetAside(t *testing.T) {
	many := make([]string, model.MostSetAside+1)
	for i := range many {
		many[i] = fmt.Sprintf("%016x", i+1)
	}
	for want, keys := range map[string][]string{
		`"77" is not the key`: {"77"}, `"0123456789ABCDEF" is not`: {"0123456789ABCDEF"}, `"0000000000000000" is not`: {"0000000000000000"},
		`"0000000000000001" is given twice`: {many[0], many[0]}, "257 events, more than 256": many,
	} {
		if _, err := model.New(setAside(keys...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.3q: %v, want %q", keys, err, want)
		}
	}
	if a := lean.JSON(); !bytes.Equal(a, setAside().JSON()) || bytes.Contains(a, []byte("set_aside")) {
		t.Errorf("a model that sets nothing aside is configured as %s", a)
	}
	m := newModel(t, setAside(many[1:]...))
	ex := said(1, true, "desk")
	applied(t, m, ex)
	before := bytesOf(t, m)
	for key, want := range map[string]string{
		ex.Key(): "was learnt, and would stay", many[0]: "257 events, more than 256", "x": "is not the key of an event", many[1]: "",
	} {
		if err := m.SetAside(key); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
	if !bytes.Equal(bytesOf(t, m), before) {
		t.Error("what was refused has changed the model")
	}
	cfg := m.Config()
	cfg.SetAside = nil
	if err := m.Adopt(cfg); err == nil || !strings.Contains(err.Error(), "cannot change set_aside") {
		t.Errorf("adopting a configuration without them: %v", err)
	}
}
