package kafka_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"hamlet/stream/kafka"
)

// A handler without a position does not begin with the rest of the log unless told to.
func TestABeginningThatIsGoneIsRefused(t *testing.T) {
	cfg, name := withoutBeginning(t)
	k := newKeeper()
	c, err := kafka.NewConsumer(kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Run(within(t, 30*time.Second), k.open("a"))
	if !errors.Is(err, kafka.ErrNoBeginning) {
		t.Fatalf("Run = %v, want ErrNoBeginning", err)
	}
	for _, want := range []string{"partition 0", "offset 100", "backup", "--accept-lost-beginning"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if k.count != 0 {
		t.Errorf("%d records were handed over", k.count)
	}
}

// If told to, it begins with the rest. A warning says that records are missing.
func TestABeginningThatIsGoneIsSaid(t *testing.T) {
	cfg, name := withoutBeginning(t)
	told := make(chan struct{}, 1)
	cfg.Log = slog.New(lineHandler{"kafka: reading from what is left of the log: retention has taken its beginning", told})
	k := newKeeper()
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name, AcceptLostBeginning: true}, k.open("a"))
	k.until(t, "what is left", func() bool { return k.count == 10 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	select {
	case <-told:
	default:
		t.Error("nothing was logged")
	}
	if got := k.taken[0][0].Offset; got != 100 {
		t.Errorf("began at %d, want 100", got)
	}
}

// Of a log that is needed as a whole, no error advises to go on without a part, and no setting
// allows it.
func TestAWholeLogIsNeeded(t *testing.T) {
	cfg, name := withoutBeginning(t)
	for next, want := range map[int64]error{0: kafka.ErrNoBeginning, 5: kafka.ErrGap} {
		k := newKeeper()
		if next > 0 {
			k.next[0] = next
		}
		consumer := kafka.ConsumerConfig{Config: cfg, Topic: name, Whole: true, AcceptGap: true, AcceptLostBeginning: true}
		err := kafka.Follow(within(t, 30*time.Second), consumer, 0, k.open("a"))
		if !errors.Is(err, want) || strings.Contains(err.Error(), "--accept") || !strings.Contains(err.Error(), "backup") || k.count != 0 {
			t.Errorf("from %d: %v, %d records; want %v", next, err, k.count, want)
		}
	}
}
