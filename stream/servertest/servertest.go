// Package servertest runs the servers of tests in the process: a Kafka (kfake) and a Redis
// (miniredis). They listen on loopback, speak the real protocols, and take everybody. Package embedded
// has the NATS. Real servers: state/redis/redistest, and the script deploy/servers.
//
//	kafka, err := servertest.StartKafka(servertest.KafkaOptions{Topics: []string{"hamlet.events.default"}})
//	if err != nil {
//		return err
//	}
//	defer kafka.Close()
//	brokers := []string{kafka.Addr()}
package servertest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/twmb/franz-go/pkg/kfake"

	"hamlet/stream/kafka"
)

// defaultAddr is a free port of loopback.
const defaultAddr = "127.0.0.1:0"

// KafkaOptions configure a Kafka. Zero fields mean defaults.
type KafkaOptions struct {
	Dir    string   // keeps the logs for the next one that is started there; empty: in memory
	Addr   string   // host:port; default 127.0.0.1:0, a free port
	Topics []string // of one partition, created if they do not exist
}

// A Kafka is a cluster of one broker.
type Kafka struct {
	cluster *kfake.Cluster
	close   func() error
}

// StartKafka starts a broker and returns when it answers.
func StartKafka(opts KafkaOptions) (*Kafka, error) {
	settings := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ListenFn(func(network, _ string) (net.Listener, error) { // kfake's own address is ignored
			return net.Listen(network, cmp.Or(opts.Addr, defaultAddr))
		}),
		kfake.GroupMinSessionTimeout(500 * time.Millisecond), // Kafka's own is 6 s
		kfake.BrokerConfigs(map[string]string{
			"message.max.bytes": strconv.Itoa(1<<20 + 64<<10), // an uncompressed batch of one record of the largest size
			"log.retention.ms":  "-1",                         // topics configure their own
		}),
	}
	if opts.Dir != "" {
		settings = append(settings, kfake.DataDir(opts.Dir))
	}
	cluster, err := kfake.NewCluster(settings...)
	if err != nil {
		return nil, fmt.Errorf("start kafka: %w", err)
	}
	k := &Kafka{cluster: cluster, close: sync.OnceValue(func() error { cluster.Close(); return nil })}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, topic := range opts.Topics {
		// kfake's option for topics works only in a new directory.
		if err := (kafka.Config{Brokers: []string{k.Addr()}}).Ensure(ctx, topic, 1, 0); err != nil {
			return nil, fmt.Errorf("start kafka: %w", err)
		}
	}
	return k, nil
}

// Addr returns the broker's host:port.
func (k *Kafka) Addr() string { return k.cluster.ListenAddrs()[0] }

// Close stops the broker.
func (k *Kafka) Close() error { return k.close() }

// RedisOptions configure a Redis. Zero fields mean defaults.
type RedisOptions struct {
	Addr string // host:port; default 127.0.0.1:0, a free port
}

// A Redis is one server in memory.
type Redis struct{ mini *miniredis.Miniredis }

// StartRedis starts a server.
func StartRedis(opts RedisOptions) (*Redis, error) {
	r := &Redis{mini: miniredis.NewMiniRedis()}
	if err := r.mini.StartAddr(cmp.Or(opts.Addr, defaultAddr)); err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	return r, nil
}

// Addr returns the server's host:port.
func (r *Redis) Addr() string { return r.mini.Addr() }

// Close stops the server. Restart starts it again with what it had.
func (r *Redis) Close() error {
	r.mini.Close()
	return nil
}

// Restart starts a server that was closed.
func (r *Redis) Restart() error { return r.mini.Restart() }

// Remember notes all strings, hashes, sets and sorted sets. restore brings that state back, as a server does
// that comes up with an older file.
func (r *Redis) Remember() (restore func() error) {
	var again []func() error
	for _, key := range r.mini.Keys() {
		switch r.mini.Type(key) {
		case "string":
			value, _ := r.mini.Get(key)
			again = append(again, func() error { return r.mini.Set(key, value) })
		case "hash":
			fields, _ := r.mini.HKeys(key)
			for _, field := range fields {
				value := r.mini.HGet(key, field)
				again = append(again, func() error { r.mini.HSet(key, field, value); return nil })
			}
		case "set":
			members, _ := r.mini.Members(key)
			again = append(again, func() error { _, err := r.mini.SetAdd(key, members...); return err })
		case "zset":
			members, _ := r.mini.SortedSet(key)
			for member, score := range members {
				again = append(again, func() error { _, err := r.mini.ZAdd(key, score, member); return err })
			}
		}
	}
	return func() error {
		r.mini.FlushAll()
		for _, set := range again {
			if err := set(); err != nil {
				return err
			}
		}
		return nil
	}
}
