package eventlog

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hamlet/stream/embedded/appends"
	"hamlet/stream/kafka"
)

var forever = New{Replication: 1, Retention: -1}

// fillSmall is Fill with small batches.
func fillSmall(ctx context.Context, log Log, records Records, progress func(int)) (Filled, error) {
	f := filler{log: log, batches: make(chan []kafka.Record), most: 2000, settle: settle, progress: progress}
	return f.run(ctx, records, forever)
}

// A log that is filled by programs that are cut off ten times, beside a broker whose answers are
// late or lost, has each record once and in order.
func TestFillIsCutOff(t *testing.T) {
	t.Parallel()
	const n = 2000
	r := newRig(t)
	random := rand.New(rand.NewPCG(1, 2))
	fate := func() appends.Fate {
		if random.IntN(100) == 0 {
			return appends.Lose
		}
		return appends.Delay
	}
	proxy := appends.Start(t, appends.Config{
		Broker: r.kafka.Brokers[0], Topic: "t", Delay: 3 * time.Millisecond, Fate: fate,
	})
	log := Log{kafka.Config{Brokers: []string{proxy.Addr()}}, "t"}
	source := numbered(0, n)
	before := 0
	for cut := 1; cut <= 10; cut++ {
		ctx, cancel := context.WithCancel(t.Context())
		at := cut * n / 11
		done, err := fillSmall(ctx, log, of(source), func(n int) {
			if n >= at { // during one of the next requests
				time.AfterFunc(time.Duration(random.IntN(4000))*time.Microsecond, cancel)
				at = 2 * len(source)
			}
		})
		cancel()
		if !errors.Is(err, context.Canceled) || done.Records < cut*n/11 || done.Records >= n {
			t.Fatalf("cut %d: %+v, %v", cut, done, err)
		}
		if done.Before < before {
			t.Errorf("cut %d: it found %d records, before there were %d", cut, done.Before, before)
		}
		before = done.Records
	}
	done, err := fillSmall(t.Context(), log, of(source), nil)
	if err != nil || done.Records != n || done.Before < before || done.After != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if got, want := digest(t, log.Records(t.Context())), digest(t, of(source)); got != want {
		t.Errorf("the log has %s, want %s", got, want)
	}
	if fates := proxy.Fates(); fates[appends.Lose] == 0 {
		t.Errorf("no answer was lost: %v", fates)
	}
	if done, err := fillSmall(t.Context(), log, of(source), nil); err != nil || done != (Filled{n, n, 0}) {
		t.Errorf("once more: %+v, %v", done, err)
	}
	r.publish("t", 0, numbered(0, 3)...)
	if done, err := fillSmall(t.Context(), log, of(source), nil); err != nil || done != (Filled{n, n, 3}) {
		t.Errorf("after three records of others: %+v, %v", done, err)
	}
}

// What a broker stores twice, or after the log was read, is found.
func TestFillFindsCopies(t *testing.T) {
	t.Parallel()
	for _, fate := range []appends.Fate{appends.Double, appends.Late} {
		t.Run(fate.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			n := 0
			proxy := appends.Start(t, appends.Config{Broker: r.kafka.Brokers[0], Topic: "t", Fate: func() appends.Fate {
				if n++; n == 3 {
					return fate
				}
				return appends.Pass
			}})
			log := Log{kafka.Config{Brokers: []string{proxy.Addr()}}, "t"}
			if done, err := fillSmall(t.Context(), log, of(numbered(0, 200)), nil); !errors.Is(err, ErrForeign) {
				t.Errorf("%+v, %v, want ErrForeign", done, err)
			}
		})
	}
}

// A log that is not the beginning of the source is refused, and stays as it is.
func TestFillRefuses(t *testing.T) {
	r := newRig(t)
	changed := numbered(0, 5)
	changed[3].Headers = append(changed[3].Headers, kafka.Header{Key: "more"})
	for name, c := range map[string]struct {
		there []kafka.Record
		lost  int64 // below it records are deleted
		want  string
	}{
		"another":   {changed, 0, "offset 3 of topic another has another record than record 4"},
		"beginning": {numbered(0, 5), 2, "topic beginning begins at offset 2"},
		"gone":      {numbered(0, 5), 5, "topic gone begins at offset 5"},
	} {
		r.topic(name, 1)
		r.publish(name, 0, c.there...)
		if c.lost > 0 {
			r.deleteBelow(name, 0, c.lost)
		}
		log := Log{r.kafka, name}
		done, err := log.Fill(t.Context(), of(numbered(0, 9)), forever, nil)
		if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v, want %q", name, done, err, c.want)
		}
		if _, end, err := log.bounds(t.Context()); err != nil || end != 5 {
			t.Errorf("%s: the log ends at %d, %v", name, end, err)
		}
	}
	r.topic("several", 2)
	var several *PartitionsError
	_, err := Log{r.kafka, "several"}.Fill(t.Context(), of(numbered(0, 9)), forever, nil)
	if !errors.As(err, &several) || several.Partitions != 2 {
		t.Errorf("a topic of two partitions: %v", err)
	}
	broken := errors.New("broken")
	failing := func(yield func(*kafka.Record, error) bool) { yield(nil, broken) }
	if _, err := (Log{r.kafka, "broken"}).Fill(t.Context(), failing, forever, nil); !errors.Is(err, broken) {
		t.Errorf("a source with an error: %v", err)
	}
}

// Records that the topic would not keep are refused before it is made, and while it is filled.
func TestFillOldRecords(t *testing.T) {
	r := newRig(t)
	old := numbered(0, 4)
	for i := range old {
		old[i].Time = time.Now().Add(-3 * time.Hour)
	}
	log := Log{r.kafka, "t"}
	if _, err := log.Fill(t.Context(), of(old), New{1, time.Hour}, nil); !errors.Is(err, ErrOld) {
		t.Errorf("%v, want ErrOld", err)
	}
	if n, err := kafka.Partitions(t.Context(), r.kafka, "t"); n != 0 || err != nil {
		t.Errorf("the topic was made: %d partitions, %v", n, err)
	}
	if done, err := log.Fill(t.Context(), of(old[:2]), New{1, 4 * time.Hour}, nil); err != nil || done.Records != 2 {
		t.Errorf("%+v, %v", done, err)
	}
	old[3].Time = time.Now().Add(-5 * time.Hour)
	done, err := log.Fill(t.Context(), of(old), New{1, time.Hour}, nil)
	if !errors.Is(err, ErrOld) || !strings.Contains(err.Error(), "record 4 ") {
		t.Errorf("beside a topic that is there: %+v, %v, want ErrOld", done, err)
	}
}
