package learner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/drift"
	"hamlet/algos/model"
	"hamlet/algos/stack"
	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
	"hamlet/stream/servertest"
)

// A natsRig is a NATS server.
type natsRig struct {
	t    *testing.T
	conn *natsgo.Conn
}

func newNATSRig(t *testing.T) *natsRig {
	t.Helper()
	server, err := embedded.StartNATS(embedded.NATSOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	conn, err := nats.Connect(nats.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return &natsRig{t, conn}
}

func (n *natsRig) publisher() *nats.Alerts {
	n.t.Helper()
	a, err := nats.NewAlerts(n.conn, nats.AlertsConfig{})
	if err != nil {
		n.t.Fatal(err)
	}
	return a
}

// ids returns the ids of the alerts that the stream holds, in order. Each message must stand
// under its own subject, and an alert that names a kind under that kind as well.
func (n *natsRig) ids() (ids []string) {
	n.t.Helper()
	js, err := jetstream.New(n.conn)
	if err != nil {
		n.t.Fatal(err)
	}
	s, err := js.Stream(n.t.Context(), nats.AlertStream)
	if err != nil {
		n.t.Fatal(err)
	}
	var named, want []string
	for seq := range s.CachedInfo().State.LastSeq {
		m, err := s.GetMsg(n.t.Context(), seq+1)
		if err != nil {
			n.t.Fatal(err)
		}
		a, err := stream.DecodeAlert(m.Data)
		if got := m.Header.Get("Nats-Msg-Id"); err != nil || got != m.Subject+"/"+a.MessageID() {
			n.t.Errorf("%s under %s: id %s, %v", m.Data, m.Subject, got, err)
		}
		if m.Subject != nats.IncidentSubject(a.Model) {
			named = append(named, a.MessageID())
			continue
		}
		ids = append(ids, a.MessageID())
		if stream.NamesKind(a.State) {
			want = append(want, a.MessageID())
		}
	}
	if !slices.Equal(named, want) {
		n.t.Errorf("under their kinds the stream holds %v, of the incidents %v", named, want)
	}
	return ids
}

// raised is what a model says of an alarm at an event.
func raised(event uint64) *model.Effect {
	return &model.Effect{Alerts: []model.Alert{{
		Kind: drift.KindConcept, Body: model.BodyText, State: drift.Raised, Event: event, Incident: event, Transition: 1,
		Status: drift.Status{Raised: true, Known: true, Level: 25, Threshold: 24}, Diagnosis: drift.MeaningChanged,
	}}}
}

// opened returns an active worker, as the follower would hold it. It has just saved.
func opened(t *testing.T, cfg Config) *worker {
	t.Helper()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l.answered, l.running = time.Now, t.Context()
	t.Cleanup(l.savings.Wait)
	p, err := l.open(t.Context())
	if err == nil {
		err = p.changePhase(t.Context())
	}
	if err != nil || p.phase != active {
		t.Fatalf("%v, %v", p.phase, err)
	}
	p.lastSave = time.Now()
	return p
}

// handle gives records to a worker, from an offset on.
func handle(t *testing.T, p *worker, records []stream.Record, from int64) error {
	batch := slices.Clone(records)
	for i := range batch {
		batch[i].Offset = from + int64(i)
	}
	return p.Handle(t.Context(), batch, from+int64(len(batch)))
}

// What a partition holds for NATS is bounded: with so many alerts it stands still
// until they are out.
func TestAlertsAreBounded(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 5)
	asked, answer := make(chan context.Context, 1), make(chan error)
	cfg := r.config()
	cfg.Alerts = publishFunc(func(ctx context.Context, alerts ...stream.Alert) error {
		if alerts[0].Event > 1 && alerts[0].Event <= maxAlerts {
			return nil
		}
		asked <- ctx
		return <-answer
	})
	p := opened(t, cfg)
	for i := range maxAlerts {
		p.announce(raised(uint64(i+1)), true)
	}
	handled := make(chan error, 1)
	go func() { handled <- handle(t, p, records, 0) }()
	if _, bounded := (<-asked).Deadline(); bounded {
		t.Error("the attempt ends before the alerts are out")
	}
	answer <- nil
	if err := <-handled; err != nil {
		t.Fatal(err)
	}
	if len(p.outbox.pending) != 0 {
		t.Errorf("%d alerts are left", len(p.outbox.pending))
	}

	// A refusal ends the learner; nothing is lost.
	p.announce(raised(2000), true)
	go func() { handled <- p.Idle(t.Context()) }()
	if _, bounded := (<-asked).Deadline(); !bounded {
		t.Error("with one alert learning waits without a limit")
	}
	answer <- fmt.Errorf("%w: no rights", stream.ErrAlerts)
	if err := <-handled; !errors.Is(err, stream.ErrAlerts) {
		t.Errorf("got %v, want ErrAlerts", err)
	}
}

// A NATS that is slower than the first attempts allow is heard in the end, long
// before the partition is full; one that is down does not take much of the time.
func TestAttemptsGrowWithThePauses(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer time.Duration
		heard  bool
	}{{"slow", 1200 * time.Millisecond, true}, {"down", time.Hour, false}} {
		t.Run(c.name, func(t *testing.T) {
			cfg := newRig(t).config()
			answer := time.Hour // at first it is down
			cfg.Alerts = publishFunc(func(ctx context.Context, _ ...stream.Alert) error {
				select {
				case <-time.After(answer):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			p := opened(t, cfg)
			p.announce(raised(1), true)
			synctest.Test(t, func(t *testing.T) {
				var standing time.Duration
				began := time.Now()
				for len(p.outbox.pending) > 0 && time.Since(began) < 10*time.Minute {
					asked := time.Now()
					if _, err := p.outbox.publish(t.Context()); err != nil {
						t.Fatal(err)
					}
					standing += time.Since(asked)
					answer = c.answer
					<-time.After(time.Until(p.outbox.next))
				}
				if heard := len(p.outbox.pending) == 0; heard != c.heard {
					t.Errorf("published: %v, want %v", heard, c.heard)
				}
				// Apart from a part of the pauses: the first attempt, of 2 s, and 0.5 s after
				// each pause below 7.5 s. Pauses begin with 0.25 s, double, and vary by one
				// half, so that there are at most six of these.
				if most := 5*time.Second + time.Since(began)/alertPauseRatio; !c.heard && standing > most {
					t.Errorf("learning stood still for %v of %v, want at most %v", standing, time.Since(began), most)
				}
			})
		})
	}
}

// A handler that failed is dropped by the follower without Close: this learner then has no model,
// and must not show one.
func TestAFailedModelIsNotShown(t *testing.T) {
	refused := fmt.Errorf("%w: no rights", stream.ErrAlerts)
	for _, c := range []struct {
		name  string
		setUp func(*Config)
		fail  func(*rig, *worker, []stream.Record) error
		want  error
	}{
		{"an alert is refused", func(cfg *Config) {
			cfg.Alerts = publishFunc(func(context.Context, ...stream.Alert) error { return refused })
		}, func(_ *rig, p *worker, _ []stream.Record) error {
			p.announce(raised(1), true)
			return p.Idle(t.Context())
		}, stream.ErrAlerts},
		{"it is asked to stop while alerts are full", func(cfg *Config) {
			cfg.Alerts = publishFunc(func(ctx context.Context, _ ...stream.Alert) error { <-ctx.Done(); return ctx.Err() })
		}, func(_ *rig, p *worker, records []stream.Record) error {
			for i := range maxAlerts {
				p.announce(raised(uint64(i+1)), true)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			return p.Handle(ctx, records[:1], 1)
		}, context.DeadlineExceeded},
		{"a dead letter cannot be written", func(cfg *Config) {
			cfg.Letters = lettersFunc(func(context.Context, ...stream.Record) error { return errDead })
		}, func(_ *rig, p *worker, records []stream.Record) error {
			records[1].Value = []byte("nonsense")
			return handle(t, p, records, 0)
		}, errDead},
		{"the saved model is another learner's", func(*Config) {}, func(r *rig, p *worker, records []stream.Record) error {
			if err := handle(t, p, records, 0); err != nil {
				return err
			}
			settled(t, p)
			r.saveOther()
			p.l.watch.step(t.Context()) // a beat, which is refused
			p.again = time.Time{}
			if err := p.Idle(t.Context()); err != nil {
				return err
			}
			p.l.watch.step(t.Context())
			return p.Idle(t.Context())
		}, follow.ErrReload},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			records, _ := texts(t, 5)
			registry := prometheus.NewRegistry()
			cfg := r.config()
			cfg.Metrics = NewMetrics(registry)
			c.setUp(&cfg)
			p := opened(t, cfg)
			const shown = "hamlet_learner_next_offset{0}"
			if _, ok := gathered(t, registry)[shown]; !ok {
				t.Fatal("an open model is not shown")
			}
			if err := c.fail(r, p, records); !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if s := p.l.Status(); s.Loaded {
				t.Errorf("the status still has %+v", s)
			}
			if v, ok := gathered(t, registry)[shown]; ok {
				t.Errorf("%s is still %v", shown, v)
			}
		})
	}
}

type lettersFunc func(ctx context.Context, records ...stream.Record) error

func (f lettersFunc) Append(ctx context.Context, records ...stream.Record) error {
	return f(ctx, records...)
}

type publishFunc func(ctx context.Context, alerts ...stream.Alert) error

func (f publishFunc) Publish(ctx context.Context, alerts ...stream.Alert) error {
	return f(ctx, alerts...)
}

// Alarms, gates and rebuilds show in the metrics, and go from there with the model.
func TestAlarmMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	m.status("m", Status{Active: true, WindowBytes: 7, PendingAlerts: 2, Alarms: []model.Alarm{
		{Kind: drift.KindLabelNoise, Body: model.BodyText, Status: drift.Status{Raised: true, Known: true, Level: -4, Reference: -3.5, Threshold: .2}},
		{Kind: drift.KindConcept, Body: model.BodyVector},
	}, Gates: []model.Gate{{Body: model.BodyText, Gate: stack.Gate{Open: true, Lead: -1.5}}}})
	alert := stream.Alert{Kind: stream.AlertConcept, State: stream.AlertRaised, Body: stream.AlertText}
	m.alert(&alert)
	m.rebuilt(&model.Rebuild{Rebuild: stack.Rebuild{Ensemble: "logit-trees"}})
	m.rebuilt(&model.Rebuild{Rebuild: stack.Rebuild{Ensemble: "logit-trees", Err: errors.New("x")}})
	m.applied(&Applied{Outcome: Learned, Effect: model.Effect{Epsilon: .25, Phi: 1},
		Event: &stream.Event{Label: stream.Spam, Body: stream.Body{Kind: stream.Vector}}})
	want := map[string]float64{
		"hamlet_alarm{text,label-noise,0}": 1, "hamlet_alarm{vector,concept,0}": 0,
		"hamlet_alarm_level{text,label-noise,0}": -4, "hamlet_alarm_reference{text,label-noise,0}": -3.5,
		"hamlet_alarm_threshold{text,label-noise,0}": .2, "hamlet_window_bytes{0}": 7, "hamlet_alerts_pending{0}": 2,
		"hamlet_alerts_total{text,concept,0,raised}": 1, "hamlet_rebuilds_total{logit-trees,ok}": 1, "hamlet_rebuilds_total{logit-trees,failed}": 1,
		"hamlet_flip_rate{vector,0}": .25, "hamlet_gate_open{text,0}": 1, "hamlet_gate_lead_nats{text,0}": -1.5,
	}
	got := gathered(t, registry)
	for name, v := range want {
		if g, ok := got[name]; !ok || g != v {
			t.Errorf("%s is %v (there: %v), want %v", name, g, ok, v)
		}
	}
	m.drop("m")
	after := gathered(t, registry)
	if active, ok := after["hamlet_learner_active{m,0}"]; !ok || active != 0 {
		t.Errorf("hamlet_learner_active is %v (there: %v), want 0 where the model is gone", active, ok)
	}
	for name := range after {
		if strings.HasSuffix(name, ",0}") || strings.HasSuffix(name, "{0}") {
			if !strings.HasPrefix(name, "hamlet_learner_records_total") && !strings.HasPrefix(name, "hamlet_learner_active") {
				t.Errorf("%s is left when the model is gone", name)
			}
		}
	}
}

// gathered returns the values of counters and gauges by name and labels' values.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			out[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

// A failed rebuild is said once, with its reason.
func TestFailedRebuildIsLogged(t *testing.T) {
	r := newRig(t)
	var log servertest.Buffer
	cfg := r.config()
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	p := opened(t, cfg)
	effect := &model.Effect{Rebuilds: []model.Rebuild{{
		Body: model.BodyVector, Rebuild: stack.Rebuild{Ensemble: "viboost", Started: 500, Rows: 2000, Err: errors.New("one class only")},
	}}}
	p.announce(effect, true)
	p.announce(effect, false)
	if s := log.String(); strings.Count(s, "rebuild failed") != 1 || !strings.Contains(s, "ensemble=viboost") || !strings.Contains(s, `reason="one class only"`) {
		t.Errorf("the log says\n%s", s)
	}
}
