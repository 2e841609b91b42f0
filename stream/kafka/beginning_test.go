package kafka_test

import (
	"log/slog"
	"testing"
	"time"

	"hamlet/stream/kafka"
)

// Who has absorbed nothing begins with what is left of the log, and is told that
// it is not all.
func TestABeginningThatIsGoneIsSaid(t *testing.T) {
	fake, cfg := fakeCluster(t)
	const name = "t"
	ensure(t, cfg, name, 1)
	p := newProducer(t, cfg)
	old := numbered(name, 0, 100, 1)
	for i := range old {
		old[i].Time = time.Now().Add(-2 * time.Hour) // the topic keeps one
	}
	if err := p.Publish(t.Context(), old...); err != nil {
		t.Fatal(err)
	}
	fake.ApplyRetention()
	if err := p.Publish(t.Context(), numbered(name, 100, 10, 1)...); err != nil {
		t.Fatal(err)
	}
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
		t.Error("nothing was said")
	}
	if got := k.taken[0][0].Offset; got != 100 {
		t.Errorf("began at %d, want 100", got)
	}
}
