package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/show/report"
	"hamlet/stream"
)

// letters are n short texts, spam and ham in no order.
func letters(n int) (items []source.Item) {
	r := rand.New(rand.NewPCG(4, 2))
	for i := range n {
		e := stream.Event{ID: strconv.Itoa(i), Source: "desk", Tenant: stream.DefaultName, Label: stream.Ham}
		word := "lunch"
		if r.IntN(2) == 1 {
			e.Label, word = stream.Spam, "pills"
		}
		e.Body = stream.Body{Kind: stream.Text, Text: fmt.Sprint(word, " ", r.IntN(7), " ", r.IntN(7))}
		items = append(items, source.Item{Ordinal: i, Event: e, Truth: e.Label})
	}
	return items
}

// each yields items, and then err, if it is not nil.
func each(items []source.Item, err error) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
		if err != nil {
			yield(source.Item{}, err)
		}
	}
}

// newModel returns a model, and a function that teaches it an item.
func newModel(t *testing.T, cfg model.Config) (*model.Model, func(*source.Item)) {
	t.Helper()
	m, err := model.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m, func(item *source.Item) {
		t.Helper()
		e, _, err := example.Of(&item.Event)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
}

func sum(t *testing.T, m *model.Model) string {
	t.Helper()
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// When event i, from 0, is scored, the model has learnt the first i−delay events,
// but no more than are taught; at the end the first n−delay. The oracle is a model
// that is taught by hand.
func TestSchedule(t *testing.T) {
	const n = 150 // more than two batches
	cfg := model.Config{TableBits: 8}
	items := letters(n)
	for _, c := range []struct{ delay, first int }{
		{0, 0}, {0, 40}, {0, 400}, {1, 0}, {30, 0}, {149, 0}, {150, 0}, {400, 0}, {math.MaxInt, 0},
		{30, 40}, {40, 30}, {1, 1}, {100, 70}, {30, 400},
	} {
		t.Run(fmt.Sprintf("delay %d, teach first %d", c.delay, c.first), func(t *testing.T) {
			var scores bytes.Buffer
			result, m, err := Run(t.Context(), Config{Model: cfg, Delay: c.delay, TeachFirst: c.first, Scores: &scores}, each(items, nil))
			if err != nil {
				t.Fatal(err)
			}
			want, teach := newModel(t, cfg)
			learnt, predictor := 0, want.NewPredictor()
			// known teaches what is learnt once so many events have passed.
			known := func(passed int) {
				most := passed - c.delay
				if c.first > 0 {
					most = min(most, c.first)
				}
				for ; learnt < most; learnt++ {
					teach(&items[learnt])
				}
			}
			lines := strings.Split(strings.TrimSuffix(scores.String(), "\n"), "\n")
			if len(lines) != n+1 {
				t.Fatalf("%d lines, want %d and a header", len(lines), n)
			}
			for i, line := range lines[1:] {
				known(i)
				e, _, err := example.Of(&items[i].Event)
				if err != nil {
					t.Fatal(err)
				}
				p, err := predictor.Predict(&e.Body)
				if err != nil {
					t.Fatal(err)
				}
				id, truth := items[i].Event.ID, items[i].Truth
				if head := fmt.Sprintf("%s,%s,%s,", id, truth, strconv.FormatFloat(p.P(), 'g', -1, 64)); !strings.HasPrefix(line, head) {
					t.Fatalf("event %d, with %d learnt: %s, want %s…", i, learnt, line, head)
				}
			}
			known(n)
			if got := sum(t, m); got != sum(t, want) || result.ModelSHA256 != got {
				t.Errorf("the model is not the one that learnt %d events", learnt)
			}
			if result.Events != n || result.Learned != n || result.Rejected != 0 || result.Duplicates != 0 {
				t.Errorf("%+v", result)
			}
		})
	}
}

// A standing holds for the events that come behind it in the log, with a delay as well.
func TestStandingsKeepTheirPlace(t *testing.T) {
	const n = 60
	cfg := model.Config{TableBits: 8}
	events := letters(n)
	said := map[int]stream.Standing{
		0: {ID: "1", Source: events[0].Event.Source, Role: stream.Muted}, 20: {ID: "2", Source: events[0].Event.Source, Role: stream.Anchor},
		21: {ID: "3", Source: "x", Role: stream.Muted}, 22: {ID: "4", Source: "x", Role: stream.Ordinary},
	}
	var items []source.Item
	for i, e := range events {
		if s, ok := said[i]; ok {
			items = append(items, source.Item{Standing: &s}, source.Item{Standing: &s})
		}
		items = append(items, e)
	}
	for _, delay := range []int{0, 1, 30, n} {
		result, m, err := Run(t.Context(), Config{Model: cfg, Delay: delay}, each(items, nil))
		if err != nil {
			t.Fatal(err)
		}
		want, teach := newModel(t, cfg)
		for i := range n {
			if s, ok := said[i]; ok && i <= n-delay {
				if err := example.Follow(want, &s); err != nil {
					t.Fatal(err)
				}
			}
			if i < n-delay {
				teach(&events[i])
			}
		}
		if sum(t, m) != sum(t, want) || result.Events != n || result.Rejected != 0 {
			t.Errorf("delay %d: %+v; the model is not the one that followed the standings in place", delay, result)
		}
	}
}

// The metrics leave out as many events as they are told: after TeachFirst N, From N
// measures those that were not taught, all of them.
func TestFromLeavesTheFirstOut(t *testing.T) {
	const n = 60
	items := letters(n)
	for _, from := range []int{0, 1, 24, n - 1, n, n + 1} {
		result, _, err := Run(t.Context(), Config{Model: model.Config{TableBits: 8}, From: from}, each(items, nil))
		if err != nil {
			t.Fatal(err)
		}
		spam := 0
		for i := from; i < n; i++ {
			if items[i].Truth == stream.Spam {
				spam++
			}
		}
		if want := max(0, n-from); result.Events != want || result.Spam != spam {
			t.Errorf("from %d: %d events, %d of them spam; want %d, %d", from, result.Events, result.Spam, want, spam)
		}
	}
}

// What the model refuses is no event that passes: it neither fills the delay nor
// uses up what is taught. A copy is told when it is learnt.
func TestRefusedAndKnown(t *testing.T) {
	cfg := model.Config{TableBits: 8, Dense: []string{"x"}}
	items := letters(6)
	bad := items[1]
	bad.Event.ID, bad.Event.Body = "bad", stream.Body{Kind: stream.Vector} // lacks x
	stray := &source.Rejection{Place: "line 3", Err: errors.New("no label")}
	all := func(yield func(source.Item, error) bool) {
		for i, item := range items {
			if !yield(item, nil) || !yield(bad, nil) || i == 2 && !yield(source.Item{}, stray) {
				return
			}
		}
		yield(items[0], nil)
	}
	for _, delay := range []int{0, 2} {
		var reasons []string
		result, m, err := Run(t.Context(), Config{Model: cfg, Delay: delay, TeachFirst: 3, Rejected: func(err error) {
			reasons = append(reasons, err.Error())
		}}, all)
		if err != nil {
			t.Fatal(err)
		}
		want, teach := newModel(t, cfg)
		for i := range 3 {
			teach(&items[i])
		}
		if sum(t, m) != sum(t, want) {
			t.Errorf("delay %d: the model is not the one that learnt the first three", delay)
		}
		if result.Rejected != 7 || len(reasons) != 7 || result.Events != 7 {
			t.Errorf("delay %d: %d rejected for %q, %d events", delay, result.Rejected, reasons, result.Events)
		}
	}
	for _, delay := range []int{0, 1} {
		result, _, err := Run(t.Context(), Config{Model: cfg, Delay: delay}, each([]source.Item{items[0], items[0], items[1]}, nil))
		if err != nil || result.Duplicates != 1 {
			t.Errorf("delay %d: %+v, %v, want one copy", delay, result, err)
		}
	}
}

// numbers are n vectors of which from event from on 40 % of the ham is called spam.
func numbers(n, from int) (items []source.Item) {
	r := rand.New(rand.NewPCG(11, 12))
	for i := range n {
		truth, at := stream.Ham, 0.0
		if r.IntN(2) == 1 {
			truth, at = stream.Spam, 1.6
		}
		e := stream.Event{ID: strconv.Itoa(i), Source: "desk, east", Tenant: stream.DefaultName, Label: truth, Body: stream.Body{Kind: stream.Vector}}
		for j := range 4 {
			e.Body.Vector = append(e.Body.Vector, stream.Number{Name: fmt.Sprint("x", j), Value: at + r.NormFloat64()})
		}
		if r.Float64() < .4 && i >= from {
			e.Label = stream.Spam
		}
		items = append(items, source.Item{Ordinal: i, Event: e, Truth: truth})
	}
	return items
}

// However a replay ends, what it has written are whole lines, and all of what came
// before: those of a replay that ran to its end.
func TestInterrupted(t *testing.T) {
	const n, from = 2_600, 1_000
	cfg := model.Config{TableBits: 8, Dense: []string{"x0", "x1", "x2", "x3"}, VectorEnsembles: []string{}}
	items := numbers(n, from)
	run := func(ctx context.Context, progress func(int), items iter.Seq2[source.Item, error]) (scores, alerts string, err error) {
		var s, a bytes.Buffer
		_, _, err = Run(ctx, Config{Model: cfg, Scores: &s, Alerts: &a, Progress: progress}, items)
		return s.String(), a.String(), err
	}
	scores, alerts, err := run(t.Context(), nil, each(items, nil))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(scores, "\n") != n+1 || alerts == "" {
		t.Fatalf("%d lines of scores, alerts %q", strings.Count(scores, "\n"), alerts)
	}
	// said are the alerts of the first events.
	said := func(events int) (all string) {
		for line := range strings.Lines(alerts) {
			a, err := stream.DecodeAlert([]byte(line))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if a.Event <= uint64(events) {
				all += line
			}
		}
		return all
	}
	check := func(name string, least int, gotScores, gotAlerts string) {
		t.Helper()
		learnt := strings.Count(gotScores, "\n") - 1
		if !strings.HasSuffix(gotScores, "\n") || !strings.HasPrefix(scores, gotScores) || learnt < least || learnt == n {
			t.Errorf("%s: %d lines of scores, at least %d are wanted; the last: %q", name, learnt, least, gotScores[max(0, len(gotScores)-80):])
		}
		if want := said(learnt); want == "" || gotAlerts != want {
			t.Errorf("%s: alerts\n%swant\n%s", name, gotAlerts, want)
		}
	}

	broken := errors.New("the disk is gone")
	const whole = n / 64 * 64 // batches
	gotScores, gotAlerts, err := run(t.Context(), nil, each(items[:n-1], broken))
	if !errors.Is(err, broken) {
		t.Errorf("a source that breaks off: %v", err)
	}
	check("broken off", whole, gotScores, gotAlerts)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const stop = 2_000
	endless := func(yield func(source.Item, error) bool) {
		for item, err := range each(items, nil) {
			if !yield(item, err) {
				return
			}
		}
		<-ctx.Done() // nothing comes any more
		yield(source.Item{}, context.Cause(ctx))
	}
	gotScores, gotAlerts, err = run(ctx, func(scored int) {
		if scored >= stop {
			cancel()
		}
	}, endless)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	check("interrupted", stop, gotScores, gotAlerts)
}

// A file that cannot be written is an error, and names which it is.
func TestUnwritable(t *testing.T) {
	full := writer(func([]byte) (int, error) { return 0, errors.New("no space left") })
	if _, _, err := Run(t.Context(), Config{Model: model.Config{TableBits: 8}, Scores: full}, each(letters(3), nil)); err == nil || !strings.Contains(err.Error(), "write scores: no space left") {
		t.Errorf("scores: %v", err)
	}
	cfg := Config{Model: model.Config{TableBits: 8, Dense: []string{"x0", "x1", "x2", "x3"}, VectorEnsembles: []string{}}, Alerts: full}
	if _, _, err := Run(t.Context(), cfg, each(numbers(2_600, 1_000), nil)); err == nil || !strings.Contains(err.Error(), "write alerts: no space left") {
		t.Errorf("alerts: %v", err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// Ids that hold commas, quotes or ends of lines are quoted.
func TestIDsInScores(t *testing.T) {
	items := letters(4)
	ids := []string{"a", "a,b", `a"b`, "a\nb"}
	for i := range items {
		items[i].Event.ID = ids[i]
	}
	var scores bytes.Buffer
	if _, _, err := Run(t.Context(), Config{Model: model.Config{TableBits: 8}, Scores: &scores}, each(items, nil)); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(&scores).ReadAll()
	if err != nil || len(records) != 1+len(ids) || strings.Join(records[0], ",") != "id,label,p,log_odds,lo,hi" {
		t.Fatalf("%v, %v", records, err)
	}
	for i, id := range ids {
		if records[1+i][0] != id {
			t.Errorf("id %q is written so that it reads %q", id, records[1+i][0])
		}
	}
}

// The result tells how the gate of mail and text stands, where something stands beside
// the head.
func TestResultHasTheGates(t *testing.T) {
	for _, cfg := range []model.Config{{TableBits: 8}, {TableBits: 8, TextEnsembles: []string{"adaboost"}}} {
		result, m, err := Run(context.Background(), Config{Model: cfg}, each(letters(200), nil))
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Gates) != len(cfg.TextEnsembles) {
			t.Fatalf("ensembles %v: gates %+v", cfg.TextEnsembles, result.Gates)
		}
		for i, g := range m.Gates() {
			want := report.Gate{Partition: 0, Body: g.Body, Open: g.Open, Lead: g.Lead, Since: g.Since, Served: g.Served, Events: 200}
			if got := result.Gates[i]; got != want || g.Lead == 0 {
				t.Errorf("gate %+v, want %+v", got, want)
			}
		}
	}
}

// An answer that is learnt as a label does not count as a label of its source.
func TestAssumedAnswersAreNoLabels(t *testing.T) {
	items := letters(60)
	m, teach := newModel(t, model.Config{TableBits: 8})
	for i := range 50 {
		teach(&items[i])
	}
	r := &replay{model: m, predictor: m.NewPredictor(), metrics: eval.New()}
	item := items[50]
	item.Event.Action, item.Event.Of = stream.Assume, "4e1cbb8ec4b4e7c5f2a3a1d0b6e9f807"
	for range 2 {
		e, _, err := example.Of(&item.Event)
		if err != nil {
			t.Fatal(err)
		}
		r.step(&parsed{example: e, truth: item.Truth})
		item = items[51]
	}
	if a := m.Assumed(); a.Ham+a.Spam != 1 || m.Events() != 52 {
		t.Fatalf("%+v assumed, %d events", a, m.Events())
	}
	if n := r.doubts.Learnt(); n != 1 {
		t.Errorf("%d labels were counted, want that of the event that somebody labelled", n)
	}
}
