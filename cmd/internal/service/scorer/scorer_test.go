package scorer

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/model"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// score asks about the question.
func score(t testing.TB, c *nats.Client) (stream.Verdict, error) {
	t.Helper()
	verdicts, err := c.Ask(patience(t), questions.Question{Body: []byte(question), ContentType: questions.Text})
	if err != nil {
		return stream.Verdict{}, err
	}
	return verdicts[0], nil
}

// awaitModel asks until the answer is from the model named.
func awaitModel(t testing.TB, c *nats.Client, sha256 string) stream.Verdict {
	t.Helper()
	for ctx := patience(t); ctx.Err() == nil; {
		v, err := score(t, c)
		var e *questions.Refusal
		if err != nil && !(errors.As(err, &e) && e.Code == questions.Unavailable) {
			t.Fatal(err)
		}
		if err == nil && v.Model.SHA256 == sha256 {
			return v
		}
	}
	t.Fatalf("the model %s is never served", sha256)
	return stream.Verdict{}
}

// Before the first save the answer is 503, not a half.
func TestNoModelYet(t *testing.T) {
	url, r := startNATS(t), miniredis.RunT(t)
	s := start(t, Config{Questions: over(connect(t, url)), Store: openStore(t, r)})
	c := ask(t, url)

	v, err := score(t, c)
	var e *questions.Refusal
	if !errors.As(err, &e) || e.Code != 503 || !strings.Contains(e.Text, "no model yet") {
		t.Errorf("score: %+v, %v; want 503 no model yet", v, err)
	}
	if _, err := c.Info(patience(t)); !errors.As(err, &e) || e.Code != 503 {
		t.Errorf("info: %v, want 503", err)
	}
	if err := s.Ready(); err == nil || !strings.Contains(err.Error(), "no model yet") {
		t.Errorf("Ready: %v, want no model yet", err)
	}

	l := newTeacher(t, openStore(t, r))
	l.learn(20)
	l.check(awaitModel(t, c, l.save()))
	if err := s.Ready(); err != nil {
		t.Errorf("Ready with a model: %v", err)
	}
	info, err := c.Info(patience(t))
	if err != nil || info.Events != 20 || info.Stale || info.Model.SHA256 != l.last || info.Model.Positions[0] != 20 || info.Numerics == "" || info.Sources != (stream.Sources{Known: 1}) || info.SpamAt != 0.9 || info.HamAt != 0.5 {
		t.Errorf("info: %+v, %v", info, err)
	}
}

