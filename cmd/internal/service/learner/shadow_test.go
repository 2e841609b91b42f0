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
func TestAShadowIsNotHeard(t *testing.T) {
	r := newRig(t)
	const events, from = 3000, 1800
	made := model.Config{TableBits: 8, DuplicateWindow: 5000, Dense: noisy().Dense}
	records, alerts, m := labelled(t, made, events, func(i int, spam bool, u float64) bool { return spam != (i >= from && u < .1) })
	raised := alerts[1].Event
	early := append(slices.Clone(records[:raised-1]), stream.Record{Value: []byte("no event")})
	r.produce(early...)

	cand := r.beside("cand")
	var said []stream.Alert
	registry := prometheus.NewRegistry()
	who := &promoter{}
	cfg := r.config()
	cfg.Name, cfg.Store, cfg.Model, cfg.Metrics = "cand", cand.config().Store, made, NewMetrics(registry)
	cfg.Shadow = &Shadow{Of: "default", Promotion: who.promotion, Poll: 5 * time.Millisecond}
	cfg.Alerts = publishFunc(func(_ context.Context, a ...stream.Alert) error { said = append(said, a...); return nil })
	p := r.run(cfg)
	l := p.l
	until := func(what string, holds func() bool) {
		t.Helper()
		p.until(t, what, func(Status) bool { return holds() })
	}
	until("learnt", func() bool { return l.Status().Next == int64(len(early)) })
	if got := l.Summary(); got != "shadow of default; active, 0 records behind" {
		t.Errorf("standing %q", got)
	}
	if n := shownAlarms(t, registry); n != 0 {
		t.Errorf("%d alarms of a shadow are in the metrics", n)
	}
	who.promote("cand")
	until("promoted", func() bool { return !l.silent() })
	r.produce(records[raised-1:]...)
	until("learnt", func() bool { return l.Status().Events == events })
	until("alarms of a promoted shadow are in the metrics", func() bool { return shownAlarms(t, registry) > 0 })
	if !strings.HasPrefix(l.Summary(), "shadow of default, promoted") {
		t.Errorf("it stands as %q", l.Summary())
	}
	who.promote("default")
	until("gone back", l.silent)
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if got := l.Summary(); got != "shadow of default; loading" {
		t.Errorf("standing %q", got)
	}
	if len(said) != 1 || said[0].Model != "cand" || said[0].State != stream.AlertRaised {
		t.Errorf("alerts %+v, want the second of %d", said, len(alerts))
	}
	if cand.head().ModelSHA256 != sum(t, m) {
		t.Error("the model of a shadow is not the one that the log makes")
	}
	if letters := r.letters(); len(letters) != 0 {
		t.Errorf("a shadow wrote %v", letters)
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
		l.muting.silent.Store(true)
		if l.beginMuted(t.Context()); asked != 3 || l.silent() != (answer != nil) {
			t.Errorf("%s: asked %d times, silent %v", name, asked, l.silent())
		}
		ctx, cancel := context.WithCancel(t.Context())
		l.cfg.Shadow.Promotion = func(context.Context) (state.Promotion, error) {
			cancel()
			return state.Promotion{}, state.Transient(errors.New("no redis"))
		}
		l.beginMuted(ctx)
	}
}
