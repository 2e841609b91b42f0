package learner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hamlet/algos/model"
	"hamlet/state"
	"hamlet/stream"
)

// A doomed store calls die after the save that covers the events so far, and refuses all
// later ones.
type doomed struct {
	Store
	at   uint64 // events; 0: none
	die  func()
	dead atomic.Bool
}

func (s *doomed) Save(ctx context.Context, c *state.Checkpoint) (int64, error) {
	if s.dead.Load() {
		return 0, errDead
	}
	version, err := s.Store.Save(ctx, c)
	if err == nil && c.Events == s.at {
		s.dead.Store(true)
		s.die()
	}
	return version, err
}

// Where a tenth of the labels is wrong, that is suspected first and named label noise later.
// One learner dies when it has published the suspicion and not saved it, one when it has
// saved in the middle of the incident. The stream has each transition once, and the model is
// one that never died.
func TestDeathInAnIncident(t *testing.T) {
	r, n := newRig(t), newNATSRig(t)
	const events, from = 3000, 1800
	made := model.Config{TableBits: 8, DuplicateWindow: 5000, Dense: noisy().Dense}
	records, alerts, m := labelled(t, made, events, func(i int, spam bool, u float64) bool { return spam != (i >= from && u < .1) })
	var steps []string
	for _, a := range alerts {
		steps = append(steps, a.State+" "+a.Kind)
	}
	if d := cmp.Diff([]string{"suspected unknown", "raised label-noise"}, steps); d != "" {
		t.Fatalf("steps (-want +got):\n%s", d)
	}
	suspected, raised := alerts[0].Event, alerts[1].Event
	publisher := n.publisher()
	cfg := r.config()
	cfg.Model, cfg.Alerts = made, publisher
	const before = 1000 // a checkpoint before anything is wrong
	r.produce(records[:before]...)
	r.learn(cfg, before)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dies := func(store *doomed, publisher stream.AlertPublisher) {
		t.Helper()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		store.Store, store.die = cfg.Store, stop
		cfg := cfg
		cfg.Alerts, cfg.Store = publisher, store
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Run(ctx); err != nil && !errors.Is(err, errDead) || !store.dead.Load() {
			t.Fatalf("a learner that was to die ended with %v", err)
		}
	}
	middle := (suspected + raised) / 2
	r.produce(records[before:middle]...)
	early := new(doomed)
	dies(early, publishFunc(func(ctx context.Context, a ...stream.Alert) error {
		err := publisher.Publish(ctx, a...)
		early.dead.Store(true)
		early.die()
		return err
	}))
	if got := r.head().Events; got >= suspected {
		t.Fatalf("%d events are saved, the suspicion is of event %d", got, suspected)
	}
	dies(&doomed{at: middle}, publisher)
	if got := r.head().Events; got != middle {
		t.Fatalf("%d events are saved, want %d", got, middle)
	}
	r.produce(records[middle:]...)
	r.learn(cfg, events)
	if r.head().ModelSHA256 != sum(t, m) {
		t.Error("the model differs from one that never died")
	}
	if got, want := n.ids(), messageIDs(alerts); !slices.Equal(got, want) {
		t.Errorf("the stream of alerts holds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
