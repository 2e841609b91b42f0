package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"hamlet/stream/kafka"
)

// KafkaOptions say how to run the in-process Kafka. Zero fields mean defaults.
type KafkaOptions struct {
	Dir        string   // the logs' directory, created if missing; empty: in memory
	Addr       string   // host:port to listen on and to advertise; default 127.0.0.1:0, a free port
	Partitions int      // of each of Topics when it is created; default 1
	Topics     []string // created if they do not exist

	// MaxBytes bounds what each partition keeps, as compressed by the producer:
	// beyond it the oldest records are deleted, whether or not they were read, and
	// a consumer that had not come so far gets kafka.ErrGap. It is kept to within
	// a segment of 16 MiB and a second of writing. 0: no bound.
	MaxBytes int64
}

// A Kafka is one broker that is its own controller and coordinator.
//
// Without a directory the logs live in memory and grow with every record until
// Close, unless MaxBytes or a topic's retention bounds them.
type Kafka struct {
	cluster  *kfake.Cluster
	addr     string
	unlock   func() error
	trimming sync.WaitGroup
	closing  chan struct{}
	once     sync.Once
	err      error
}

// StartKafka starts a broker and returns when it answers and has its topics. The
// error names the address if its port is taken, and the directory if another
// process uses it.
func StartKafka(opts KafkaOptions) (*Kafka, error) {
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	if opts.Partitions == 0 {
		opts.Partitions = 1
	}
	k := &Kafka{unlock: func() error { return nil }, closing: make(chan struct{})}
	configs := map[string]string{
		"message.max.bytes": strconv.Itoa(maxMessageBytes),
		"log.segment.bytes": strconv.Itoa(segmentBytes),
		"log.retention.ms":  "-1", // a topic says itself how long it keeps its records
		// Said even when there is no bound: a directory remembers an earlier one.
		"log.retention.bytes": "-1",
	}
	if opts.MaxBytes > 0 {
		configs["log.retention.bytes"] = strconv.FormatInt(opts.MaxBytes, 10)
	}
	settings := []kfake.Opt{
		kfake.NumBrokers(1),
		// kfake has an opinion of its own on where to listen; ours wins.
		kfake.ListenFn(func(network, _ string) (net.Listener, error) {
			l, err := listen(network, opts.Addr)
			if err != nil {
				return nil, err
			}
			return requestListener{l}, nil
		}),
		kfake.GroupMinSessionTimeout(500 * time.Millisecond), // for tests; Kafka's own is 6 s
		kfake.BrokerConfigs(configs),
	}
	if opts.Dir != "" {
		dir, err := filepath.Abs(opts.Dir)
		if err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
		if k.unlock, err = LockDir(dir); err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
		settings = append(settings, kfake.DataDir(dir))
	}
	var err error
	if k.cluster, err = kfake.NewCluster(settings...); err != nil {
		return nil, errors.Join(fmt.Errorf("start kafka: %w", err), k.unlock())
	}
	boundPartitions(k.cluster)
	k.addr = k.cluster.ListenAddrs()[0]
	if opts.MaxBytes > 0 {
		k.trimming.Go(k.trim)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for _, topic := range opts.Topics {
		// kfake's own seeds count only while its directory is new.
		if err := kafka.EnsureTopic(ctx, kafka.Config{Brokers: []string{k.addr}}, topic, opts.Partitions, 1, 0); err != nil {
			return nil, errors.Join(fmt.Errorf("start kafka: %w", err), k.Close())
		}
	}
	return k, nil
}

const (
	// maxMessageBytes is a little more than Kafka's default of 1 MiB + 12, so that
	// a batch of one record of the largest size passes even uncompressed.
	maxMessageBytes = 1<<20 + 64<<10

	// segmentBytes is the piece in which old records are deleted.
	segmentBytes = 16 << 20

	// startTimeout bounds the wait for a broker in this very process.
	startTimeout = 10 * time.Second
)

// Addr returns the host:port that the broker listens on and advertises.
func (k *Kafka) Addr() string { return k.addr }

// Close stops the broker, closes its clients' connections, and gives the
// directory back.
func (k *Kafka) Close() error {
	k.once.Do(func() {
		close(k.closing)
		k.trimming.Wait()
		k.cluster.Close()
		k.err = k.unlock()
	})
	return k.err
}

// trim applies the retention every second; by itself kfake does so every hour,
// and only to topics with a retention of their own.
func (k *Kafka) trim() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.cluster.ApplyRetention()
		case <-k.closing:
			return
		}
	}
}

// listen listens on addr; the error of a taken port says what to do.
func listen(network, addr string) (net.Listener, error) {
	l, err := net.Listen(network, addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("address %s is taken by another program: stop that one or choose another port (0: any free one)", addr)
	}
	return l, err
}
