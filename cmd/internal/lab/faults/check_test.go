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
	"hamlet/cmd/internal/example"
	"hamlet/cmd/internal/lab/synthetic"
	"hamlet/state"
	"hamlet/stream"
)

// A world is two partitions' logs, their replays, and answers to a question that are
// right.
type world struct {
	cfg       model.Config
	ledger    *ledger
	records   [][]record
	logs      []*replayed
	questions []question
	answers   []answer
}

const perPartition = 30

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
	w.logs, w.answers = slices.Clone(first.logs), slices.Clone(first.answers)
	w.records = nil
	for _, records := range first.records {
		w.records = append(w.records, slices.Clone(records))
	}
	return &w
}

func makeWorld(t *testing.T) *world {
	t.Helper()
	cfg, err := modelConfig()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{cfg: cfg, ledger: newLedger(), records: make([][]record, 2)}
	generator, err := synthetic.New(synthetic.Config{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * perPartition {
		item, err := generator.Next()
		if err != nil {
			t.Fatal(err)
		}
		e := item.Event
		e.ID, e.Tenant = fmt.Sprint(i), "tenant"
		w.ledger.send(&e)
		w.ledger.ack(e.ID)
		w.append(t, i%2, &e)
	}
	if w.questions, err = newQuestions(3, 1); err != nil {
		t.Fatal(err)
	}
	w.replay(t, [][2]int64{{10, 20}, {30, 30}})
	for _, at := range [][2]int64{{10, 20}, {30, 30}} {
		for q := range w.questions {
			w.answers = append(w.answers, w.answerAt(t, q, at[:]))
		}
	}
	return w
}

// append appends an event to a log.
func (w *world) append(t *testing.T, partition int, e *stream.Event) {
	t.Helper()
	value, headers, err := e.EncodeRecord()
	if err != nil {
		t.Fatal(err)
	}
	w.records[partition] = append(w.records[partition], record{offset: int64(len(w.records[partition])), value: value, headers: headers})
}

func (w *world) replay(t *testing.T, at [][2]int64) {
	t.Helper()
	w.logs = nil
	for p, records := range w.records {
		wanted := map[int64]struct{}{}
		for _, positions := range at {
			wanted[positions[p]] = struct{}{}
		}
		log, err := replay(w.cfg, records, wanted)
		if err != nil {
			t.Fatal(err)
		}
		w.logs = append(w.logs, log)
	}
}

// answerAt answers as a scorer does: from models that were restored from their bytes.
func (w *world) answerAt(t *testing.T, q int, positions []int64) answer {
	t.Helper()
	var models []*model.Model
	var sums []byte
	for p, next := range positions {
		s := w.logs[p].states[next]
		m, err := model.Restore(s.bytes)
		if err != nil {
			t.Fatal(err)
		}
		models, sums = append(models, m), append(sums, s.sha256[:]...)
	}
	message := stream.Body{Kind: stream.Mail, Mail: w.questions[q].mail}
	body, _, err := example.Body("", &message)
	if err != nil {
		t.Fatal(err)
	}
	p, err := model.NewPool(models...).Predict(&body)
	if err != nil {
		t.Fatal(err)
	}
	lo, hi := p.Interval(model.Z90)
	sum := sha256.Sum256(sums)
	return answer{question: q, model: hex.EncodeToString(sum[:]), positions: positions, p: p.P(), z: p.LogOdds, lo: lo, hi: hi}
}

func (w *world) checkpoint(t *testing.T, partition int) *state.Checkpoint {
	t.Helper()
	log := w.logs[partition]
	b, err := log.model.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &state.Checkpoint{Events: log.model.Events(), Position: log.position, Model: b}
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
			w.records[0] = append(w.records[0], w.records[0][3])
			w.records[0][perPartition].offset = perPartition
			w.replay(t, [][2]int64{{10, 20}, {30, 30}})
		}, 0, 0, 0, ""},
		{"an event that was sent, is in the log and was not acknowledged", func(t *testing.T, w *world) {
			delete(w.ledger.acked, "7")
		}, 0, 0, 0, ""},
		{"an acknowledged event that no log has", func(t *testing.T, w *world) {
			w.ledger.send(&stream.Event{ID: "gone"})
			w.ledger.ack("gone")
		}, 1, 0, 0, "1 events acknowledged and not learnt: [gone]"},
		{"an event learnt in two partitions", func(t *testing.T, w *world) {
			r := w.records[1][0]
			r.offset = perPartition
			w.records[0] = append(w.records[0], r)
			w.replay(t, [][2]int64{{10, 20}, {30, 30}})
		}, 1, 0, 0, "learnt more than once: [1]"},
		{"an event that says something else", func(t *testing.T, w *world) {
			e, err := stream.DecodeRecord(w.records[0][4].headers, w.records[0][4].value)
			if err != nil {
				t.Fatal(err)
			}
			e.Body.Mail = append(slices.Clone(e.Body.Mail), '!')
			w.ledger.send(&e)
		}, 0, 1, 0, "not as sent: [8]"},
		{"an event that nobody sent", func(t *testing.T, w *world) {
			delete(w.ledger.sent, "8")
		}, 0, 1, 0, "not as sent: [8]"},
		{"another probability", func(t *testing.T, w *world) { w.answers[2].z += 1e-15; w.answers[2].p = w.answers[3].p }, 0, 0, 1, "want"},
		{"the next model's answer", func(t *testing.T, w *world) { w.answers[0].positions = []int64{11, 20} }, 0, 0, 1, "no model of the log at positions [11 20]"},
		{"another model", func(t *testing.T, w *world) { w.answers[0].model = w.answers[5].model }, 0, 0, 1, "no model of the log"},
		{"beyond the log's end", func(t *testing.T, w *world) { w.answers[0].positions = []int64{10, 31} }, 0, 0, 1, "no model of the log"},
		{"p outside its interval", func(t *testing.T, w *world) { w.answers[1].lo = (w.answers[1].p + 1) / 2 }, 0, 0, 1, "is not within its interval"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.spoil(t, w)
			lost, wrong, problems := checkEvents(w.ledger, w.logs)
			other, more := checkAnswers(w.answers, w.questions, w.logs)
			said := strings.Join(append(problems, more...), "\n")
			if lost != c.lost || wrong != c.wrong || other != c.other || !strings.Contains(said, c.says) || (c.says == "") != (said == "") {
				t.Errorf("%d lost, %d events and %d answers wrong, want %d, %d and %d with %q:\n%s", lost, wrong, other, c.lost, c.wrong, c.other, c.says, said)
			}
		})
	}
}

