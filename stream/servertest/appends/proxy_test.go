package appends_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/appends"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// Each fate leaves another log. The appender sees no error, because it sends again.
func TestFates(t *testing.T) {
	k, err := servertest.StartKafka(servertest.KafkaOptions{Topics: []string{"t", "other"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	var fate appends.Fate
	p := appends.Start(t, appends.Config{
		Broker: k.Addr(), Topic: "t", Delay: time.Millisecond, Later: 2,
		Fate: func() (f appends.Fate) { f, fate = fate, appends.Pass; return f },
	})
	through, direct := kafka.Config{Brokers: []string{p.Addr()}}, kafka.Config{Brokers: []string{k.Addr()}}
	open := func(cfg kafka.Config, topic string) *kafka.Log {
		t.Helper()
		log, err := kafka.NewLog(cfg, topic)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = log.Close() })
		return log
	}
	logs, read := map[string]*kafka.Log{"t": open(through, "t"), "other": open(through, "other")}, open(direct, "t")
	n := 0
	publish := func(topic string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := logs[topic].Append(ctx, stream.Record{Value: fmt.Append(nil, n)}); err != nil {
			t.Fatal(err)
		}
		n++
	}
	log := func() string {
		t.Helper()
		records, _, err := read.Read(t.Context(), 0, stream.Limit{}, 0) // few: one batch
		if err != nil {
			t.Fatal(err)
		}
		var values []string
		for i := range records {
			values = append(values, string(records[i].Value))
		}
		return strings.Join(values, " ")
	}
	for _, f := range []appends.Fate{appends.Pass, appends.Delay, appends.Double, appends.Lose} {
		fate = f
		publish("t")
		publish("other")
	}
	// 8 comes late, when the appender has sent it again and gone on.
	fate = appends.Late
	for range 3 {
		publish("t")
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for strings.Count(log(), "8") < 2 {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the log is %s", log())
		}
	}
	if got, want := log(), "0 2 4 4 6 6 8 "; !strings.HasPrefix(got, want) || len(got) != len(want+"9 8 10") {
		t.Errorf("the log is %s, want %s and then 8, 9 and 10", got, want)
	}
	for f := appends.Pass; f <= appends.Late; f++ {
		if p.Fates()[f] == 0 {
			t.Errorf("no request was %s: %v", f, p.Fates())
		}
	}
}
