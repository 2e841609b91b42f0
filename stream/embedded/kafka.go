package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hamlet/stream/kafka"
)

// KafkaOptions configure the in-process Kafka. Zero fields mean defaults.
type KafkaOptions struct {
	Dir    string   // the logs' directory, created if missing; empty: in memory
	Addr   string   // host:port to listen on and to advertise; default 127.0.0.1:0, a free port
	Topics []string // of one partition, created if they do not exist

	// Password is that of [User], who authenticates with SCRAM-SHA-256. Nobody else is
	// let in. Empty: everybody is.
	Password string

	// MaxBytes bounds the compressed log of each partition, to within a segment of 16
	// MiB and a second. Beyond it the oldest records are deleted, read or not. 0: no
	// bound.
	MaxBytes int64
}

// A Kafka is one broker that is its own controller and coordinator.
//
// Without a directory its logs are in memory and grow until Close, unless MaxBytes
// or a topic's retention bounds them.
type Kafka struct {
	*failure // a record or the bookkeeping could not be written
	cluster  *kfake.Cluster
	addr     string
	close    func() error
}

// StartKafka starts a broker and returns when it answers and has its topics. Its error
// names an address or a directory in use.
func StartKafka(opts KafkaOptions) (*Kafka, error) {
	dir, unlock, err := openDir(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	configs := map[string]string{
		"message.max.bytes": strconv.Itoa(maxMessageBytes),
		"log.segment.bytes": strconv.Itoa(segmentBytes),
		"log.retention.ms":  "-1", // topics configure their own
		// Set also without a bound, because a directory remembers an earlier one.
		"log.retention.bytes": "-1",
	}
	if opts.MaxBytes > 0 {
		configs["log.retention.bytes"] = strconv.FormatInt(opts.MaxBytes, 10)
	}
	failed := newFailure(dir)
	settings := []kfake.Opt{
		kfake.WithLogger(kafkaLog{failed}),
		kfake.NumBrokers(1),
		kfake.ListenFn(func(network, _ string) (net.Listener, error) { // kfake's own address is ignored
			l, err := listen(network, cmp.Or(opts.Addr, defaultAddr))
			if err != nil {
				return nil, err
			}
			return kafkaListener{patientListener{l, failed}}, nil
		}),
		kfake.GroupMinSessionTimeout(500 * time.Millisecond), // for tests; Kafka's own is 6 s
		kfake.BrokerConfigs(configs),
	}
	own := kafka.Config{} // how this function reaches the broker
	if opts.Password != "" {
		if own.SASL, err = scram.Mechanism(scram.SHA256, User, opts.Password); err != nil {
			return nil, errors.Join(fmt.Errorf("start kafka: password: %w", err), unlock())
		}
		settings = append(settings, kfake.EnableSASL(), kfake.Superuser(mechanism, User, opts.Password))
	}
	if dir != "" {
		settings = append(settings, kfake.DataDir(dir))
		// kfake stores its users, and prefers the stored ones to those of its options.
		if err := os.Remove(filepath.Join(dir, kfakeUsers)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("start kafka: %w", err), unlock())
		}
	}
	cluster, err := kfake.NewCluster(settings...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start kafka: %w", explain(dir, err)), unlock())
	}
	boundPartitions(cluster)
	refuseAfter(cluster, failed)
	var retention sync.WaitGroup
	closing, stop := context.WithCancel(context.Background())
	k := &Kafka{failure: failed, cluster: cluster, addr: cluster.ListenAddrs()[0], close: sync.OnceValue(func() error {
		stop()
		retention.Wait()
		cluster.Close()
		return errors.Join(failed.get(), unlock())
	})}
	if opts.MaxBytes > 0 {
		retention.Go(func() { k.applyRetention(closing) })
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	own.Brokers = []string{k.addr}
	for _, topic := range opts.Topics {
		// kfake's option for topics works only in a new directory.
		if err := kafka.EnsureTopic(ctx, own, topic, 1, 0); err != nil {
			return nil, errors.Join(fmt.Errorf("start kafka: %w", err), k.Close())
		}
	}
	if failed.get() != nil { // a topic is in memory only
		return nil, fmt.Errorf("start kafka: %w", k.Close())
	}
	return k, nil
}

const (
	// maxMessageBytes is a little more than Kafka's default, for an uncompressed batch
	// of one record of the largest size.
	maxMessageBytes = 1<<20 + 64<<10

	// segmentBytes is the unit in which retention deletes records.
	segmentBytes = 16 << 20

	// startTimeout bounds the wait for a broker in this process.
	startTimeout = 10 * time.Second

	// kfakeUsers is kfake's file of users in its directory.
	kfakeUsers = "sasl.json"
)

// mechanism is how the user authenticates.
const mechanism = "SCRAM-SHA-256"

// User is the user of the embedded Kafka who has its password.
const User = "hamlet"

// Addr returns the host:port that the broker listens on and advertises.
func (k *Kafka) Addr() string { return k.addr }

// Close stops the broker and unlocks the directory. It returns the error of Wait, if
// there is one.
func (k *Kafka) Close() error { return k.close() }

// applyRetention applies the retention every second until ctx ends; kfake does so
// every hour.
func (k *Kafka) applyRetention(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.cluster.ApplyRetention()
		case <-ctx.Done():
			return
		}
	}
}

// kafkaLog records what kfake only logs: an error of writing.
type kafkaLog struct{ failure *failure }

func (l kafkaLog) Logf(level kfake.LogLevel, _ string, v ...any) {
	if level == kfake.LogLevelNone || level > kfake.LogLevelWarn {
		return
	}
	for _, arg := range v {
		// Only the system's errors: a request may fail for many reasons.
		var system syscall.Errno
		if err, ok := arg.(error); ok && errors.As(err, &system) && l.failure.dir != "" {
			l.failure.record(fmt.Errorf("kafka: %w", explain(l.failure.dir, err)))
		}
	}
}

// refuseAfter makes c acknowledge no record after a failure. The topic or an index may
// be in memory only, and a restart would lose what came behind.
func refuseAfter(c *kfake.Cluster, f *failure) {
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		if err := f.get(); err != nil {
			c.KeepControl()
			return nil, err, true // closes the connection
		}
		return nil, nil, false
	})
}
