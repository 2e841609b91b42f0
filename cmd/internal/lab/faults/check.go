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
	"hamlet/cmd/internal/example"
	"hamlet/state"
	"hamlet/stream"
)

// A record is one of a partition's records.
type record struct {
	offset  int64
	key     []byte
	value   []byte
	headers []stream.Header
}

// readLog reads a partition from its beginning to end, the offset behind the last
// record, with a reader that is not hamlet's.
func readLog(ctx context.Context, broker, topic string, partition int, end int64) ([]record, error) {
	reader := kafkago.NewReader(kafkago.ReaderConfig{
		Brokers: []string{broker}, Topic: topic, Partition: partition, MaxWait: 100 * time.Millisecond,
	})
	defer reader.Close()
	if err := reader.SetOffset(kafkago.FirstOffset); err != nil {
		return nil, err
	}
	var records []record
	for next := int64(0); next < end; {
		m, err := reader.FetchMessage(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the log of %s/%d at %d: %w", topic, partition, next, err)
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

// A replayed is what a fresh model makes of a partition's log.
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
	sha256 [sha256.Size]byte
	bytes  []byte
	model  *model.Model // restored when it is first asked
}

// replay applies records to a new model and keeps it as it was at the positions wanted.
// A learner does the same: what it cannot decode or apply changes nothing.
func replay(cfg model.Config, records []record, wanted map[int64]struct{}) (*replayed, error) {
	m, err := model.New(cfg)
	if err != nil {
		return nil, err
	}
	r := &replayed{model: m, states: map[int64]*snapshot{}, learnt: map[string]int{}, contents: map[string][]fingerprint{}}
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

// checkCheckpoint compares what Redis holds of a partition with a fresh replay of its log.
func checkCheckpoint(partition int, c *state.Checkpoint, want *replayed) (problems []string) {
	if c.Position != want.position {
		problems = append(problems, fmt.Sprintf("partition %d: the model in Redis is at %v, the log ends at %v", partition, c.Position, want.position))
	}
	if got := c.ModelSHA256(); got != want.sha256 {
		problems = append(problems, fmt.Sprintf("partition %d: the model in Redis is %x, a fresh replay of the log's %d events makes %x",
			partition, got[:8], want.model.Events(), want.sha256[:8]))
	}
	if c.Events != want.model.Events() {
		problems = append(problems, fmt.Sprintf("partition %d: the model in Redis has %d events, a fresh replay %d", partition, c.Events, want.model.Events()))
	}
	return problems
}

// most is how many IDs a problem names.
const most = 5

// checkEvents compares the logs with what was sent. Lost are acknowledged events that no
// log has or that were not learnt exactly once; wrong are events that say something else
// than was sent, or that nobody sent.
func checkEvents(l *ledger, logs []*replayed) (lost, wrong int, problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	learnt := map[string]int{}
	var altered []string
	for _, log := range logs {
		for id, n := range log.learnt {
			learnt[id] += n
		}
		for id, contents := range log.contents {
			for _, got := range contents {
				if want, ok := l.sent[id]; !ok || got != want {
					altered = append(altered, id)
				}
			}
		}
	}
	var missing, repeated []string
	for id := range l.acked {
		if learnt[id] == 0 {
			missing = append(missing, id)
		}
	}
	for id, n := range learnt {
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
		problems = append(problems, fmt.Sprintf("%d events %s: %v …", len(kind.ids), kind.text, kind.ids[:min(most, len(kind.ids))]))
	}
	return lost, wrong, problems
}

// wantedPositions returns the positions that answers name, for each partition. An answer
// of fewer partitions than there are does not say which.
func wantedPositions(answers []answer, partitions int) []map[int64]struct{} {
	wanted := make([]map[int64]struct{}, partitions)
	for p := range wanted {
		wanted[p] = map[int64]struct{}{}
	}
	for i := range answers {
		for at, next := range answers[i].positions {
			for p := range wanted {
				if len(answers[i].positions) < partitions || p == at {
					wanted[p][next] = struct{}{}
				}
			}
		}
	}
	return wanted
}

// checkAnswers compares answers with what the models at their positions say. logs are
// ascending by partition.
func checkAnswers(answers []answer, questions []question, logs []*replayed) (wrong int, problems []string) {
	pools := map[string]*model.Pool{}
	var first []string
	slices.SortFunc(answers, func(a, b answer) int {
		return cmp.Or(slices.Compare(a.positions, b.positions), cmp.Compare(a.question, b.question))
	})
	for i := range answers {
		a := &answers[i]
		if problem := checkAnswer(a, questions, logs, pools); problem != "" {
			wrong++
			if len(first) < most {
				first = append(first, problem)
			}
		}
	}
	return wrong, first
}

func checkAnswer(a *answer, questions []question, logs []*replayed, pools map[string]*model.Pool) string {
	if !(0 <= a.lo && a.lo <= a.p && a.p <= a.hi && a.hi <= 1) {
		return fmt.Sprintf("question %d: p %v is not within its interval [%v, %v]", a.question, a.p, a.lo, a.hi)
	}
	key := fmt.Sprint(a.model, a.positions)
	pool, ok := pools[key]
	if !ok {
		var err error
		if pool, err = poolOf(a, logs); err != nil {
			return err.Error()
		}
		pools[key] = pool
	}
	if pool == nil {
		return fmt.Sprintf("question %d: no model of the log at positions %v has the SHA-256 %s", a.question, a.positions, a.model)
	}
	message := stream.Body{Kind: stream.Mail, Mail: questions[a.question].mail}
	body, _, err := example.Body(stream.DefaultName, &message)
	if err != nil {
		return err.Error()
	}
	prediction, err := pool.Predict(&body)
	if err != nil {
		return err.Error()
	}
	lo, hi := prediction.Interval(model.Z90)
	want := answer{question: a.question, model: a.model, positions: a.positions, p: prediction.P(), z: prediction.LogOdds, lo: lo, hi: hi}
	if !sameAnswer(a, &want) {
		return fmt.Sprintf("question %d: answer %+v, want %+v", a.question, *a, want)
	}
	return ""
}

// poolOf returns the models that an answer names, nil if a replay has none such.
func poolOf(a *answer, logs []*replayed) (*model.Pool, error) {
	for _, partitions := range choose(len(logs), len(a.positions)) {
		var sums []byte
		var states []*snapshot
		for i, p := range partitions {
			s := logs[p].states[a.positions[i]]
			if s == nil {
				break
			}
			states, sums = append(states, s), append(sums, s.sha256[:]...)
		}
		if len(states) < len(a.positions) || len(states) == 0 {
			continue
		}
		sum := states[0].sha256
		if len(states) > 1 {
			sum = sha256.Sum256(sums)
		}
		if hex.EncodeToString(sum[:]) != a.model {
			continue
		}
		var models []*model.Model
		for _, s := range states {
			if s.model == nil {
				var err error
				if s.model, err = model.Restore(s.bytes); err != nil {
					return nil, err
				}
			}
			models = append(models, s.model)
		}
		return model.NewPool(models...), nil
	}
	return nil, nil
}

// choose returns all ascending choices of k of the numbers below n.
func choose(n, k int) (all [][]int) {
	if k == 0 {
		return [][]int{nil}
	}
	for last := k - 1; last < n; last++ {
		for _, rest := range choose(last, k-1) {
			all = append(all, append(slices.Clone(rest), last))
		}
	}
	return all
}
