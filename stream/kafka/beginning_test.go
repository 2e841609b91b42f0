package kafka_test

import (
	"log/slog"
	"testing"

	"hamlet/stream/kafka"
)

// A handler without a position begins with the rest of the log. A warning says that
// records are missing.
func TestABeginningThatIsGoneIsSaid(t *testing.T) {
	cfg, name := withoutBeginning(t)
	told := make(chan struct{}, 1)
	cfg.Log = slog.New(lineHandler{"kafka: reading from what is left of the log: retention has taken its beginning", told})
	k := newKeeper()
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}, k.open("a"))
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
