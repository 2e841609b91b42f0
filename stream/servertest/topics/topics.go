// Package topics makes topics of several partitions for tests. hamlet makes topics of one.
package topics

import (
	"testing"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream/kafka"
)

// Make makes a topic, which must not exist.
func Make(t testing.TB, cfg kafka.Config, name string, partitions int) {
	t.Helper()
	transport := &kafkago.Transport{TLS: cfg.TLS, SASL: cfg.SASL}
	defer transport.CloseIdleConnections()
	client := &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers...), Transport: transport}
	res, err := client.CreateTopics(t.Context(), &kafkago.CreateTopicsRequest{
		Topics: []kafkago.TopicConfig{{Topic: name, NumPartitions: partitions, ReplicationFactor: -1}},
	})
	if err == nil {
		err = res.Errors[name]
	}
	if err != nil {
		t.Fatalf("make topic %s: %v", name, err)
	}
}
