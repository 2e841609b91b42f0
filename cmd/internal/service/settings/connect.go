// Package settings holds the flags that several commands share: how Kafka, NATS and
// Redis are reached, and what the model is made of. A group of flags is a struct;
// Check finds mistakes in it before anything is opened, and Config turns it into the
// configuration of the part that it is about. Defaults are constants of the packages that a flag
// configures: see defaults in parse.go.
//
//	type flags struct {
//		settings.ModelName
//		settings.Kafka
//		cli.ProgramFlags
//	}
//
//	var f flags
//	_, err := settings.Parse("learner", description, &f, args, stdio)
//	err = settings.Check(f.Kafka)
//	cfg, err := f.Kafka.Config("hamlet-learner", log)
//
// A setting of the model is a flag only if an operator can know its right value.
// The others are keys of model.Config, in the configuration file below "model".
package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/secretfile"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream/kafka"
	"hamlet/stream/nats"
)

// ModelName names the model that a command works for.
type ModelName struct {
	Model string `help:"Name of the model: a–z, 0–9 and -." default:"default" placeholder:"NAME"`
}

// Validate is called by kong.
func (f ModelName) Validate() error {
	if !state.IsModelName(f.Model) {
		return fmt.Errorf("--model: %q is not a name of 1 to 64 of a–z, 0–9 and -", f.Model)
	}
	return nil
}

// Kafka are the flags that reach Kafka.
type Kafka struct {
	Kafka []string `help:"Kafka brokers, host:port." placeholder:"ADDR" group:"Kafka"`
	KafkaAccess
}

// KafkaAccess are the flags that say how the brokers are reached, and who connects.
type KafkaAccess struct {
	KafkaSASL     string `name:"kafka-sasl" help:"plain, scram-sha-256 or scram-sha-512." enum:",plain,scram-sha-256,scram-sha-512" default:"" placeholder:"MECHANISM" group:"Kafka" rare:"eval"`
	KafkaUser     string `help:"SASL user." placeholder:"USER" group:"Kafka" rare:"eval"`
	KafkaPassword string `help:"SASL password." placeholder:"SECRET" group:"Kafka" rare:"eval"`
	KafkaTLS      bool   `name:"kafka-tls" help:"Use TLS." group:"Kafka" rare:"eval"`
	KafkaCA       string `name:"kafka-ca" help:"PEM of the brokers' authority. See --kafka-cert." type:"existingfile" placeholder:"FILE" group:"Kafka" rare:"eval"`
	KafkaCert     string `name:"kafka-cert" help:"PEM of our own certificate, for brokers that want one." type:"existingfile" placeholder:"FILE" group:"Kafka" rare:"up,eval,learner"`
	KafkaKey      string `name:"kafka-key" help:"PEM of its key." type:"existingfile" placeholder:"FILE" group:"Kafka" rare:"up,eval,learner"`

	KafkaOutage time.Duration `help:"Wait this long while brokers restart; 0: always." default:"10m" placeholder:"D" group:"Kafka" rare:"eval"`
}

// minOutage is longer than an election of leaders.
const minOutage = 10 * time.Second

// Check reports what Config does not take.
func (f Kafka) Check() error {
	_, err := f.Config("", nil)
	return usage(err)
}

// Config returns the adapter's configuration.
func (f Kafka) Config(clientID string, log *slog.Logger) (kafka.Config, error) {
	if len(f.Kafka) == 0 {
		return kafka.Config{}, errors.New("no Kafka: name its brokers with --kafka HOST:PORT (or HAMLET_KAFKA); " +
			"`hamlet up` needs none")
	}
	return f.KafkaAccess.Config(f.Kafka, clientID, log)
}

// Config returns the adapter's configuration for the brokers at these addresses.
func (f KafkaAccess) Config(brokers []string, clientID string, log *slog.Logger) (kafka.Config, error) {
	cfg := kafka.Config{Brokers: brokers, ClientID: clientID, Log: log, MaxOutage: f.KafkaOutage,
		Seen: new(kafka.SeenTopics)}
	for _, addr := range brokers {
		if err := checkAddress("kafka", addr); err != nil {
			return cfg, err
		}
	}
	if f.KafkaOutage != 0 && f.KafkaOutage < minOutage {
		return cfg, fmt.Errorf("--kafka-outage: %v is neither 0, without end, nor at least %v", f.KafkaOutage, minOutage)
	}
	var err error
	if cfg.TLS, err = tlsConfig("kafka", f.KafkaTLS, f.KafkaCA, f.KafkaCert, f.KafkaKey, log); err != nil {
		return cfg, err
	}
	if cfg.SASL, err = f.mechanism(); err != nil {
		return cfg, err
	}
	return cfg, nil
}

