package faults

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"hamlet/algos/model"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/service/example"
	"hamlet/state"
	"hamlet/stream"
)

// A world is a log, its replay, and right answers to questions.
type world struct {
	cfg       model.Config
	ledger    *ledger
	records   []record
	log       *replayed
	questions [][]byte
	answers   []answer
}

// events are how many the log has; at are the positions that answers name.
const events = 60

var at = []int64{20, 60}

var (
	once  sync.Once
	first *world
)

// newWorld returns a world of its own: the models, which nothing changes, are shared.
func newWorld(t *testing.T) *world {
	t.Helper()
	once.Do(func() { first = makeWorld(t) })
	if first == nil {
		t.Fatal("the first test could not make it")
	}
	w := *first
	w.ledger = &ledger{sent: maps.Clone(first.ledger.sent), acked: maps.Clone(first.ledger.acked)}
	w.records, w.answers = slices.Clone(first.records), slices.Clone(first.answers)
	log := *first.log
	log.learnt = maps.Clone(first.log.learnt)
	w.log = &log
	return &w
}

func makeWorld(t *testing.T) *world {
	t.Helper()
	cfg, err := modelConfig()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{cfg: cfg, ledger: newLedger()}
	generator, err := synthetic.New(synthetic.Config{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		item, err := generator.Next()
		if err != nil {
			t.Fatal(err)
		}
		e := item.Event
		e.ID, e.Tenant = fmt.Sprint(i), "tenant"
		w.ledger.send(&e)
		w.ledger.ack(e.ID)
		w.append(t, &e)
	}
	if w.questions, err = newQuestions(3, 1); err != nil {
		t.Fatal(err)
	}
	w.replay(t)
	for _, next := range at {
		for q := range w.questions {
			w.answers = append(w.answers, w.answerAt(t, q, next))
		}
	}
	return w
}

// append appends an event to the log.
func (w *world) append(t *testing.T, e *stream.Event) {
	t.Helper()
	value, headers, err := e.EncodeRecord()
	if err != nil {
		t.Fatal(err)
	}
	w.records = append(w.records, record{offset: int64(len(w.records)), value: value, headers: headers})
}

func (w *world) replay(t *testing.T) {
	t.Helper()
	wanted := map[int64]struct{}{}
	for _, next := range at {
		wanted[next] = struct{}{}
	}
	var err error
	if w.log, err = replay(w.cfg, w.records, wanted); err != nil {
		t.Fatal(err)
	}
}

// answerAt answers as a scorer does: from a model that was restored from its bytes.
func (w *world) answerAt(t *testing.T, q int, next int64) answer {
	t.Helper()
	s := w.log.states[next]
	m, err := model.Restore(s.bytes)
	if err != nil {
		t.Fatal(err)
	}
	message := stream.Body{Kind: stream.Mail, Mail: w.questions[q]}
	body, _, err := example.Body("", &message)
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.NewPredictor().Predict(&body)
	if err != nil {
		t.Fatal(err)
	}
	lo, hi := p.Interval(model.Z90)
	return answer{question: q, model: hex.EncodeToString(s.sha256[:]), next: next, p: p.P(), z: p.LogOdds,
		lo: lo, hi: hi}
}

func (w *world) checkpoint(t *testing.T) *state.Checkpoint {
	t.Helper()
	b, err := w.log.model.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &state.Checkpoint{Events: w.log.model.Events(), Position: w.log.position, Model: b, ModelSHA256: sha256.Sum256(b)}
}

// The checks find nothing where nothing is wrong, and each of them finds its fault.
func TestChecks(t *testing.T) {
	for _, c := range []struct {
		name               string
		spoil              func(t *testing.T, w *world)
		lost, wrong, other int // events lost, events wrong, answers wrong
		says               string
	}{
		{"nothing", func(*testing.T, *world) {}, 0, 0, 0, ""},
		{"a copy in the log", func(t *testing.T, w *world) {
			w.records = append(w.records, w.records[3])
			w.records[events].offset = events
			w.replay(t)
		}, 0, 0, 0, ""},
		{"an event that was sent, is in the log and was not acknowledged", func(t *testing.T, w *world) {
			delete(w.ledger.acked, "7")
		}, 0, 0, 0, ""},
		{"an acknowledged event that the log has not", func(t *testing.T, w *world) {
			w.ledger.send(&stream.Event{ID: "gone"})
			w.ledger.ack("gone")
		}, 1, 0, 0, "1 events acknowledged and not learnt: [gone]"},
		{"an event learnt twice", func(t *testing.T, w *world) { w.log.learnt["1"]++ }, 1, 0, 0,
			"learnt more than once: [1]"},
		{"an event that says something else", func(t *testing.T, w *world) {
			e, err := stream.DecodeRecord(w.records[8].headers, w.records[8].value)
			if err != nil {
				t.Fatal(err)
			}
			e.Body.Mail = append(slices.Clone(e.Body.Mail), '!')
			w.ledger.send(&e)
		}, 0, 1, 0, "not as sent: [8]"},
		{"an event that nobody sent", func(t *testing.T, w *world) {
			delete(w.ledger.sent, "8")
		}, 0, 1, 0, "not as sent: [8]"},
		{"another probability", func(t *testing.T,
			w *world) {
			w.answers[2].p = (w.answers[2].p + w.answers[2].hi) / 2
		}, 0, 0, 1, "want"},
		{"the next model's answer", func(t *testing.T, w *world) { w.answers[0].next = 21 }, 0, 0, 1,
			"the model of the log at position 21 has not"},
		{"another model", func(t *testing.T, w *world) { w.answers[0].model = w.answers[5].model }, 0, 0, 1,
			"the model of the log at position 20 has not"},
		{"beyond the log's end", func(t *testing.T, w *world) { w.answers[0].next = events + 1 }, 0, 0, 1,
			"the model of the log at position 61 has not"},
		{"p outside its interval", func(t *testing.T, w *world) { w.answers[1].lo = (w.answers[1].p + 1) / 2 }, 0, 0, 1,
			"is not within its interval"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.spoil(t, w)
			lost, wrong, problems := checkEvents(w.ledger, w.log)
			other, more := checkAnswers(w.answers, w.questions, w.log)
			said := strings.Join(append(problems, more...), "\n")
			if lost != c.lost || wrong != c.wrong || other != c.other || !strings.Contains(said, c.says) ||
				(c.says == "") != (said == "") {
				t.Errorf("%d lost, %d events and %d answers wrong, want %d, %d and %d with %q:\n%s", lost, wrong, other,
					c.lost, c.wrong, c.other, c.says, said)
			}
		})
	}
}

// A checkpoint passes only with the model, the position and the chain of the log.
func TestCheckCheckpoint(t *testing.T) {
	w := newWorld(t)
	if problems := checkCheckpoint(w.checkpoint(t), w.log); problems != nil {
		t.Errorf("the log's own model: %v", problems)
	}
	for name, spoil := range map[string]func(c *state.Checkpoint){
		"the model":            func(c *state.Checkpoint) { c.ModelSHA256[5] ^= 1 },
		"the position":         func(c *state.Checkpoint) { c.Position.Next-- },
		"the chain":            func(c *state.Checkpoint) { c.Position.Chain[0] ^= 1 },
		"the number of events": func(c *state.Checkpoint) { c.Events++ },
	} {
		c := w.checkpoint(t)
		spoil(c)
		if problems := checkCheckpoint(c, w.log); problems == nil {
			t.Errorf("%s: nothing found", name)
		}
	}
}
