package kafka_test

import (
	"errors"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream/kafka"
)

func TestEnsureTopicLeavesAnExistingOne(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 3)
	ensure(t, cfg, name, 5)
	first, end, err := kafka.Offsets(within(t, 10*time.Second), cfg, name)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 3 || len(end) != 3 {
		t.Errorf("%d partitions, want the 3 of its creation", len(first))
	}
	if err := kafka.EnsureTopic(t.Context(), cfg, name, 0, 1, 0); err == nil {
		t.Error("a topic without partitions was accepted")
	}
	if err := kafka.EnsureTopic(within(t, 10*time.Second), cfg, "a b/c", 1, 1, 0); !errors.Is(err, kafka.ErrUnknownTopic) {
		t.Errorf("a bad name: %v, want ErrUnknownTopic", err)
	}
}

func TestEnsureTopicRetention(t *testing.T) {
	cfg := cluster(t)
	client := &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers[0]), Transport: &kafkago.Transport{}}
	defer client.Transport.(*kafkago.Transport).CloseIdleConnections()
	for _, c := range []struct {
		retention time.Duration
		want      string
	}{{90 * 24 * time.Hour, "7776000000"}, {-1, "-1"}} {
		name := topic(t)
		if err := kafka.EnsureTopic(within(t, 10*time.Second), cfg, name, 1, 0, c.retention); err != nil {
			t.Fatal(err)
		}
		res, err := client.DescribeConfigs(t.Context(), &kafkago.DescribeConfigsRequest{Resources: []kafkago.DescribeConfigRequestResource{{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: name, ConfigNames: []string{"retention.ms"},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if entries := res.Resources[0].ConfigEntries; len(entries) != 1 || entries[0].ConfigValue != c.want {
			t.Errorf("retention %v: got %+v, want %s ms", c.retention, entries, c.want)
		}
	}
}

func TestLastRecord(t *testing.T) {
	t.Parallel()
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 2)
	if _, ok, err := kafka.LastRecord(within(t, 10*time.Second), cfg, name, 0); ok || err != nil {
		t.Errorf("empty: %v, %v", ok, err)
	}
	p := newProducer(t, cfg)
	for i := range 3 {
		if err := p.Publish(t.Context(), numbered(name, 1000*i, 1000, 9)...); err != nil {
			t.Fatal(err)
		}
	}
	_, end, err := kafka.Offsets(within(t, 10*time.Second), cfg, name)
	if err != nil {
		t.Fatal(err)
	}
	newest := ""
	for partition := range 2 {
		r, ok, err := kafka.LastRecord(within(t, 10*time.Second), cfg, name, partition)
		if !ok || err != nil || r.Offset != end[partition]-1 || r.Partition != partition || r.Topic != name {
			t.Fatalf("partition %d: %+v, %v, %v; want offset %d", partition, r, ok, err, end[partition]-1)
		}
		newest = max(newest, string(r.Value))
	}
	if newest != "2999" {
		t.Errorf("newest value %s, want 2999", newest)
	}
	if _, _, err := kafka.LastRecord(within(t, 10*time.Second), cfg, name, 7); !errors.Is(err, kafka.ErrUnknownTopic) {
		t.Errorf("a partition that is not there: %v, want ErrUnknownTopic", err)
	}
}