func (f KafkaAccess) mechanism() (sasl.Mechanism, error) {
	if f.KafkaSASL == "" {
		if f.KafkaUser != "" || f.KafkaPassword != "" {
			return nil, errors.New("--kafka-user and --kafka-password need --kafka-sasl, the mechanism")
		}
		return nil, nil
	}
	switch f.KafkaSASL {
	case "scram-sha-256":
		return scram.Mechanism(scram.SHA256, f.KafkaUser, f.KafkaPassword)
	case "scram-sha-512":
		return scram.Mechanism(scram.SHA512, f.KafkaUser, f.KafkaPassword)
	}
	return plain.Mechanism{Username: f.KafkaUser, Password: f.KafkaPassword}, nil
}

// NATS are the flags that reach NATS.
type NATS struct {
	NATS string `name:"nats" help:"URLs of NATS, comma-separated." placeholder:"URL" group:"NATS"`
	NATSAccess
	Inbox     string                       `kong:"-"` // the first word of the subjects of answers
	InProcess natsgo.InProcessConnProvider `kong:"-"` // the server, if it is in this process
}

// NATSAccess are the flags that say who connects to NATS.
type NATSAccess struct {
	NATSCreds    string `name:"nats-creds" help:"Credentials file." type:"existingfile" placeholder:"FILE" group:"NATS"`
	NATSUser     string `name:"nats-user" help:"NATS user." placeholder:"USER" group:"NATS"`
	NATSPassword string `name:"nats-password" help:"NATS password." placeholder:"SECRET" group:"NATS"`
	NATSToken    string `name:"nats-token" help:"NATS token." placeholder:"SECRET" group:"NATS" rare:"up"`
	NATSCA       string `name:"nats-ca" help:"PEM of its authority. See --nats-cert." type:"existingfile" placeholder:"FILE" group:"NATS"`
	NATSCert     string `name:"nats-cert" help:"PEM of our own certificate, for servers that want one." type:"existingfile" placeholder:"FILE" group:"NATS" rare:"up"`
	NATSKey      string `name:"nats-key" help:"PEM of its key." type:"existingfile" placeholder:"FILE" group:"NATS" rare:"up"`
}

// Check reports what Config does not take.
func (f NATS) Check() error {
	_, err := f.Config("", nil)
	return usage(err)
}

// Config returns the adapter's configuration.
func (f NATS) Config(name string, log *slog.Logger) (nats.Config, error) {
	if f.NATS == "" {
		return nats.Config{}, errors.New("no NATS: name its server with --nats nats://HOST:PORT (or HAMLET_NATS); " +
			"`hamlet up` needs none")
	}
	cfg, err := f.NATSAccess.Config(f.NATS, name, log)
	cfg.Inbox, cfg.InProcess = f.Inbox, f.InProcess
	return knownService(cfg), err
}

// Config returns the adapter's configuration for the servers at url.
func (f NATSAccess) Config(url, name string, log *slog.Logger) (cfg nats.Config, err error) {
	cfg = nats.Config{
		URL: url, Name: name, Creds: f.NATSCreds, User: f.NATSUser, Password: f.NATSPassword, Token: f.NATSToken, Log: log,
	}
	if f.NATSCreds != "" {
		if err := secretfile.Check(f.NATSCreds); err != nil {
			return cfg, fmt.Errorf("--nats-creds: %w", err)
		}
	}
	cfg.TLS, err = tlsConfig("nats", false, f.NATSCA, f.NATSCert, f.NATSKey, log)
	return cfg, err
}

