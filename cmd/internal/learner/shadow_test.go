package learner

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/model"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// beside returns a rig of the same log whose store is that of another model.
func (r *rig) beside(name string) *rig {
	r.t.Helper()
	other := *r
	var err error
	if other.store, err = redis.New(redis.Config{Addr: r.options.Addr, Model: name}); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = other.store.Close() })
	return &other
}

// A promoter says which model is promoted.
type promoter struct {
	mu    sync.Mutex
	model string
}

func (p *promoter) promote(model string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.model = model
}

func (p *promoter) promotion(context.Context) (state.Promotion, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.model == "" {
		return state.Promotion{}, state.ErrNone
	}
	return state.Promotion{Model: p.model}, nil
}

// shownAlarms returns how many series of alarms a registry shows.
func shownAlarms(t *testing.T, r *prometheus.Registry) (alarms int) {
	t.Helper()
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		if name := family.GetName(); name == "hamlet_alarm" || name == "hamlet_alarm_level" {
			alarms += len(family.GetMetric())
		}
		for _, m := range family.GetMetric() {
			if family.GetName() == "hamlet_alerts_total" && m.GetCounter().GetValue() > 0 {
				alarms++
			}
		}
	}
	return alarms
}

// A shadow learns the same log under its own configuration and computes its alarms. Nobody hears
// them, and it writes no dead letters and receipts. From the time on at which it is promoted its
// alarms are heard.
func TestShadowOfOnePartition(t *testing.T) {
	r := newRig(t, 1)
	const events, from = 3000, 1800
	made := model.Config{TableBits: 8, DuplicateWindow: 5000, Dense: noisy().Dense}
	records, alerts, m := labelled(t, made, r.topic, events, func(i int, spam bool, u float64) bool { return spam != (i >= from && u < .1) })
	raised := alerts[1].Event
	early := append(slices.Clone(records[:raised-1]), kafka.Record{Topic: r.topic, Value: []byte("no event")})
	r.produce(early...)

	cand := r.beside("cand")
	var said []stream.Alert
	registry := prometheus.NewRegistry()
	who := &promoter{}
	cfg := r.config("cand")
	cfg.Name, cfg.Store, cfg.Model, cfg.Metrics = "cand", cand.store, made, NewMetrics(registry)
	cfg.Shadow = &Shadow{Of: "default", Promotion: who.promotion, Poll: 5 * time.Millisecond}
	cfg.Alerts = publishFunc(func(_ context.Context, a ...stream.Alert) error { said = append(said, a...); return nil })
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Standing(); got != "shadow of default" {
		t.Errorf("standing %q", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	until := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); !holds(); <-time.After(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what, ": not in time")
			}
		}
	}
	until("learnt", func() bool { return l.Status()[0].Next == int64(len(early)) })
	if n := shownAlarms(t, registry); n != 0 {
		t.Errorf("%d alarms of a shadow are in the metrics", n)
	}
	who.promote("cand")
	until("promoted", func() bool { return !l.silent() })
	r.produce(records[raised-1:]...)
	until("learnt", func() bool { return l.Status()[0].Events == events })
	until("alarms of a promoted shadow are in the metrics", func() bool { return shownAlarms(t, registry) > 0 })
	if !strings.HasPrefix(l.Standing(), "shadow of default, promoted") {
		t.Errorf("it stands as %q", l.Standing())
	}
	who.promote("default")
	until("gone back", l.silent)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if len(said) != 1 || said[0].Model != "cand" || said[0].State != stream.AlertRaised {
		t.Errorf("alerts %+v, want the second of %d", said, len(alerts))
	}
	if cand.head().ModelSHA256() != sum(t, m) {
		t.Error("the model of a shadow is not the one that the log makes")
	}
	_, letters, err := kafka.Offsets(t.Context(), r.kafka, stream.DeadLetterTopic)
	if err != nil || letters[0] != 0 {
		t.Errorf("a shadow wrote dead letters: %v, %v", letters, err)
	}
}

// A shadow learns nothing before it knows whether it is promoted.
func TestAShadowAsksUntilItIsAnswered(t *testing.T) {
	for name, answer := range map[string]error{"promoted": nil, "nothing is": state.ErrNone, "corrupt": state.ErrCorrupt, "no rights": errors.New("NOPERM")} {
		asked := 0
		l := &Learner{cfg: Config{Name: "cand", Log: slog.New(slog.DiscardHandler), Metrics: NewMetrics(nil), Shadow: &Shadow{Of: "default", Poll: time.Millisecond,
			Promotion: func(context.Context) (state.Promotion, error) {
				if asked++; asked < 3 {
					return state.Promotion{}, state.Transient(errors.New("no redis"))
				}
				return state.Promotion{Model: "cand"}, answer
			}}}}
		l.hearing.silent.Store(true)
		if l.beginHearing(t.Context()); asked != 3 || l.silent() != (answer != nil) {
			t.Errorf("%s: asked %d times, silent %v", name, asked, l.silent())
		}
		ctx, cancel := context.WithCancel(t.Context())
		l.cfg.Shadow.Promotion = func(context.Context) (state.Promotion, error) {
			cancel()
			return state.Promotion{}, state.Transient(errors.New("no redis"))
		}
		l.beginHearing(ctx)
	}
}

// A shadow of one model of several partitions follows the order log of the first learner, and
// never begins or extends it. Each dead letter comes once, from the first.
func TestShadowFollowsTheOrder(t *testing.T) {
	r := newOrderedRig(t, 4)
	records := withLetters(t, r, 600)
	r.spread(slices.Clone(records[:300]))
	cand := r.beside("cand")
	shadow := r.ordered("shadow")
	shadow.Name, shadow.Store, shadow.Model.TableBits = "cand", cand.store, 9
	shadow.Shadow = &Shadow{Of: "default"}
	if _, err := New(shadow); err == nil {
		t.Error("a shadow that can append to the order log is no error")
	}
	shadow.Order.Append = nil
	run := func(cfg Config) (l *Learner, stop func()) {
		t.Helper()
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		return l, func() {
			t.Helper()
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	l, stop := run(shadow)
	for l.Status()[0].Order == nil || !l.Status()[0].Order.Active {
		<-time.After(5 * time.Millisecond)
	}
	if got := r.orderLog(); len(got) != 0 {
		t.Errorf("a shadow began the order log: %+v", got)
	}
	if got := l.Standing(); got != "shadow of default; active, 0 records of the order log behind" {
		t.Errorf("standing %q", got)
	}
	first := r.ordered("first")
	_, stopFirst := run(first)
	r.untilSaved()
	cand.untilSaved()
	stop() // and again, from what it has saved
	r.spread(slices.Clone(records[300:]))
	r.untilSaved()
	_, stop = run(shadow)
	cand.untilSaved()
	stop()
	stopFirst()
	cand.wantReplayed(shadow)
	r.wantReplayed(first)
	for _, rec := range r.orderLog() {
		if rec.Writer != "first" || rec.Kind == order.Gap {
			t.Errorf("the order log has %+v", rec)
		}
	}
	letters := r.letters()
	for letter, n := range letters {
		if n != 1 {
			t.Errorf("%.60s came %d times", letter, n)
		}
	}
	if len(letters) != 60 {
		t.Errorf("%d dead letters, want 60", len(letters))
	}
}
