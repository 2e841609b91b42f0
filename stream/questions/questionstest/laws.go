// Package questionstest holds the laws that every [questions.Questions] and its
// [questions.Asker] obey, as a test suite, and [Memory], which is both in one process.
package questionstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"hamlet/stream"
	"hamlet/stream/questions"
)

// A Subject is a way under test, on which nobody serves yet.
type Subject struct {
	// Serving returns one more way by which the same questions come. Each serves once.
	Serving func(t *testing.T) questions.Questions
	Asker   questions.Asker
}

// Run runs every law as a subtest, each on a new subject.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for _, law := range []struct {
		name string
		test func(t *testing.T, s Subject)
	}{
		{"verdicts have the order of the events", order},
		{"the answerer knows how a question came", arrives},
		{"a refusal keeps its code", refusals},
		{"another error and a panic are internal", internal},
		{"a question that is wrong comes to nobody", wrong},
		{"questions do not wait for one another", concurrent},
		{"what was taken is answered after the end", drained},
		{"nobody answers", nobody},
		{"two share the questions", shared},
		{"an asker who goes away waits no longer", gone},
		{"each answer is observed once", observed},
	} {
		t.Run(law.name, func(t *testing.T) { law.test(t, open(t)) })
	}
}

// An answerer answers as its function says, and otherwise the probability ½.
type answerer struct {
	score func(ctx context.Context, events []*stream.Event, explain bool) ([]stream.Verdict, error)
}

func (a answerer) Score(ctx context.Context, events []*stream.Event, explain bool) ([]stream.Verdict, error) {
	if a.score != nil {
		return a.score(ctx, events, explain)
	}
	verdicts := make([]stream.Verdict, len(events))
	for i, e := range events {
		verdicts[i] = stream.Verdict{ID: e.ID, P: .5, Interval: [2]float64{.4, .6}, Decision: stream.DecideUnsure}
	}
	return verdicts, nil
}

func (answerer) Info(context.Context) (stream.Info, error) { return stream.Info{Events: 7}, nil }

// serve serves a until the test ends or stop is called, which returns what Serve did.
func serve(t *testing.T, q questions.Questions, a questions.Answerer,
	observe func(questions.Observation)) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Serve(ctx, a, observe) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	select {
	case <-q.Ready():
	case <-within(t, time.Minute).Done():
		t.Fatal("no question would come")
	}
	if !q.Connected() {
		t.Error("questions come, but it is not connected")
	}
	return stop
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func text(s string) questions.Question {
	return questions.Question{Body: []byte(s), ContentType: questions.Text}
}

func order(t *testing.T, s Subject) {
	serve(t, s.Serving(t), answerer{}, nil)
	const three = `[{"id":"b","text":"x"},{"id":"a","text":"y"},{"id":"c","text":"z"}]`
	batch := questions.Question{Body: []byte(three), ContentType: questions.JSON}
	verdicts, err := s.Asker.Ask(within(t, time.Minute), batch)
	var ids []string
	for _, v := range verdicts {
		ids = append(ids, v.ID)
	}
	if err != nil || !slices.Equal(ids, []string{"b", "a", "c"}) {
		t.Errorf("verdicts of %q, %v", ids, err)
	}
	if info, err := s.Asker.Info(within(t, time.Minute)); err != nil || info.Events != 7 {
		t.Errorf("info: %+v, %v", info, err)
	}
}

func arrives(t *testing.T, s Subject) {
	var got string
	a := answerer{func(ctx context.Context, events []*stream.Event, explain bool) ([]stream.Verdict, error) {
		arrived := !questions.Arrived(ctx).IsZero()
		got = fmt.Sprint(events[0].Tenant, " ", questions.Door(ctx), " ", questions.Words(ctx), " ", explain, " ", arrived)
		return answerer{}.Score(ctx, events, explain)
	}}
	serve(t, s.Serving(t), a, nil)
	for _, c := range []struct {
		q    questions.Question
		want string
	}{
		{text("x"), fmt.Sprintf("default  %d false true", stream.MaxWords)},
		{questions.Question{Body: []byte("x"), ContentType: questions.Text,
			Tenant: "example.org", Door: "milter", Words: 30, Explain: true}, "example.org milter 30 true true"},
		{questions.Question{Body: []byte("x"), ContentType: questions.Text, Words: 9999},
			fmt.Sprintf("default  %d false true", questions.MostWords)},
		{questions.Question{Body: []byte(`[{"text":"x"},{"text":"y"}]`), ContentType: questions.JSON, Words: 30},
			fmt.Sprintf("default  %d false true", stream.MaxWords)},
	} {
		if _, err := s.Asker.Ask(within(t, time.Minute), c.q); err != nil || got != c.want {
			t.Errorf("%+v arrives as %q (%v), want %q", c.q, got, err, c.want)
		}
	}
}

func refusals(t *testing.T, s Subject) {
	a := answerer{func(context.Context, []*stream.Event, bool) ([]stream.Verdict, error) {
		return nil, fmt.Errorf("scorer: %w", &questions.Refusal{Code: questions.Unavailable, Text: "no model yet"})
	}}
	serve(t, s.Serving(t), a, nil)
	var r *questions.Refusal
	if _, err := s.Asker.Ask(within(t, time.Minute), text("x")); !errors.As(err, &r) ||
		r.Code != questions.Unavailable || r.Text != "no model yet" {
		t.Errorf("%v, want the answerer's own refusal", err)
	}
}

