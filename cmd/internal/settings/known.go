package settings

import (
	"net"
	"net/url"
	"strings"

	"github.com/segmentio/kafka-go/sasl/scram"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/credentials"
	"hamlet/state/redis"
	"hamlet/stream/embedded"
	"hamlet/stream/kafka"
	"hamlet/stream/nats"
)

// ServiceInbox begins the subjects of the answers to the service's user of an embedded
// NATS. A program that only asks may subscribe to _INBOX, and shall not read these.
const ServiceInbox = "_INBOX_hamlet"

// EmbeddedKafka returns the flags that reach an embedded Kafka; without a password it
// takes anybody.
func EmbeddedKafka(addr, password string) Kafka {
	if password == "" {
		return Kafka{Kafka: []string{addr}}
	}
	return Kafka{Kafka: []string{addr}, KafkaAccess: KafkaAccess{KafkaSASL: "scram-sha-256", KafkaUser: embedded.User, KafkaPassword: password}}
}

// EmbeddedNATS returns the flags with which a service reaches an embedded NATS.
func EmbeddedNATS(address, password string) NATS {
	if password == "" {
		return NATS{NATS: address}
	}
	return NATS{
		NATS: address, Inbox: ServiceInbox,
		NATSAccess: NATSAccess{NATSUser: credentials.ServiceUser, NATSPassword: password},
	}
}

// EmbeddedRedis returns the flags that reach a database of an embedded Redis.
func EmbeddedRedis(addr, password string, db int) Redis {
	return Redis{Redis: addr, RedisPassword: password, RedisDB: db}
}

// A configuration that says where a server is, but not who asks, may mean the server of
// a `hamlet up` that the same user runs. Then its password is known.

func knownKafka(cfg kafka.Config) (kafka.Config, error) {
	if len(cfg.Brokers) != 1 || cfg.SASL != nil || cfg.TLS != nil {
		return cfg, nil
	}
	login, ok := credentials.Find(cfg.Brokers[0], func(a credentials.Access) credentials.Login { return a.Kafka })
	if !ok {
		return cfg, nil
	}
	cfg.Brokers = []string{login.Addr}
	var err error
	cfg.SASL, err = scram.Mechanism(scram.SHA256, login.User, login.Password)
	return cfg, err
}

func knownRedis(cfg redis.Config) redis.Config {
	if cfg.Username != "" || cfg.Password != "" || cfg.TLS != nil || cfg.Cluster || cfg.Sentinel != "" {
		return cfg
	}
	if login, ok := credentials.Find(cfg.Addr, func(a credentials.Access) credentials.Login { return a.Redis }); ok {
		cfg.Addr, cfg.Username, cfg.Password = login.Addr, login.User, login.Password
	}
	return cfg
}

// OrRunning returns f. If f names no server, it returns the flags that reach the embedded
// Redis of the one `hamlet up` that this user runs. Several are wrong usage.
func (f Redis) OrRunning() (Redis, error) {
	if f.Redis != "" {
		return f, nil
	}
	var found []string
	for _, a := range credentials.Running() {
		if a.Redis.Addr != "" {
			found = append(found, a.Redis.Addr)
		}
	}
	if len(found) > 1 {
		return f, cli.Usagef("several `hamlet up` run: name the Redis of one with --redis: %s", strings.Join(found, ", "))
	}
	if len(found) == 1 {
		f.Redis = found[0]
	}
	return f, nil
}

// OrRunning returns f. If f names no broker, it returns the flags that reach the embedded
// Kafka of the one `hamlet up` that this user runs. Several are wrong usage.
func (f Kafka) OrRunning() (Kafka, error) {
	if len(f.Kafka) > 0 {
		return f, nil
	}
	var found []string
	for _, a := range credentials.Running() {
		if a.Kafka.Addr != "" {
			found = append(found, a.Kafka.Addr)
		}
	}
	if len(found) > 1 {
		return f, cli.Usagef("several `hamlet up` run: name the Kafka of one with --kafka: %s", strings.Join(found, ", "))
	}
	f.Kafka = found
	return f, nil
}

func knownService(cfg nats.Config) nats.Config {
	known := knownNATS(cfg, func(a credentials.Access) credentials.Login { return a.NATS })
	if known.User != cfg.User {
		known.Inbox = ServiceInbox
	}
	return known
}

// KnownAsker adds to cfg the user who asks for scores, if cfg names no user and the
// server is that of a `hamlet up` which the same user runs.
func KnownAsker(cfg nats.Config) nats.Config {
	return knownNATS(cfg, func(a credentials.Access) credentials.Login { return a.Asker })
}

// AskerLogin returns a function that looks KnownAsker's user and password up again at each
// connection, because an up that starts again may have others. It is nil if cfg says who
// connects.
func AskerLogin(cfg nats.Config) func() (user, password string) {
	if !Anonymous(cfg) {
		return nil
	}
	return func() (user, password string) {
		known := KnownAsker(cfg)
		return known.User, known.Password
	}
}

// WithServiceLogin is AskerLogin for the user of the services, who may do everything. It returns
// cfg with that Login, and the Inbox of that user. cfg stays as it is if it says who connects,
// or with TLS, whose certificate may say it.
func WithServiceLogin(cfg nats.Config) nats.Config {
	if !Anonymous(cfg) || cfg.TLS != nil {
		return cfg
	}
	plain := cfg
	cfg.Inbox = ServiceInbox
	cfg.Login = func() (user, password string) {
		known := knownService(plain)
		return known.User, known.Password
	}
	return cfg
}

func knownNATS(cfg nats.Config, login func(credentials.Access) credentials.Login) nats.Config {
	addr, ok := plainNATS(cfg)
	if !ok {
		return cfg
	}
	if l, ok := credentials.Find(addr, login); ok {
		cfg.URL, cfg.User, cfg.Password = "nats://"+l.Addr, l.User, l.Password
	}
	return cfg
}

// plainNATS returns the host:port of a configuration of one server without a user or TLS.
func plainNATS(cfg nats.Config) (addr string, ok bool) {
	if !Anonymous(cfg) || cfg.TLS != nil {
		return "", false
	}
	address := cfg.URL
	if !strings.Contains(address, "://") {
		address = "nats://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "nats" {
		return "", false
	}
	port := u.Port()
	if port == "" {
		port = "4222"
	}
	return net.JoinHostPort(u.Hostname(), port), true
}

// Anonymous reports whether cfg says nothing about who connects.
func Anonymous(cfg nats.Config) bool {
	return cfg.Creds == "" && cfg.User == "" && cfg.Password == "" && cfg.Token == "" && !strings.Contains(cfg.URL, "@")
}
