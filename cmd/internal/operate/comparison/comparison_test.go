package comparison

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/predictions"
	"hamlet/stream/servertest"
)

// events returns n events, and what a model predicts of them that moves the log-odds of the truth by skill.
func events(n int, seed uint64, skill float64) []predictions.Prediction {
	labels := rand.New(rand.NewPCG(1, 1))
	r := rand.New(rand.NewPCG(seed, 2))
	all := make([]predictions.Prediction, n)
	for i := range all {
		all[i] = predictions.Prediction{Offset: int64(i), Spam: labels.IntN(2) == 1}
		// With z ~ N(±s²/2, s²) by class, log-odds z are calibrated.
		z := r.NormFloat64()*skill - skill*skill/2
		if all[i].Spam {
			z = r.NormFloat64()*skill + skill*skill/2
		}
		all[i].LogOdds = float32(z)
	}
	return all
}

// compare compares without Kafka, by blocks of 100.
func compare(t *testing.T, opts Options, a, b []predictions.Prediction) (Result, error) {
	t.Helper()
	c, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	j := newPairing("a", "b", c.Add)
	for record := int64(0); len(a)+len(b) > 0; record++ {
		na, nb := min(100, len(a)), min(70, len(b))
		err := errors.Join(j.add(0, &predictions.Block{Predictions: a[:na]}, record), j.add(1, &predictions.Block{Predictions: b[:nb]}, record), j.join())
		if err != nil {
			return Result{}, err
		}
		a, b = a[na:], b[nb:]
	}
	r := c.Result()
	j.report(&r)
	return r, nil
}

func TestTheBetterModelIsBetter(t *testing.T) {
	good, bad := events(6000, 5, 3), events(6000, 6, 2)
	r, err := compare(t, Options{}, bad, good)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Better || r.Worse || !r.Calibrated || !r.A.Calibrated || r.Events != 5000 || r.BurnIn != 1000 || r.First == 0 || r.Since < r.First {
		t.Errorf("%+v", r)
	}
	if r.Difference.Low <= 0 || math.Abs(r.Difference.Mean-float64(r.A.LogLoss-r.B.LogLoss)) > 1e-9 || r.B.ROCA >= r.A.ROCA {
		t.Errorf("%+v", r)
	}
	if r.From != 1000 || r.To != 5999 {
		t.Errorf("compared from %d to %d", r.From, r.To)
	}
	if r, err = compare(t, Options{}, good, bad); err != nil || r.Better || !r.Worse || r.First != 0 {
		t.Errorf("the other way round: %+v, %v", r, err)
	}
	if r, err = compare(t, Options{}, good, good); err != nil || r.Better || r.Worse || r.Since != 0 {
		t.Errorf("with itself: %+v, %v", r, err)
	}
}

// A model whose mean p is too high is not calibrated, though it may be better.
func TestCalibration(t *testing.T) {
	good, bad := events(6000, 5, 3), events(6000, 6, 1)
	for i := range good {
		good[i].LogOdds += 0.8
	}
	r, err := compare(t, Options{}, bad, good)
	if err != nil || !r.Better || r.Calibrated || r.B.Excess.High > -Tolerance {
		t.Errorf("%+v, %v", r, err)
	}
}

// The result is that of the slow way: all pairs in a map, in A's order.
func TestPairsAreThoseOfBoth(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	all, other := events(3000, 5, 2), events(3000, 6, 2)
	var a, b []predictions.Prediction
	for i := range all {
		if i >= 400 && r.IntN(10) > 0 {
			a = append(a, all[i])
		}
		if i >= 1000 && r.IntN(10) > 0 {
			b = append(b, other[i])
		}
	}
	at := map[int64]float32{}
	for _, p := range b {
		at[p.Offset] = p.LogOdds
	}
	pairs, sum := 0, 0.0
	loss := func(z float32, spam bool) float64 {
		p := 1 / (1 + math.Exp(-float64(z)))
		if p = min(max(p, Clip), 1-Clip); spam {
			return -math.Log(p)
		}
		return -math.Log(1 - p)
	}
	for _, p := range a {
		if z, ok := at[p.Offset]; ok {
			pairs++
			if pairs > 100 {
				sum += loss(p.LogOdds, p.Spam) - loss(z, p.Spam)
			}
		}
	}
	// Blocks come twice, as after a crash.
	twice := append(append(append([]predictions.Prediction{}, a[:500]...), a[200:500]...), a[500:]...)
	got, err := compare(t, Options{BurnIn: 100}, twice, b)
	if err != nil {
		t.Fatal(err)
	}
	if got.Events != pairs-100 || math.Abs(got.Difference.Mean-sum/float64(pairs-100)) > 1e-9 {
		t.Errorf("%d pairs of difference %g, want %d of %g", got.Events, got.Difference.Mean, pairs-100, sum/float64(pairs-100))
	}
	if got.A.Repeats != 300 || got.A.Before == 0 || got.B.Before != 0 || got.A.Only == 0 || got.B.Only == 0 {
		t.Errorf("%+v", got)
	}
	if n := got.A.Before + got.A.Only + got.A.Ahead + pairs; n != len(a) {
		t.Errorf("A: %d of %d are accounted for", n, len(a))
	}
	if n := got.B.Before + got.B.Only + got.B.Ahead + pairs; n != len(b) {
		t.Errorf("B: %d of %d are accounted for", n, len(b))
	}
	if got.A.Begins != a[0].Offset || got.B.Begins != b[0].Offset {
		t.Errorf("%+v", got)
	}
}

