package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/learner"
	"hamlet/cmd/internal/service/scorer"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/questions"
)

// config is the models': small, and quick to raise an alarm.
var config = model.Config{
	TableBits: 8, DuplicateWindow: 1000, TextExperts: []string{"lean"}, VectorEnsembles: []string{},
	Dense: []string{"a", "b", "c"},
}

// remote returns a log as a node sees it.
func (n *node) remote(d *disk, name string) *remote { return &remote{n, d, name} }

// second is the configuration of a second model that begins with the log.
var second = model.Config{
	TableBits: 8, DuplicateWindow: 500, TextExperts: []string{"lean"}, VectorEnsembles: []string{},
	Dense: []string{"c", "b", "a"},
}

// learner returns the configuration of a learner as a service makes it.
func (w *World) learner(n *node) learner.Config {
	log := w.logger(n)
	events := n.remote(&w.events, "events")
	return learner.Config{
		Follow: follow.Config{Log: events, Name: events.Name(), Logger: log}, Topic: stream.EventsTopic(stream.DefaultName),
		Letters: n.remote(&w.letters, "letters"), Receipts: n.remote(&w.receipts, "receipts"),
		Predictions: n.remote(&w.predictions, "predictions"), Alerts: &notices{n},
		Store: &shelf{n, w.vault, stream.DefaultName}, Model: config, Name: stream.DefaultName, Writer: n.name,
		Announce: func(*stream.Alert) {}, Log: log,
	}
}

func (w *World) runLearner(ctx context.Context, n *node, p *process) error {
	return w.runWith(ctx, p, w.learner(n))
}

// runShadow runs a learner of the second model: a shadow, except where it is alone in its world.
func (w *World) runShadow(ctx context.Context, n *node, p *process) error {
	cfg := w.learner(n)
	cfg.Name, cfg.Store = candidate, &shelf{n, w.vault, candidate}
	cfg.Predictions = n.remote(&w.others, "others")
	if !w.heard {
		cfg.Shadow = &learner.Shadow{Of: stream.DefaultName, Promotion: func(ctx context.Context) (state.Promotion, error) {
			promotion, err := (&shelf{n, w.vault, stream.DefaultName}).Promotion(ctx)
			if err == nil || errors.Is(err, state.ErrNone) {
				w.heardOf(n.name, err == nil && promotion.Model == candidate)
			}
			return promotion, err
		}}
	}
	w.mu.Lock()
	if !w.fromVersion {
		cfg.Model = second
	}
	w.mu.Unlock()
	return w.runWith(ctx, p, cfg)
}

func (w *World) runWith(ctx context.Context, p *process, cfg learner.Config) error {
	l, err := learner.New(cfg)
	if err != nil {
		return err
	}
	w.mu.Lock()
	p.learner = l
	w.mu.Unlock()
	return l.Run(ctx)
}

func (w *World) runScorer(ctx context.Context, n *node, _ *process) error {
	s := scorer.New(scorer.Config{
		Questions: &w.bus, Store: &shelf{n, w.vault, stream.DefaultName}, PollInterval: scorer.PollInterval, Log: w.logger(n),
	})
	return s.Run(ctx)
}

// token is what clients send.
const token = "a token of the simulation, long enough"

func (w *World) runIngest(ctx context.Context, n *node, p *process) error {
	h := ingest.NewHTTP(ingest.HTTPConfig{Events: n.remote(&w.events, "events"), Token: token, Log: w.logger(n)})
	w.mu.Lock()
	p.ingest = h
	w.mu.Unlock()
	<-ctx.Done()
	return nil
}

// A notices is where a node publishes alerts. It implements [stream.AlertPublisher].
type notices struct{ *node }

