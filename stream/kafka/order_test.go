package kafka_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// described returns a setting of a topic.
func described(t *testing.T, cfg kafka.Config, topic, setting string) string {
	t.Helper()
	client := &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers[0]), Transport: &kafkago.Transport{DialTimeout: 30 * time.Second, SASL: cfg.SASL}}
	defer client.Transport.(*kafkago.Transport).CloseIdleConnections()
	res, err := client.DescribeConfigs(t.Context(), &kafkago.DescribeConfigsRequest{Resources: []kafkago.DescribeConfigRequestResource{{
		ResourceType: kafkago.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{setting},
	}}})
	if err != nil || len(res.Resources) != 1 || len(res.Resources[0].ConfigEntries) != 1 {
		t.Fatalf("%s of %s: %+v, %v", setting, topic, res, err)
	}
	return res.Resources[0].ConfigEntries[0].ConfigValue
}

// create creates a topic with settings, each as name=value.
func create(t *testing.T, cfg kafka.Config, name string, partitions int, settings ...string) {
	t.Helper()
	client := &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers[0]), Transport: &kafkago.Transport{DialTimeout: 30 * time.Second, SASL: cfg.SASL}}
	defer client.Transport.(*kafkago.Transport).CloseIdleConnections()
	topic := kafkago.TopicConfig{Topic: name, NumPartitions: partitions, ReplicationFactor: 1}
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		topic.ConfigEntries = append(topic.ConfigEntries, kafkago.ConfigEntry{ConfigName: key, ConfigValue: value})
	}
	res, err := client.CreateTopics(t.Context(), &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{topic}})
	if err != nil || res.Errors[name] != nil {
		t.Fatal(err, res.Errors)
	}
}

// An order log is kept as long as its events, whatever the broker's defaults are.
func TestEnsureOrder(t *testing.T) {
	cfg := cluster(t)
	for retention, want := range map[time.Duration]string{90 * 24 * time.Hour: "7776000000", -1: "-1", 0: ""} {
		model := topic(t)
		if err := kafka.EnsureTopic(within(t, 30*time.Second), cfg, "events-"+model, 4, 1, retention); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time it is there
			if err := kafka.EnsureOrder(within(t, 30*time.Second), cfg, model, "events-"+model, 1); err != nil {
				t.Fatal(err)
			}
		}
		name := order.Topic(model)
		want := cmp.Or(want, described(t, cfg, "events-"+model, "retention.ms"))
		for setting, want := range map[string]string{"cleanup.policy": "delete", "retention.ms": want, "retention.bytes": "-1"} {
			if got := described(t, cfg, name, setting); got != want {
				t.Errorf("retention %v: %s = %s, want %s", retention, setting, got, want)
			}
		}
		if first, _, err := kafka.Offsets(within(t, 30*time.Second), cfg, name); err != nil || len(first) != 1 {
			t.Errorf("%d partitions, %v", len(first), err)
		}
	}
}