// An answer before the second partition has a model names one position. It may be that
// of either.
func TestAnswerOfOnePartition(t *testing.T) {
	w := newWorld(t)
	a := w.answerAt(t, 0, []int64{10})
	// The SHA-256 of one partition's model is its own.
	a.model = hex.EncodeToString(w.logs[0].states[10].sha256[:])
	if wrong, problems := checkAnswers([]answer{a}, w.questions, w.logs); wrong != 0 {
		t.Error(problems)
	}
	wanted := wantedPositions([]answer{a, {positions: []int64{3, 4}}}, 2)
	for p, want := range [][]int64{{3, 10}, {4, 10}} {
		if got := slices.Sorted(maps.Keys(wanted[p])); !slices.Equal(got, want) {
			t.Errorf("partition %d: positions %v, want %v", p, got, want)
		}
	}
}

// A checkpoint passes only with the model, the position and the chain of the log.
func TestCheckCheckpoint(t *testing.T) {
	w := newWorld(t)
	if problems := checkCheckpoint(0, w.checkpoint(t, 0), w.logs[0]); problems != nil {
		t.Errorf("the log's own model: %v", problems)
	}
	for name, spoil := range map[string]func(c *state.Checkpoint){
		"a bit of the model":    func(c *state.Checkpoint) { c.Model[len(c.Model)/2] ^= 1 },
		"the position":          func(c *state.Checkpoint) { c.Position.Next-- },
		"the chain":             func(c *state.Checkpoint) { c.Position.Chain[0] ^= 1 },
		"the number of events":  func(c *state.Checkpoint) { c.Events++ },
		"the other partition's": func(c *state.Checkpoint) { *c = *w.checkpoint(t, 1) },
	} {
		c := w.checkpoint(t, 0)
		spoil(c)
		if problems := checkCheckpoint(0, c, w.logs[0]); problems == nil {
			t.Errorf("%s: nothing found", name)
		}
	}
}
