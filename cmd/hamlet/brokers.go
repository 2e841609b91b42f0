package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"hamlet/cmd/internal/services"
	"hamlet/stream/embedded"
)

// startBrokers starts the brokers that no flag names, for s to close, and puts their
// addresses into the flags. It returns the learner's consumer group.
func (c *upCommand) startBrokers(s *services.Set, w io.Writer, log *slog.Logger) (group string, err error) {
	group = "hamlet.learner." + c.ModelName.Model
	dir := func(string) string { return "" }
	if c.Data != "" {
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			return "", fmt.Errorf("--data: %w", err)
		}
		unlock, err := embedded.LockDir(c.Data)
		if err != nil {
			return "", err
		}
		s.OnClose(func() { _ = unlock() })
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
			return "", err
		}
		s.OnClose(func() { _ = k.Close() })
		c.Kafka.Kafka = []string{k.Addr()}
		// A killed process stays a member of its group for a while. Nobody else
		// reads this Kafka, so a new group need not wait.
		group = fmt.Sprintf("%s.%d", group, time.Now().UnixNano())
		own += "  kafka  " + k.Addr() + "\n"
	}
	if c.Redis.Redis == "" {
		r, err := embedded.StartRedis(embedded.RedisOptions{Dir: dir("redis"), Addr: c.ListenRedis, Log: log})
		if err != nil {
			return "", err
		}
		s.OnClose(func() { _ = r.Close() })
		c.Redis.Redis = r.Addr()
		own += "  redis  " + r.Addr() + "\n"
	}
	if c.NATS.NATS == "" {
		n, err := embedded.StartNATS(embedded.NATSOptions{Dir: dir("nats"), Addr: c.natsAddr(), Log: log})
		if err != nil {
			return "", err
		}
		s.OnClose(func() { _ = n.Close() })
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
	return group, nil
}

// natsAddr is where the embedded NATS listens: what the flag says, else the port
// that `hamlet score` asks, else any.
func (c *upCommand) natsAddr() string {
	const usual, any = "127.0.0.1:4222", "127.0.0.1:0"
	if c.ListenNATS != "" {
		return c.ListenNATS
	}
	if c.Once { // nobody asks
		return any
	}
	l, err := net.Listen("tcp", usual)
	if err != nil {
		return any
	}
	_ = l.Close()
	return usual
}