// What could lose a part of the order is refused. The error says what to set.
func TestEnsureOrderRefuses(t *testing.T) {
	cfg := cluster(t)
	for name, c := range map[string]struct {
		events     []string
		partitions int
		order      []string // nil: not there yet
		say        []string
	}{
		"compacted events":      {events: []string{"cleanup.policy=compact"}, say: []string{"topic events-", "cleanup.policy", "set it to delete"}},
		"compacted then delete": {events: []string{"cleanup.policy=compact,delete"}, say: []string{"topic events-", "set it to delete"}},
		"compacted order":       {partitions: 1, order: []string{"cleanup.policy=compact"}, say: []string{"topic hamlet.order.", "set it to delete"}},
		"two partitions":        {partitions: 2, order: []string{}, say: []string{"2 partitions", "an order log has one"}},
		"shorter":               {events: []string{"retention.ms=9000000"}, partitions: 1, order: []string{"retention.ms=8999999"}, say: []string{"retention.ms is 8999999", "set it to 9000000"}},
		"shorter than ever":     {events: []string{"retention.ms=-1"}, partitions: 1, order: []string{"retention.ms=9000000"}, say: []string{"set it to -1"}},
		"bounded":               {partitions: 1, order: []string{"retention.bytes=1000000000"}, say: []string{"retention.bytes is 1000000000", "set it to -1"}},
	} {
		t.Run(name, func(t *testing.T) {
			model := topic(t)
			create(t, cfg, "events-"+model, 2, c.events...)
			if c.order != nil {
				create(t, cfg, order.Topic(model), c.partitions, c.order...)
			}
			err := kafka.EnsureOrder(within(t, 30*time.Second), cfg, model, "events-"+model, 1)
			if !errors.Is(err, kafka.ErrSettings) {
				t.Fatalf("%v, want ErrSettings", err)
			}
			for _, want := range c.say {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

// Followers read all of a partition, each from a position of its own, and nobody's offsets
// are committed.
func TestFollow(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 2)
	p := newProducer(t, cfg)
	if err := p.PublishTo(t.Context(), name, 1, numbered(name, 0, 100, 1)...); err != nil {
		t.Fatal(err)
	}
	consumer := kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}
	all, rest := newKeeper(), newKeeper()
	rest.next[1] = 60
	stopAll, stopRest := follow(t, consumer, 1, all), follow(t, consumer, 1, rest)
	all.until(t, "all records", func() bool { return all.count == 100 })
	rest.until(t, "the rest", func() bool { return rest.count == 40 })
	if err := p.PublishTo(t.Context(), name, 1, numbered(name, 100, 5, 1)...); err != nil {
		t.Fatal(err)
	}
	all.until(t, "new records", func() bool { return all.count == 105 })
	rest.until(t, "new records", func() bool { return rest.count == 45 })
	if err := errors.Join(stopAll(), stopRest()); err != nil {
		t.Error(err)
	}
	if all.next[1] != 105 || rest.next[1] != 105 || rest.taken[1][0].Offset != 60 || len(all.taken[0]) != 0 {
		t.Errorf("saved %v and %v", all.next, rest.next)
	}
	if next, ok, err := kafka.CommittedOffset(within(t, 30*time.Second), cfg, name, name, 1); ok || err != nil {
		t.Errorf("offset %d was committed, %v", next, err)
	}
}

// follow follows a partition in the background; stop ends it and returns Follow's error.
func follow(t *testing.T, cfg kafka.ConsumerConfig, partition int, k *keeper) (stop func() error) {
	t.Helper()
	cfg.SessionTimeout = 30 * time.Second // whose part Close may take
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- kafka.Follow(ctx, cfg, partition, k.open("a")) }()
	return func() error { cancel(); return <-ended }
}

// A follower notices another log as a consumer does.
func TestFollowRefusesAnotherLog(t *testing.T) {
	_, cfg := fakeCluster(t)
	const name = "t"
	ensure(t, cfg, name, 1)
	p := newProducer(t, cfg)
	if err := p.Publish(t.Context(), numbered(name, 0, 10, 1)...); err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	consumer := kafka.ConsumerConfig{Config: cfg, Topic: name}
	stop := follow(t, consumer, 0, k)
	k.until(t, "the first log", func() bool { return k.count == 10 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	remove(t, cfg, name)
	ensure(t, cfg, name, 1)
	if err := p.Publish(within(t, 30*time.Second), numbered(name, 1000, 30, 1)...); err != nil {
		t.Fatal(err)
	}
	if err := kafka.Follow(within(t, 30*time.Second), consumer, 0, k.open("b")); !errors.Is(err, kafka.ErrReplaced) {
		t.Errorf("another log: %v, want ErrReplaced", err)
	}
	if k.count != 10 {
		t.Errorf("%d records were handed over", k.count)
	}
}

// A handler's error ends Follow, and ErrReload opens it again.
func TestFollowEndsWithItsHandler(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	if err := newProducer(t, cfg).Publish(t.Context(), numbered(name, 0, 3, 1)...); err != nil {
		t.Fatal(err)
	}
	k, enough, opened := newKeeper(), errors.New("enough"), 0
	err := kafka.Follow(within(t, 30*time.Second), kafka.ConsumerConfig{Config: cfg, Topic: name}, 0, func(ctx context.Context, partition int) (kafka.Handler, error) {
		h, err := k.open("a")(ctx, partition)
		opened++
		fail := cmp.Or(map[int]error{1: kafka.ErrReload}[opened], enough)
		h.(*handler).handle = func([]kafka.Record) error { return fail }
		return h, err
	})
	if !errors.Is(err, enough) || opened != 2 || !strings.Contains(err.Error(), "partition 0: offsets 0 to ") {
		t.Errorf("%v after %d handlers", err, opened)
	}
}
