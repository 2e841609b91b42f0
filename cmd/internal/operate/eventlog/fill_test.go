package eventlog

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/service/settings"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest/appends"
)

var forever = settings.Topic{Replication: 1, Retention: -1}

// fill makes and fills the log of a model.
func (r *rig) fill(model string, records Records, topic settings.Topic) (Filled, error) {
	log, oldest, err := Make(r.t.Context(), r.kafka, model, records, topic)
	if err != nil {
		return Filled{}, err
	}
	defer log.Close()
	return log.Fill(r.t.Context(), records, oldest, nil)
}

// fillSmall is Fill with small batches.
func fillSmall(ctx context.Context, log *Log, records Records, progress func(int)) (Filled, error) {
	f := filler{log: log, most: 2000, progress: progress}
	return f.run(ctx, records)
}

// proxied returns the log of model m behind a proxy.
func proxied(r *rig, fate func() appends.Fate) (*Log, *appends.Proxy) {
	r.t.Helper()
	r.topic("hamlet.events.m", 1)
	proxy := appends.Start(r.t, appends.Config{
		Broker: r.kafka.Brokers[0], Topic: "hamlet.events.m", Delay: 3 * time.Millisecond, Fate: fate,
	})
	behind := &rig{r.t, kafka.Config{Brokers: []string{proxy.Addr()}}}
	return behind.log("m"), proxy
}

// A log that is filled by programs that are cut off ten times, beside a broker whose answers are
// late or lost, has each record once and in order.
func TestFillIsCutOff(t *testing.T) {
	t.Parallel()
	const n = 2000
	r := newRig(t)
	random := rand.New(rand.NewPCG(1, 2))
	log, proxy := proxied(r, func() appends.Fate {
		if random.IntN(100) == 0 {
			return appends.Lose
		}
		return appends.Delay
	})
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
	r.publish("hamlet.events.m", 0, numbered(0, 3)...)
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
			log, _ := proxied(r, func() appends.Fate {
				if n++; n == 3 {
					return fate
				}
				return appends.Pass
			})
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
	changed[3].Headers = append(changed[3].Headers, stream.Header{Key: "more"})
	for name, c := range map[string]struct {
		there []stream.Record
		lost  int64 // below it records are deleted
		want  string
	}{
		"another":   {changed, 0, "offset 3 of topic hamlet.events.another has another record than record 4"},
		"beginning": {numbered(0, 5), 2, "topic hamlet.events.beginning begins at offset 2"},
		"gone":      {numbered(0, 5), 5, "topic hamlet.events.gone begins at offset 5"},
	} {
		r.topic("hamlet.events."+name, 1)
		r.publish("hamlet.events."+name, 0, c.there...)
		if c.lost > 0 {
			r.deleteBelow("hamlet.events."+name, 0, c.lost)
		}
		done, err := r.fill(name, of(numbered(0, 9)), forever)
		if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v, want %q", name, done, err, c.want)
		}
		if end := r.end(name); end != 5 {
			t.Errorf("%s: the log ends at %d", name, end)
		}
	}
	r.topic("hamlet.events.several", 2)
	var several *PartitionsError
	_, err := r.fill("several", of(numbered(0, 9)), forever)
	if !errors.As(err, &several) || several.Partitions != 2 {
		t.Errorf("a topic of two partitions: %v", err)
	}
	broken := errors.New("broken")
	failing := func(yield func(*stream.Record, error) bool) { yield(nil, broken) }
	if _, err := r.fill("broken", failing, forever); !errors.Is(err, broken) {
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
	if _, err := r.fill("m", of(old), settings.Topic{Replication: 1, Retention: time.Hour}); !errors.Is(err, ErrOld) {
		t.Errorf("%v, want ErrOld", err)
	}
	if n, err := r.kafka.Partitions(t.Context(), "hamlet.events.m"); n != 0 || err != nil {
		t.Errorf("the topic was made: %d partitions, %v", n, err)
	}
	if done, err := r.fill("m", of(old[:2]), settings.Topic{Replication: 1, Retention: 4 * time.Hour}); err != nil || done.Records != 2 {
		t.Errorf("%+v, %v", done, err)
	}
	old[3].Time = time.Now().Add(-5 * time.Hour)
	done, err := r.fill("m", of(old), settings.Topic{Replication: 1, Retention: time.Hour})
	if !errors.Is(err, ErrOld) || !strings.Contains(err.Error(), "record 4 ") {
		t.Errorf("beside a topic that is there: %+v, %v, want ErrOld", done, err)
	}
}