// Redis are the flags that reach Redis.
type Redis struct {
	Redis         string `help:"Redis, host:port; of a cluster several." placeholder:"ADDR" group:"Redis"`
	RedisUser     string `help:"Redis user." placeholder:"USER" group:"Redis"`
	RedisPassword string `help:"Redis password." placeholder:"SECRET" group:"Redis"`
	RedisDB       int    `name:"redis-db" help:"Redis database." default:"0" placeholder:"N" group:"Redis"`
	RedisTLS      bool   `name:"redis-tls" help:"Use TLS." group:"Redis"`
	RedisCA       string `name:"redis-ca" help:"PEM of Redis' authority. See --redis-cert." type:"existingfile" placeholder:"FILE" group:"Redis"`
	RedisCert     string `name:"redis-cert" help:"PEM of our own certificate, for a Redis that wants one." type:"existingfile" placeholder:"FILE" group:"Redis" rare:"up"`
	RedisKey      string `name:"redis-key" help:"PEM of its key." type:"existingfile" placeholder:"FILE" group:"Redis" rare:"up"`

	RedisCluster          bool   `help:"--redis names nodes of a Redis Cluster." group:"Redis" rare:"up"`
	RedisSentinel         string `help:"--redis names Sentinels; they know the master by this name." placeholder:"NAME" group:"Redis" rare:"up"`
	RedisSentinelUser     string `help:"Sentinel user." placeholder:"USER" group:"Redis" rare:"up,learner"`
	RedisSentinelPassword string `help:"Sentinel password." placeholder:"SECRET" group:"Redis" rare:"up,learner"`
}

// Check reports what Config does not take.
func (f Redis) Check() error {
	_, err := f.Config("", nil)
	return usage(err)
}

// Config returns the adapter's configuration for a model's checkpoints.
func (f Redis) Config(model string, log *slog.Logger) (redis.Config, error) {
	cfg := redis.Config{
		Addr: f.Redis, Username: f.RedisUser, Password: f.RedisPassword, DB: f.RedisDB, Model: model, Log: log,
		Cluster: f.RedisCluster, Sentinel: f.RedisSentinel, SentinelUsername: f.RedisSentinelUser,
		SentinelPassword: f.RedisSentinelPassword,
	}
	addrs := strings.Split(f.Redis, ",")
	switch {
	case f.Redis == "":
		return cfg, errors.New("no Redis: name it with --redis HOST:PORT (or HAMLET_REDIS); `hamlet up` needs none")
	case f.RedisDB < 0:
		return cfg, fmt.Errorf("--redis-db: %d is below zero", f.RedisDB)
	case f.RedisCluster && f.RedisSentinel != "":
		return cfg, errors.New("--redis-cluster and --redis-sentinel: give the one that --redis names")
	case f.RedisCluster && f.RedisDB > 0:
		return cfg, fmt.Errorf("--redis-db: a Redis Cluster has no database %d", f.RedisDB)
	case len(addrs) > 1 && !f.RedisCluster && f.RedisSentinel == "":
		return cfg, errors.New("--redis: several addresses need --redis-cluster, or --redis-sentinel with the master's name")
	case f.RedisSentinel == "" && (f.RedisSentinelUser != "" || f.RedisSentinelPassword != ""):
		return cfg, errors.New("--redis-sentinel-user and --redis-sentinel-password need --redis-sentinel, the master's name")
	}
	for _, addr := range addrs {
		addr = strings.TrimSpace(addr)
		if strings.HasPrefix(addr, "/") && !f.RedisCluster && f.RedisSentinel == "" { // the path of a socket
			continue
		}
		if err := checkAddress("redis", addr); err != nil {
			return cfg, err
		}
	}
	var err error
	cfg.TLS, err = tlsConfig("redis", f.RedisTLS, f.RedisCA, f.RedisCert, f.RedisKey, log)
	return cfg, err
}

// usage makes an error wrong usage.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &cli.UsageError{Err: err}
}

// checkAddress refuses what is not host:port. What looks as if it held a password
// is not quoted: addresses are logged, and errors as well.
func checkAddress(flag, addr string) error {
	if strings.Contains(addr, "://") || strings.Contains(addr, "@") {
		return fmt.Errorf("--%s: host:port is wanted, without a scheme, user or password: "+
			"those are --%s-tls, --%s-user and --%s-password",
			flag, flag, flag, flag)
	}
	_, port, err := net.SplitHostPort(addr)
	if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || n == 0 {
		return fmt.Errorf("--%s: %q is not host:port", flag, addr)
	}
	return checkNotUp(flag, addr)
}