// Publish implements [stream.AlertPublisher].
func (p *notices) Publish(ctx context.Context, alerts ...stream.Alert) error {
	for _, a := range alerts {
		err := p.call(ctx, portAlerts, "Publish", func() error {
			w := p.world
			w.mu.Lock()
			defer w.mu.Unlock()
			if time.Now().Before(w.refused) {
				if !slices.Contains(w.outcome.Did, Refused) {
					w.outcome.Did = append(w.outcome.Did, Refused)
				}
				return fmt.Errorf("%w: no rights", stream.ErrAlerts)
			}
			if _, known := w.alerts[a.MessageID()]; !known {
				w.alerts[a.MessageID()] = published{time.Now(), a}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// label is a client of ingest: it sends an event until it is acknowledged.
func (w *World) label(client int, e *stream.Event) {
	body, err := e.AppendJSON(nil)
	if err != nil {
		w.violate("%v", err)
		return
	}
	for try := 0; w.ctx.Err() == nil; try++ {
		code, answer := w.post(ingests[(client+try)%len(ingests)], body)
		switch {
		case code == http.StatusAccepted:
			w.mu.Lock()
			w.acknowledged[e.ID] = true
			w.mu.Unlock()
			return
		case code == http.StatusServiceUnavailable, code == http.StatusTooManyRequests, code == 0:
			_ = sleep(w.ctx, 500*time.Millisecond)
		default:
			w.violate("the label %s is answered with %d: %s", e.ID, code, answer)
			return
		}
	}
}

// post sends a body to an ingest, and returns its answer. Code 0 means no answer.
func (w *World) post(to string, body []byte) (code int, text string) {
	w.mu.Lock()
	p := w.processes[to]
	h, n := p.ingest, p.node
	w.mu.Unlock()
	if h == nil {
		return 0, ""
	}
	r := httptest.NewRequestWithContext(w.ctx, http.MethodPost, "/events", bytes.NewReader(body))
	r.Header.Set("Content-Type", stream.ContentTypeJSON)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, began := &recorder{httptest.NewRecorder()}, time.Now()
	h.ServeHTTP(answer, r)
	w.mu.Lock()
	w.outcome.Post = max(w.outcome.Post, time.Since(began))
	w.mu.Unlock()
	if n.dead.Load() {
		return 0, ""
	}
	return answer.Code, answer.Body.String()
}

// A recorder is an answer whose request arrives at once, whatever its deadline.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetReadDeadline(time.Time) error { return nil }

// labelling sends a share of the labels, at times that the seed draws.
func (w *World) labelling(client int) {
	r := random(w.plan.Seed, fmt.Sprint("client ", client))
	var sent []stream.Event
	for i := client; i < len(w.begin.more) && !w.healed.Load(); i += 2 {
		_ = sleep(w.ctx, time.Duration(r.ExpFloat64()*float64(350*time.Millisecond)))
		e := w.begin.more[i]
		switch k := r.IntN(80); {
		case k == 0 && len(sent) > 10: // withdraw what was taught a while ago
			of := sent[len(sent)-1-r.IntN(10)]
			e.ID, e.Action, e.Of, e.Label, e.Body = "withdraw "+e.ID, stream.Unlearn, of.ID, stream.Unlabelled, of.Body
		case k == 1 && len(sent) > 10: // correct it
			of := sent[len(sent)-1-r.IntN(10)]
			e.ID, e.Action, e.Of, e.Body = "relearn "+e.ID, stream.Relearn, of.ID, of.Body
		case k < 20:
			e.Body = stream.Body{Kind: stream.Text, Text: fmt.Sprintf("word%d winner%d lunch", r.IntN(50), r.IntN(3))}
			sent = append(sent, e)
		default:
			sent = append(sent, e)
		}
		w.label(client, &e)
	}
}

// asking asks the scorers until the world is healed, and once afterwards.
func (w *World) asking() {
	gateway := w.newNode("gateway")
	w.bus.Before = func(ctx context.Context) error {
		return gateway.call(ctx, portBus, "Ask", func() error { return nil })
	}
	r := random(w.plan.Seed, "gateway")
	for healed := false; !healed && w.ctx.Err() == nil; {
		healed = w.healed.Load()
		_ = sleep(w.ctx, time.Duration(r.ExpFloat64()*float64(time.Second)))
		w.ask(2 * time.Second)
	}
}

// ask asks about a text and reports whether there is an answer.
func (w *World) ask(within time.Duration) bool {
	_, err := w.question(within)
	return err == nil
}

// question asks about a text.
func (w *World) question(within time.Duration) ([]stream.Verdict, error) {
	ctx, cancel := context.WithTimeout(w.ctx, within)
	defer cancel()
	began := time.Now()
	verdicts, err := w.bus.Ask(ctx, questions.Question{Body: []byte("winner lunch"), ContentType: questions.Text})
	w.mu.Lock()
	w.outcome.Ask = max(w.outcome.Ask, time.Since(began))
	w.mu.Unlock()
	var refusal *questions.Refusal
	if errors.As(err, &refusal) && refusal.Code != questions.Unavailable {
		w.violate("a question is refused: %v", err)
	}
	if err != nil {
		return nil, err
	}
	for i := range verdicts {
		w.answered(&verdicts[i].Model)
	}
	return verdicts, nil
}
