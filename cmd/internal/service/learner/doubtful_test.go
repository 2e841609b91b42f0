package learner

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/algos/trust"
	"hamlet/stream"
)

// told keeps what it is told.
type told struct {
	mu  sync.Mutex
	all []stream.JournalEntry
}

func (h *told) Labelled(e stream.JournalEntry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e)
}

// Of a model that has learnt enough, the labels that are more likely false than true are told with p, φ
// and offset, and what corrects or withdraws one. Of texts, no other label is told. A standby
// tells the same once it is active.
func TestDoubtfulLabelsAreTold(t *testing.T) {
	const n, flipped = 400, 10 // every tenth of the last 200 is flipped
	records, _ := texts(t, n)
	change := func(i int, change func(e *stream.Event)) stream.Record {
		e, err := stream.DecodeRecord(records[i].Headers, records[i].Value)
		if err != nil {
			t.Fatal(err)
		}
		change(&e)
		value, headers, err := e.EncodeRecord()
		if err != nil {
			t.Fatal(err)
		}
		return stream.Record{Key: []byte("t"), Value: value, Headers: headers}
	}
	for i := n / 2; i < n; i += flipped {
		records[i] = change(i, func(e *stream.Event) { e.Label = stream.Ham + stream.Spam - e.Label })
	}
	turned := change(n/2, func(e *stream.Event) {
		e.ID, e.Source, e.Action, e.Label = "turned", "operator", stream.Correct, stream.Ham+stream.Spam-e.Label
	})
	withdrawn := change(n/2+flipped, func(e *stream.Event) { e.Of, e.ID, e.Action = e.ID, "withdrawn", stream.Unlearn })
	records = append(records, turned, withdrawn)

	m, err := model.New(small)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range records {
		records[i].Time = time.Unix(int64(i), 0)
		in := read(&records[i], true)
		effect, err := m.Apply(&in.Example)
		if err != nil {
			t.Fatal(err)
		}
		if in.Event.Action == stream.Learn && effect.Phi < 0.5 && i >= matureAt {
			want = append(want, fmt.Sprint(i, in.identity, in.Event.Label, effect.Phi, effect.Prediction.P()))
		}
	}
	if len(want) < 5 || len(want) > n/5 {
		t.Fatalf("%d labels are doubtful", len(want))
	}
	for _, e := range []stream.Record{turned, withdrawn} {
		in := read(&e, true)
		want = append(want, fmt.Sprint(in.identity, in.Event.Label))
	}
	check := func(what string, got *told) {
		t.Helper()
		var all []string
		for _, e := range got.all {
			if e.Doubt == nil {
				all = append(all, fmt.Sprint(e.ID, e.Label))
				continue
			}
			all = append(all, fmt.Sprint(e.Doubt.Offset, e.ID, e.Label, e.Doubt.Phi, e.P))
			if e.Tenant != "t" || e.Source != "s" || e.Time.IsZero() || e.Withdrawn {
				t.Errorf("%s: told %+v", what, e)
			}
		}
		if fmt.Sprint(all) != fmt.Sprint(want) {
			t.Errorf("%s: told\n%v, want\n%v", what, all, want)
		}
		if last := got.all[len(got.all)-1]; !last.Withdrawn {
			t.Errorf("%s: the withdrawal is %+v", what, last)
		}
	}
	r := newRig(t)
	r.produce(records...)
	got := &told{}
	cfg := r.config()
	cfg.Answered = got
	r.learn(cfg, int64(len(records)))
	check("active", got)

	stood := &told{}
	r = newRig(t)
	if _, err := r.store.Seize(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	a := r.hand("a", func(cfg *Config) { cfg.Answered = stood })
	a.learn(0, records...)
	if stood.all != nil {
		t.Errorf("a standby told %v", stood.all)
	}
	a.look(lapsedAfter)
	a.idle(active)
	check("standby", stood)

	// What a muted source says does not count, and an early model knows nothing.
	in := read(&records[n/2], true)
	early, err := model.New(small)
	if err != nil {
		t.Fatal(err)
	}
	says := func(m *model.Model) (givenLabel, bool) {
		return given(m, &records[n/2], &in, &Applied{Event: &in.Event, Effect: model.Effect{Phi: .1, Standing: 1}})
	}
	doubted := func(m *model.Model) bool { g, ok := says(m); return ok && g.doubt != nil }
	if doubted(early) || !doubted(m) {
		t.Error("an early model doubts, or a mature one does not")
	}
	if err := m.SetRole("s", trust.Muted); err != nil {
		t.Fatal(err)
	}
	if g, ok := says(m); ok {
		t.Errorf("a muted source gives a label: %+v", g)
	}
}