// Sources that a model leaves out are counted, also before one has said anything.
func TestSourcesLeftOut(t *testing.T) {
	m, err := model.New(model.Config{TableBits: 8, WithoutSources: []string{"desk", "liar"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := countSources(m); n != (stream.Sources{LeftOut: 2}) {
		t.Errorf("%+v, want two that are left out", n)
	}
}

// While models are swapped as fast as they can be saved, every answer is right for the
// model that it names.
func TestAnswersWhileModelsAreSwapped(t *testing.T) {
	url, r := startNATS(t), miniredis.RunT(t)
	l := newTeacher(t, openStore(t, r))
	l.learn(10)
	l.save()
	start(t, Config{Questions: over(connect(t, url)), Store: openStore(t, r)})

	ctx, stop := context.WithCancel(patience(t))
	var asking sync.WaitGroup
	var answers atomic.Int64
	for range 4 {
		c := ask(t, url)
		asking.Go(func() {
			for ctx.Err() == nil {
				v, err := score(t, c)
				if err != nil {
					t.Errorf("while models are swapped: %v", err)
					return
				}
				l.check(v)
				answers.Add(1)
			}
		})
	}
	c := ask(t, url)
	const swaps = 30
	began := time.Now()
	for range swaps {
		l.learn(3)
		awaitModel(t, c, l.save())
	}
	took := time.Since(began)
	stop()
	asking.Wait()
	t.Logf("%d answers, %.0f swaps a second", answers.Load(), swaps/took.Seconds())
}

// Without Redis the last good model is served with its age. When Redis is back, the
// next model is served.
func TestRedisStops(t *testing.T) {
	url, r := startNATS(t), restartable(t)
	l := newTeacher(t, openStore(t, r))
	l.learn(10)
	sum := l.save()
	s := start(t, Config{Questions: over(connect(t, url)), Store: openStore(t, r)})
	c := ask(t, url)
	awaitModel(t, c, sum)

	stale := func(want bool) {
		t.Helper()
		for ctx := patience(t); ; {
			info, err := c.Info(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if info.Stale == want {
				return
			}
		}
	}
	r.Close()
	stale(true)
	before, err := score(t, c)
	if err != nil {
		t.Fatal(err)
	}
	l.check(before)
	for after := before; after.Model.AgeMS <= before.Model.AgeMS; {
		if after, err = score(t, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Ready(); err != nil {
		t.Errorf("Ready with a model and without Redis: %v", err)
	}
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	stale(false)
	l.learn(10)
	l.check(awaitModel(t, c, l.save()))
}

// A scorer that has never reached Redis says so, and not that there is no model.
func TestNoRedis(t *testing.T) {
	url, r := startNATS(t), restartable(t)
	store := openStore(t, r)
	r.Close()
	start(t, Config{Questions: over(connect(t, url)), Store: store})
	_, err := score(t, ask(t, url))
	var e *questions.Refusal
	if !errors.As(err, &e) || e.Code != 503 || !strings.Contains(e.Text, "can't be read") {
		t.Errorf("score: %v, want 503 and that the state can't be read", err)
	}
}

func TestTwoScorersShareTheLoad(t *testing.T) {
	url, r := startNATS(t), miniredis.RunT(t)
	l := newTeacher(t, openStore(t, r))
	l.learn(10)
	l.save()
	var registries [2]*prometheus.Registry
	for i := range registries {
		registries[i] = prometheus.NewRegistry()
		start(t, Config{Questions: over(connect(t, url)), Store: openStore(t, r), Registerer: registries[i]})
	}
	c := ask(t, url)
	const requests = 200
	for range requests {
		v, err := score(t, c)
		if err != nil {
			t.Fatal(err)
		}
		l.check(v)
	}
	a, b := counted(t, registries[0], "hamlet_scorer_requests_total"), counted(t, registries[1], "hamlet_scorer_requests_total")
	// The server picks at random: fewer than 50 of 200 has probability 1e-12.
	if a+b != requests || a < 50 || b < 50 {
		t.Errorf("the scorers answered %v and %v of %d requests", a, b, requests)
	}
	if n := counted(t, registries[0], "hamlet_scorer_verdicts_total"); n != a {
		t.Errorf("%v verdicts are counted for %v requests", n, a)
	}
	if n := counted(t, registries[0], "hamlet_scorer_model_events"); n != 10 {
		t.Errorf("the model's events are %v in the metrics, want 10", n)
	}
}

// counted returns the sum of a metric over its labels.
func counted(t *testing.T, r *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		return sum
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// A body that the model refuses is a bad request; in a batch the error has its index.
func TestRefusedBodies(t *testing.T) {
	url, r := startNATS(t), miniredis.RunT(t)
	l := newTeacher(t, openStore(t, r))
	l.learn(10)
	sum := l.save()
	start(t, Config{Questions: over(connect(t, url)), Store: openStore(t, r), SpamAt: 0.99, HamAt: 0.01})
	c := ask(t, url)
	awaitModel(t, c, sum)

	verdicts, err := c.Ask(patience(t), questions.Question{Body: []byte(`[{"id": "a", "text": "x"}, {"id": "b", "vector": {"f": 1}}, {"id": "c", "mail": "RnJvbTogYUBiCgpoZWxsbwo="}]`), ContentType: questions.JSON, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range verdicts {
		if v.ID != string(rune('a'+i)) || len(v.Reasons) == 0 || v.Model.SHA256 != sum {
			t.Errorf("verdict %d: %+v", i, v)
		}
		var mean float64
		for _, reason := range v.Reasons {
			mean += reason.Contribution
		}
		if (mean > 0) != (v.LogOdds > 0) {
			t.Errorf("verdict %d: the reasons sum up to %v, the log-odds are %v", i, mean, v.LogOdds)
		}
		if v.Decision != stream.DecideUnsure { // ten messages make nobody 99 % sure
			t.Errorf("verdict %d: %s at p = %v with thresholds .01 and .99", i, v.Decision, v.P)
		}
	}
}
