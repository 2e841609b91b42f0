package kafka_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"hamlet/stream/kafka"
	"hamlet/stream/servertest/topics"
)

func TestEnsureLeavesAnExistingOne(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	topics.Make(t, cfg, name, 3)
	ensure(t, cfg, name)
	if n, err := cfg.Partitions(within(t, 30*time.Second), name); n != 3 || err != nil {
		t.Errorf("%d partitions, %v; want the 3 of its creation", n, err)
	}
	if err := cfg.Ensure(within(t, 30*time.Second), "a b/c", 1, 0); !errors.Is(err, kafka.ErrUnknownTopic) {
		t.Errorf("a bad name: %v, want ErrUnknownTopic", err)
	}
}

func TestEnsureRetention(t *testing.T) {
	cfg := cluster(t)
	client := &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers[0]), Transport: &kafkago.Transport{DialTimeout: 30 * time.Second, SASL: cfg.SASL}}
	defer client.Transport.(*kafkago.Transport).CloseIdleConnections()
	for _, c := range []struct {
		retention time.Duration
		want      string
	}{{90 * 24 * time.Hour, "7776000000"}, {-1, "-1"}} {
		name := topic(t)
		if err := cfg.Ensure(within(t, 30*time.Second), name, 0, c.retention); err != nil {
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

// A cluster that takes nearly a second for each answer is slow, not unreachable.
func TestSlowCluster(t *testing.T) {
	t.Parallel()
	var busy sync.RWMutex
	t.Cleanup(func() { // once the cluster is closed: its goroutines end with their writes
		busy.Lock()
		defer busy.Unlock()
	})
	_, cfg := fakeCluster(t, kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		return slow{l, &busy}, err
	}))
	if n, err := cfg.Partitions(within(t, 30*time.Second), "none"); n != 0 || err != nil {
		t.Errorf("%d partitions, %v; want the cluster's answer that there is no such topic", n, err)
	}
}

type slow struct {
	net.Listener
	busy *sync.RWMutex // held for reading while a connection is written to
}

func (s slow) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &slowConn{Conn: conn, busy: s.busy}
	c.open, c.cut = context.WithCancel(context.Background())
	return c, nil
}

type slowConn struct {
	net.Conn
	busy *sync.RWMutex
	open context.Context // ends at Close
	cut  context.CancelFunc
}

// Write is slow, unless the connection is closed.
func (c *slowConn) Write(b []byte) (int, error) {
	c.busy.RLock()
	defer c.busy.RUnlock()
	late, cancel := context.WithTimeout(c.open, 600*time.Millisecond)
	defer cancel()
	<-late.Done()
	return c.Conn.Write(b)
}

func (c *slowConn) Close() error {
	c.cut()
	return c.Conn.Close()
}
