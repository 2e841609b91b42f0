package model_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"hamlet/algos/drift"
	"hamlet/algos/model"
)

// The log is sms in its order. A fifth of the labels from message 2,501 to 2,600 is false, and all
// others are true. That is one incident, and it ends. In these draws it was 127, 127, 67 and 59
// incidents: as long as the concept alarm stood, each was followed by another.
func TestBadLabelsThatEndOnSMS(t *testing.T) {
	sms := smsEvents(t)[:3_200]
	for seed := range uint64(4) {
		events := slices.Clone(sms)
		r := rand.New(rand.NewPCG(seed, 1))
		for i := 2_500; i < 2_600; i++ {
			events[i].Spam = events[i].Spam != (r.IntN(5) == 0)
		}
		m := newModel(t, model.Config{})
		opened := 0
		var last model.Alert
		for i := range events {
			effect, err := m.Apply(&events[i])
			if err != nil {
				t.Fatal(err)
			}
			for _, last = range effect.Alerts {
				if last.Transition == 1 {
					opened++
				}
			}
		}
		if opened != 1 || last.State != drift.Cleared || last.Kind != drift.KindLabelNoise {
			t.Errorf("seed %d: %d incidents, at last %s %s", seed, opened, last.State, last.Kind)
		}
	}
}
