package follow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// fakeTopic makes the topic t of a broker for tests.
func fakeTopic(t testing.TB, opts ...kfake.Opt) (*kfake.Cluster, kafka.Config) {
	t.Helper()
	fake, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(1, "t")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	return fake, kafka.Config{Brokers: fake.ListenAddrs(), Log: testLog(t)}
}

// publish appends records with the values first, first+1, …
func publish(t testing.TB, cfg kafka.Config, first, n int) {
	t.Helper()
	if err := logOf(t, cfg).Append(within(t, 30*time.Second), numbered(first, n)...); err != nil {
		t.Fatal(err)
	}
}

func logOf(t testing.TB, cfg kafka.Config) *kafka.Log {
	t.Helper()
	log, err := kafka.NewLog(cfg, "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// A topic is followed from a position, to its end and on.
func TestFollowsATopic(t *testing.T) {
	_, cfg := fakeTopic(t)
	publish(t, cfg, 0, 1000)
	k := at(300)
	stop := k.start(t, follow.Config{Log: logOf(t, cfg), Name: "topic t"})
	k.until(t, "the topic", func() bool { return len(k.taken) == 700 && k.end == 1000 })
	publish(t, cfg, 1000, 10)
	k.until(t, "what is new", func() bool { return len(k.taken) == 710 && k.end == 1010 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for i, r := range k.taken {
		if want := int64(300 + i); r.Offset != want || string(r.Value) != fmt.Sprint(want) {
			t.Fatalf("record %q at offset %d, want %d", r.Value, r.Offset, want)
		}
	}
	if len(k.asked) != 1 || k.asked[0].Offset != 299 {
		t.Errorf("asked about %v, want the record at 299", k.asked)
	}
}
