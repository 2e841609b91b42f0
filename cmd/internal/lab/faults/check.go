package faults

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example"
	"hamlet/state"
	"hamlet/stream"
)

// A record is one of the log's records.
type record struct {
	offset  int64
	key     []byte
	value   []byte
	headers []stream.Header
}

// readLog reads a log from its beginning to end, the offset behind the last record, with a
// reader that is not hamlet's.
func readLog(ctx context.Context, broker, topic string, end int64) ([]record, error) {
	reader := kafkago.NewReader(kafkago.ReaderConfig{
		Brokers: []string{broker}, Topic: topic, MaxWait: 100 * time.Millisecond,
	})
	defer reader.Close()
	if err := reader.SetOffset(kafkago.FirstOffset); err != nil {
		return nil, err
	}
	var records []record
	for next := int64(0); next < end; {
		m, err := reader.FetchMessage(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the log %s at %d: %w", topic, next, err)
		}
		r := record{offset: m.Offset, key: m.Key, value: m.Value}
		for _, h := range m.Headers {
			r.headers = append(r.headers, stream.Header{Key: h.Key, Value: h.Value})
		}
		records = append(records, r)
		next = m.Offset + 1
	}
	return records, nil
}

// A replayed is what a fresh model makes of the log.
type replayed struct {
	model    *model.Model
	position state.Position
	sha256   [sha256.Size]byte
	states   map[int64]*snapshot // by position: those asked for
	learnt   map[string]int      // by ID: how often it changed the model
	contents map[string][]fingerprint
}

// A snapshot is a model as it was at a position.
type snapshot struct {
	sha256    [sha256.Size]byte
	bytes     []byte
	predictor *model.Predictor // of the bytes, once it is asked
}

// replay applies records to a new model and keeps it as it was at the positions wanted.
// A learner does the same: what it cannot decode or apply changes nothing.
func replay(cfg model.Config, records []record, wanted map[int64]struct{}) (*replayed, error) {
	m, err := model.New(cfg)
	if err != nil {
		return nil, err
	}
	r := &replayed{model: m, states: map[int64]*snapshot{}, learnt: map[string]int{},
		contents: map[string][]fingerprint{}}
	keep := func() error {
		b, err := m.AppendBinary(nil)
		if err == nil {
			r.sha256 = sha256.Sum256(b)
			r.states[r.position.Next] = &snapshot{sha256: r.sha256, bytes: b}
		}
		return err
	}
	for i := range records {
		rec := &records[i]
		e, err := stream.DecodeRecord(rec.headers, rec.value)
		if err == nil {
			r.contents[e.ID] = append(r.contents[e.ID], fingerprintOf(&e))
			var ex model.Example
			if ex, _, err = example.Of(&e); err == nil {
				var effect model.Effect
				if effect, err = m.Apply(&ex); err == nil && !effect.Duplicate {
					r.learnt[e.ID]++
				}
			}
		}
		headers := make([]state.Header, len(rec.headers))
		for j, h := range rec.headers {
			headers[j] = state.Header{Key: h.Key, Value: h.Value}
		}
		r.position = r.position.Advance(rec.offset, rec.key, rec.value, headers...)
		if _, ok := wanted[r.position.Next]; ok {
			if err := keep(); err != nil {
				return nil, err
			}
		}
	}
	return r, keep()
}

// checkCheckpoint compares what Redis holds with a fresh replay of the log.
func checkCheckpoint(c *state.Checkpoint, want *replayed) (problems []string) {
	if c.Position != want.position {
		problems = append(problems, fmt.Sprintf("the model in Redis is at %v, the log ends at %v", c.Position,
			want.position))
	}
	if got := c.ModelSHA256; got != want.sha256 {
		problems = append(problems, fmt.Sprintf("the model in Redis is %x, a fresh replay of the log's %d events "+
			"makes %x",
			got[:8], want.model.Events(), want.sha256[:8]))
	}
	if c.Events != want.model.Events() {
		problems = append(problems, fmt.Sprintf("the model in Redis has %d events, a fresh replay %d", c.Events,
			want.model.Events()))
	}
	return problems
}

// most is how many IDs a problem names.
const most = 5

// checkEvents compares the log with what was sent. An acknowledged event is lost if the log lacks it,
// or if it was not learnt exactly once. An event in the log is wrong if it differs from what was sent,
// or if nobody sent it.
func checkEvents(l *ledger, log *replayed) (lost, wrong int, problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var missing, repeated, altered []string
	for id, contents := range log.contents {
		for _, got := range contents {
			if want, ok := l.sent[id]; !ok || got != want {
				altered = append(altered, id)
			}
		}
	}
	for id := range l.acked {
		if log.learnt[id] == 0 {
			missing = append(missing, id)
		}
	}
	for id, n := range log.learnt {
		if n > 1 {
			repeated = append(repeated, id)
		}
	}
	for _, kind := range []struct {
		ids  []string
		text string
		n    *int
	}{
		{missing, "acknowledged and not learnt", &lost},
		{repeated, "learnt more than once", &lost},
		{altered, "in the log, but not as sent", &wrong},
	} {
		if len(kind.ids) == 0 {
			continue
		}
		slices.Sort(kind.ids)
		*kind.n += len(kind.ids)
		problems = append(problems, fmt.Sprintf("%d events %s: %v …", len(kind.ids), kind.text,
			kind.ids[:min(most, len(kind.ids))]))
	}
	return lost, wrong, problems
}

// checkAnswers compares answers with what the models at their positions say.
func checkAnswers(answers []answer, questions [][]byte, log *replayed) (wrong int, problems []string) {
	slices.SortFunc(answers, func(a, b answer) int {
		return cmp.Or(cmp.Compare(a.next, b.next), cmp.Compare(a.question, b.question))
	})
	for i := range answers {
		if problem := checkAnswer(&answers[i], questions, log); problem != "" {
			wrong++
			if len(problems) < most {
				problems = append(problems, problem)
			}
		}
	}
	return wrong, problems
}

func checkAnswer(a *answer, questions [][]byte, log *replayed) string {
	if !(0 <= a.lo && a.lo <= a.p && a.p <= a.hi && a.hi <= 1) {
		return fmt.Sprintf("question %d: p %v is not within its interval [%v, %v]", a.question, a.p, a.lo, a.hi)
	}
	s := log.states[a.next]
	if s == nil || hex.EncodeToString(s.sha256[:]) != a.model {
		return fmt.Sprintf("question %d: the model of the log at position %d has not the SHA-256 %s", a.question,
			a.next, a.model)
	}
	if s.predictor == nil {
		m, err := model.Restore(s.bytes)
		if err != nil {
			return err.Error()
		}
		s.predictor = m.NewPredictor()
	}
	message := stream.Body{Kind: stream.Mail, Mail: questions[a.question]}
	body, _, err := example.Body(stream.DefaultName, &message)
	if err != nil {
		return err.Error()
	}
	prediction, err := s.predictor.Predict(&body)
	if err != nil {
		return err.Error()
	}
	lo, hi := prediction.Interval(model.Z90)
	want := answer{question: a.question, model: a.model, next: a.next, p: prediction.P(), z: prediction.LogOdds,
		lo: lo, hi: hi}
	if !sameAnswer(a, &want) {
		return fmt.Sprintf("question %d: answer %+v, want %+v", a.question, *a, want)
	}
	return ""
}