func internal(t *testing.T, s Subject) {
	fails := func() error { return errors.New("a secret of the answerer") }
	a := answerer{func(context.Context, []*stream.Event, bool) ([]stream.Verdict, error) {
		return nil, fails()
	}}
	serve(t, s.Serving(t), a, nil)
	for range 2 {
		var r *questions.Refusal
		if _, err := s.Asker.Ask(within(t, time.Minute), text("x")); !errors.As(err, &r) || r.Code != questions.Internal {
			t.Errorf("%v, want a refusal of code %d", err, questions.Internal)
		}
		fails = func() error { panic("a bug") }
	}
}

func wrong(t *testing.T, s Subject) {
	a := answerer{func(context.Context, []*stream.Event, bool) ([]stream.Verdict, error) {
		t.Error("the answerer was asked")
		return nil, errors.New("asked")
	}}
	serve(t, s.Serving(t), a, nil)
	for _, q := range []questions.Question{
		{Body: []byte("\xff"), ContentType: questions.Text},
		{Body: []byte("x"), ContentType: "image/png"},
		{Body: []byte("{"), ContentType: questions.JSON},
		{Body: []byte("x"), ContentType: questions.Text, Door: "Not A Door"},
		{Body: []byte("x"), ContentType: questions.Text, Tenant: " blank"},
	} {
		var r *questions.Refusal
		if _, err := s.Asker.Ask(within(t, time.Minute), q); !errors.As(err, &r) || r.Code != questions.BadRequest {
			t.Errorf("%+v: %v, want a refusal of code %d", q, err, questions.BadRequest)
		}
	}
}

// Two questions are with the answerer at once. It would wait for ever for the second otherwise.
func concurrent(t *testing.T, s Subject) {
	var both sync.WaitGroup
	both.Add(2)
	a := answerer{func(ctx context.Context, events []*stream.Event, explain bool) ([]stream.Verdict, error) {
		both.Done()
		both.Wait()
		return answerer{}.Score(ctx, events, explain)
	}}
	serve(t, s.Serving(t), a, nil)
	var asked sync.WaitGroup
	for range 2 {
		asked.Go(func() {
			if _, err := s.Asker.Ask(within(t, time.Minute), text("x")); err != nil {
				t.Error(err)
			}
		})
	}
	asked.Wait()
}

func drained(t *testing.T, s Subject) {
	taken, finish := make(chan struct{}), make(chan struct{})
	way := s.Serving(t)
	a := answerer{func(ctx context.Context, events []*stream.Event, explain bool) ([]stream.Verdict, error) {
		close(taken)
		<-finish
		return answerer{}.Score(ctx, events, explain)
	}}
	stop := serve(t, way, a, nil)
	answer := make(chan error, 1)
	go func() {
		_, err := s.Asker.Ask(within(t, time.Minute), text("x"))
		answer <- err
	}()
	<-taken
	if n := way.InFlight(); n != 1 {
		t.Errorf("%d questions are in flight, want 1", n)
	}
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	close(finish)
	if err := <-answer; err != nil {
		t.Errorf("the question that was taken: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
}

func nobody(t *testing.T, s Subject) {
	if _, err := s.Asker.Ask(within(t, time.Minute), text("x")); !errors.Is(err, questions.ErrNoAnswerer) {
		t.Errorf("before: %v, want ErrNoAnswerer", err)
	}
	stop := serve(t, s.Serving(t), answerer{}, nil)
	if _, err := s.Asker.Ask(within(t, time.Minute), text("x")); err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := s.Asker.Ask(within(t, time.Minute), text("x")); !errors.Is(err, questions.ErrNoAnswerer) {
		t.Errorf("after: %v, want ErrNoAnswerer", err)
	}
}

// Each question is answered by one of two, both of which get some in a thousand.
func shared(t *testing.T, s Subject) {
	var mu sync.Mutex
	var counts [2]int
	for i := range counts {
		a := answerer{func(ctx context.Context, events []*stream.Event, explain bool) ([]stream.Verdict, error) {
			mu.Lock()
			counts[i]++
			mu.Unlock()
			return answerer{}.Score(ctx, events, explain)
		}}
		serve(t, s.Serving(t), a, nil)
	}
	const asked = 1000 // the chance that one of two gets none is 2⁻⁹⁹⁹
	for range asked {
		if _, err := s.Asker.Ask(within(t, time.Minute), text("x")); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if counts[0]+counts[1] != asked || counts[0] == 0 || counts[1] == 0 {
		t.Errorf("the two answered %v of %d", counts, asked)
	}
}

func gone(t *testing.T, s Subject) {
	finish := make(chan struct{})
	a := answerer{func(ctx context.Context, events []*stream.Event, explain bool) ([]stream.Verdict, error) {
		<-finish
		return answerer{}.Score(ctx, events, explain)
	}}
	serve(t, s.Serving(t), a, nil)
	defer close(finish)
	if _, err := s.Asker.Ask(within(t, 50*time.Millisecond), text("x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the end of the context", err)
	}
}

func observed(t *testing.T, s Subject) {
	var mu sync.Mutex
	var seen []string
	stop := serve(t, s.Serving(t), answerer{}, func(o questions.Observation) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprint(o.Endpoint, " ", o.Door, " ", o.Code, " ", o.Messages))
	})
	ask := func(q questions.Question) { _, _ = s.Asker.Ask(within(t, time.Minute), q) }
	ask(questions.Question{Body: []byte("x"), ContentType: questions.Text, Door: "milter"})
	ask(questions.Question{Body: []byte(`[{"text":"x"},{"text":"y"}]`), ContentType: questions.JSON, Explain: true})
	ask(questions.Question{Body: []byte("\xff"), ContentType: questions.Text})
	if _, err := s.Asker.Info(within(t, time.Minute)); err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	slices.Sort(seen)
	if want := []string{"explain  200 2", "info  200 0", "score  400 0", "score milter 200 1"}; !slices.Equal(seen, want) {
		t.Errorf("observed %q, want %q", seen, want)
	}
}