// An event that one model left out stops nothing, though it is the last.
func TestAnEventThatIsLeftOutStopsNothing(t *testing.T) {
	with := events(1000, 5, 2)
	all := with[:999]
	for lacks := range 2 {
		pairs := 0
		j := newPairing("a", "b", func(_, _ *predictions.Prediction) { pairs++ })
		blocks := [2]predictions.Block{{Predictions: with}, {Predictions: with}}
		blocks[lacks] = predictions.Block{Predictions: all, Learnt: 1000}
		if err := errors.Join(j.add(0, &blocks[0], 0), j.add(1, &blocks[1], 0), j.join()); err != nil {
			t.Fatal(err)
		}
		var r Result
		if j.report(&r); pairs != 999 || r.A.Ahead != 0 || r.B.Ahead != 0 || r.A.Only+r.B.Only != 1 {
			t.Errorf("model %d leaves it out: %d pairs, %+v", lacks, pairs, r)
		}
	}
}

func TestWhatDoesNotFitIsAnError(t *testing.T) {
	a, b := events(200, 5, 2), events(200, 6, 2)
	again := append(append([]predictions.Prediction{}, a...), a[50])
	again[200].LogOdds++
	if _, err := compare(t, Options{}, again, b); !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), "offset 50") ||
		!strings.Contains(err.Error(), "record 0 ") || !strings.Contains(err.Error(), "record 2") {
		t.Errorf("two values: %v", err)
	}
	b[70].Spam = !b[70].Spam
	if _, err := compare(t, Options{}, a, b); !errors.Is(err, ErrOtherLog) || !strings.Contains(err.Error(), "offset 70") {
		t.Errorf("two labels: %v", err)
	}
	if _, err := New(Options{Level: 2}); err == nil {
		t.Error("a level of 2 is accepted")
	}
}

func TestRunReadsTopics(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cluster, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	brokers := kafka.Config{Brokers: []string{cluster.Addr()}}
	if _, err := Run(ctx, brokers, "a", "b", Options{}); !errors.Is(err, ErrNone) || !Final(err) || !strings.Contains(err.Error(), "model a") {
		t.Errorf("without topics: %v", err)
	}
	if _, err := Run(ctx, brokers, "a", "a", Options{}); err == nil {
		t.Error("a model is compared with itself")
	}
	write := func(model, of string, all []predictions.Prediction) {
		t.Helper()
		if err := brokers.Ensure(ctx, predictions.Topic(model), -1, 0); err != nil {
			t.Fatal(err)
		}
		log, err := kafka.NewLog(brokers, predictions.Topic(model))
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		for len(all) > 0 {
			n := min(len(all), predictions.MaxEvents)
			b := predictions.Block{Model: model, Events: stream.EventsTopic(of), Predictions: all[:n]}
			value, err := b.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := log.Append(ctx, stream.Record{Value: value}); err != nil {
				t.Fatal(err)
			}
			all = all[n:]
		}
	}
	a, b := events(4000, 5, 2), events(4000, 6, 3)
	write("a", "a", a)
	write("b", "a", b[:1000])
	write("c", "c", b)
	r, err := NewReader(ctx, brokers, "a", "b", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := r.Advance(ctx)
	if err != nil || got.Events != 0 || got.BurnIn != 1000 || got.A.Ahead != 3000 || got.Better || !math.IsNaN(float64(got.A.LogLoss)) {
		t.Errorf("the beginning: %+v, %v", got, err)
	}
	write("b", "a", b[1000:])
	got, err = r.Advance(ctx)
	if err != nil || got.Events != 3000 || !got.Better || got.A.Ahead != 0 {
		t.Errorf("all: %+v, %v", got, err)
	}
	if at, err := Run(ctx, brokers, "a", "b", Options{}); err != nil || at.Difference != got.Difference || at.First != got.First {
		t.Errorf("at once: %+v, %v", at, err)
	}
	if at, err := Run(ctx, brokers, "a", "b", Options{Since: time.Now().Add(time.Hour)}); err != nil || at.Events != 0 || at.BurnIn != 0 {
		t.Errorf("of the future: %+v, %v", at, err)
	}
	if _, err := Run(ctx, brokers, "a", "c", Options{}); !errors.Is(err, ErrOtherLog) || !Final(err) {
		t.Errorf("of two logs: %v", err)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if _, err := r.Advance(stopped); err == nil || Final(err) {
		t.Errorf("without time: %v", err)
	}
	r.topics[1].next++ // as if the topic were made again
	for range 2 {
		if _, err := r.Advance(ctx); !errors.Is(err, ErrGone) || !Final(err) {
			t.Errorf("of a topic that was made again: %v", err)
		}
	}
}
