package learner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/model"
	"hamlet/algos/trust"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/offline/replay"
	"hamlet/stream"
)

// standings is a log of n texts of three sources, one of which lies from a third of it on, and
// of standings between them. It returns the records and the same as items of a source.
func standings(t *testing.T, n int) (records []stream.Record, items []source.Item) {
	t.Helper()
	said := map[int]stream.Standing{
		40:       {Source: "trap", Role: stream.Anchor},
		n/3 + 30: {Source: "liar", Role: stream.Muted},
		n / 2:    {Source: "liar", Role: stream.Ordinary},
		n/2 + 25: {Source: "trap", Role: stream.Ordinary},
		n - 50:   {Source: "nobody yet", Role: stream.Muted},
	}
	plain, _ := texts(t, n)
	for i, r := range plain {
		if s, ok := said[i]; ok {
			s.ID = fmt.Sprint("s", i)
			value, headers, err := s.EncodeRecord()
			if err != nil {
				t.Fatal(err)
			}
			record := stream.Record{Value: value, Headers: headers}
			records = append(records, record, record) // a copy changes nothing
			items = append(items, source.Item{Standing: &s})
		}
		e, err := stream.DecodeRecord(r.Headers, r.Value)
		if err != nil {
			t.Fatal(err)
		}
		if e.Source = []string{"desk", "trap", "liar"}[i%3]; e.Source == "liar" && i > n/3 {
			e.Label = stream.Ham + stream.Spam - e.Label
		}
		value, headers, err := e.EncodeRecord()
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, stream.Record{Key: r.Key, Value: value, Headers: headers})
		items = append(items, source.Item{Event: e, Truth: e.Label})
	}
	return records, items
}

// A learner is killed where the standing of a source changes. The model has the bytes that
// eval makes of the same log, and a standing that cannot be read is a dead letter.
func TestDeathWhileTheStandingChanges(t *testing.T) {
	r := newRig(t)
	records, items := standings(t, 600)
	cfg := r.config()
	result, want, err := replay.Run(t.Context(), replay.Config{Model: cfg.Model}, func(yield func(source.Item, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	})
	if err != nil || result.Rejected != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	if want.Role("nobody yet") != trust.Muted || want.Role("liar") != trust.Ordinary {
		t.Fatal("eval has not followed the standings")
	}
	bad := records[slices.IndexFunc(records, func(r stream.Record) bool { return stream.IsStanding(r.Headers) })]
	bad.Value = []byte(strings.Replace(string(bad.Value), "anchor", "boss", 1))
	records = append(records, bad)
	r.produce(records...)

	for _, death := range []int{2, 1, 3, 5} { // at which standing since its start
		cfg := r.config()
		store := &mortal{Store: cfg.Store}
		cfg.Store, cfg.SaveEvery = store, 1
		cfg.Follow.MaxBatch = 7
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		followed := 0
		cfg.Observe = func(a Applied) {
			if a.Outcome != Followed {
				return
			}
			if followed++; followed == death {
				store.die()
				cancel()
			}
		}
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Run(ctx); !errors.Is(err, errDead) {
			t.Fatalf("the learner that died at standing %d ended with %v", death, err)
		}
		cancel()
	}
	counts := map[Outcome]int{}
	cfg.Observe = func(a Applied) {
		counts[a.Outcome]++
		if a.Outcome == DeadLettered && !strings.Contains(a.Reason, `role: "boss" is not one of`) {
			t.Errorf("a dead letter: %s", a.Reason)
		}
	}
	r.learn(cfg, int64(len(records)))
	c := r.head()
	if c.ModelSHA256 != sum(t, want) {
		t.Error("the model differs from the one that eval makes of the same log")
	}
	if c.Events != 600 || c.Position.Next != int64(len(records)) {
		t.Errorf("%d events at offset %d: a standing is no event, and the position covers it", c.Events, c.Position.Next)
	}
	if counts[DeadLettered] != 1 {
		t.Errorf("counted %v", counts)
	}
	m, err := model.Restore(c.Model)
	if err != nil || m.Role("nobody yet") != trust.Muted {
		t.Errorf("the saved model: %v", err)
	}
}

// How far twenty sources are trusted is shown, those with most labels, as of the
// last save. Names do not add up.
func TestStandingMetricsAreBounded(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 300)
	for i := range records {
		e, err := stream.DecodeRecord(records[i].Headers, records[i].Value)
		if err != nil {
			t.Fatal(err)
		}
		e.Source = []string{"desk", fmt.Sprint("name", i), strings.Repeat("ä", 40) + fmt.Sprint(i%4)}[i%3]
		if records[i].Value, records[i].Headers, err = e.EncodeRecord(); err != nil {
			t.Fatal(err)
		}
	}
	r.produce(records...)
	registry := prometheus.NewPedanticRegistry()
	cfg := r.config()
	cfg.Metrics = NewMetrics(registry)
	p := r.run(cfg)
	weights := func() (shown []float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "hamlet_learner_source_weight" {
				continue
			}
			for _, m := range f.GetMetric() {
				shown = append(shown, m.GetGauge().GetValue())
			}
		}
		return shown
	}
	p.until(t, "saved", func(s Status) bool { return s.SavedEnd == 300 })
	var shown []float64
	p.until(t, "shown", func(Status) bool { // the status comes first
		shown = weights()
		return len(shown) >= 15
	})
	if len(shown) > shownSources {
		t.Errorf("%d sources are shown", len(shown))
	}
	for _, w := range shown {
		if w < 0 || w > 1 {
			t.Errorf("a weight is %v", w)
		}
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if shown := weights(); len(shown) > 0 {
		t.Errorf("of a model that is gone %d sources are shown", len(shown))
	}
}
