package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"hamlet/stream/embedded"
)

// brokers are the embedded ones that this process started.
type brokers struct {
	group   string // the learner's, on this Kafka
	closers []func() error
}

func (b *brokers) close() {
	for i := len(b.closers) - 1; i >= 0; i-- {
		_ = b.closers[i]() // the process is about to end; what matters was saved
	}
}

// startBrokers starts whatever no flag names, and puts its address into the
// flags.
func (c *upCommand) startBrokers(w io.Writer, log *slog.Logger) (_ *brokers, err error) {
	b := &brokers{group: "hamlet.learner." + c.ModelName.Model}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	dir := func(string) string { return "" }
	if c.Data != "" {
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			return nil, fmt.Errorf("--data: %w", err)
		}
		unlock, err := embedded.LockDir(c.Data)
		if err != nil {
			return nil, err
		}
		b.closers = append(b.closers, unlock)
		dir = func(name string) string { return filepath.Join(c.Data, name) }
	}
	own := ""
	if len(c.Kafka.Kafka) == 0 {
		options := embedded.KafkaOptions{Dir: dir("kafka"), Addr: c.ListenKafka}
		if c.Generate != nil && *c.Generate == 0 { // a stream without end must not fill the memory
			options.MaxBytes = endlessKafkaBytes
		}
		k, err := embedded.StartKafka(options)
		if err != nil {
			return nil, err
		}
		b.closers = append(b.closers, k.Close)
		c.Kafka.Kafka = []string{k.Addr()}
		// A process killed without a word is still a member of its group for a
		// while; nobody else reads this Kafka, so there is nothing to wait for.
		b.group = fmt.Sprintf("%s.%d", b.group, time.Now().UnixNano())
		own += "  kafka  " + k.Addr() + "\n"
	}
	if c.Redis.Redis == "" {
		r, err := embedded.StartRedis(embedded.RedisOptions{Dir: dir("redis"), Addr: c.ListenRedis, Log: log})
		if err != nil {
			return nil, err
		}
		b.closers = append(b.closers, r.Close)
		c.Redis.Redis = r.Addr()
		own += "  redis  " + r.Addr() + "\n"
	}
	if c.NATS.NATS == "" {
		n, err := embedded.StartNATS(embedded.NATSOptions{Dir: dir("nats"), Addr: c.natsAddr(), Log: log})
		if err != nil {
			return nil, err
		}
		b.closers = append(b.closers, n.Close)
		c.NATS.NATS = n.URL()
		own += "  nats   " + n.URL() + "\n"
	}
	if own != "" {
		where := "in memory: all is gone when it ends; --data DIR keeps it"
		if c.Data != "" {
			where = "in " + c.Data
		}
		fmt.Fprintf(w, "embedded brokers, %s\n%s", where, own)
	}
	return b, nil
}

// natsAddr is where the embedded NATS listens: what the flag says, else the port
// that `hamlet score` asks, else any.
func (c *upCommand) natsAddr() string {
	if c.ListenNATS != "" {
		return c.ListenNATS
	}
	const usual = "127.0.0.1:4222"
	if c.Once {
		return "127.0.0.1:0" // nobody will ask
	}
	l, err := net.Listen("tcp", usual)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = l.Close()
	return usual
}
