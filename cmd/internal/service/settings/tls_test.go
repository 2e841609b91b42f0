package settings

import (
	"context"
	"crypto/tls"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/twmb/franz-go/pkg/kfake"

	"hamlet/cmd/internal/testkit/testca"
	"hamlet/state/redis"
	"hamlet/stream/nats"
)

// Kafka, NATS and Redis that want a client's certificate take that of their authority,
// and errors say what is wrong with another.
func TestClientCertificates(t *testing.T) {
	ca, stranger := testca.New(t), testca.New(t)
	cert, key := ca.Files(t, "learner", testca.Valid)
	strangerCert, strangerKey := stranger.Files(t, "learner", testca.Valid)
	expired := ca.Server(t)
	pair, err := tls.LoadX509KeyPair(ca.Files(t, "server", testca.Expired))
	if err != nil {
		t.Fatal(err)
	}
	expired.Certificates = []tls.Certificate{pair}
	log := slog.New(slog.DiscardHandler)
	for name, connect := range map[string]func(t *testing.T, addr, ca, cert, key string) error{
		"kafka": func(t *testing.T, addr, ca, cert, key string) error {
			cfg, err := Kafka{Kafka: []string{addr}, KafkaAccess: KafkaAccess{KafkaCA: ca, KafkaCert: cert, KafkaKey: key}}.Config("test", log)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			return cfg.Ping(ctx)
		},
		"nats": func(t *testing.T, addr, ca, cert, key string) error {
			cfg, err := NATS{NATS: "nats://" + addr, NATSAccess: NATSAccess{NATSCA: ca, NATSCert: cert, NATSKey: key}}.Config("test", log)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Timeout = 30 * time.Second
			conn, err := nats.Connect(cfg)
			if err == nil {
				conn.Close()
			}
			return err
		},
		"redis": func(t *testing.T, addr, ca, cert, key string) error {
			cfg, err := Redis{Redis: addr, RedisCA: ca, RedisCert: cert, RedisKey: key}.Config("default", log)
			if err != nil {
				t.Fatal(err)
			}
			store, err := redis.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			return store.Ping(t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := startTLS(t, name, ca.Server(t))
			addrExpired := startTLS(t, name, expired)
			for _, c := range []struct{ name, addr, ca, cert, key, want string }{
				{"right", addr, ca.File, cert, key, ""},
				{"no certificate", addr, ca.File, "", "", "of our own that an authority"},
				{"a stranger's certificate", addr, ca.File, strangerCert, strangerKey, "of our own that an authority"},
				{"the wrong authority", addr, stranger.File, cert, key, "authority"},
				{"a server with an expired certificate", addrExpired, ca.File, cert, key, "correct the clock"},
			} {
				err := connect(t, c.addr, c.ca, c.cert, c.key)
				if err != nil {
					t.Logf("%s: %v", c.name, err)
				}
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v, want %q", c.name, err, c.want)
				}
			}
		})
	}
}

// startTLS starts one of the servers and returns its address.
func startTLS(t *testing.T, name string, cfg *tls.Config) string {
	t.Helper()
	switch name {
	case "kafka":
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(cfg))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		return cluster.ListenAddrs()[0]
	case "nats":
		s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			TLS: true, TLSVerify: true, TLSTimeout: 30, TLSConfig: cfg})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		return s.Addr().String()
	case "redis":
		s := miniredis.NewMiniRedis()
		if err := s.StartTLS(cfg); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s.Addr()
	}
	panic("no server " + name)
}

// What the files of TLS lack is found before anything is opened, by flag.
func TestFilesOfTLS(t *testing.T) {
	ca := testca.New(t)
	cert, key := ca.Files(t, "a", testca.Valid)
	expired, expiredKey := ca.Files(t, "a", testca.Expired)
	_, other := ca.Files(t, "b", testca.Valid)
	for name, check := range map[string]func(ca, cert, key string) error{
		"kafka": func(ca, cert, key string) error {
			return Kafka{Kafka: []string{"k:9092"}, KafkaAccess: KafkaAccess{KafkaCA: ca, KafkaCert: cert, KafkaKey: key}}.Check()
		},
		"nats": func(ca, cert, key string) error {
			return NATS{NATS: "nats://n:4222", NATSAccess: NATSAccess{NATSCA: ca, NATSCert: cert, NATSKey: key}}.Check()
		},
		"redis": func(ca, cert, key string) error {
			return Redis{Redis: "r:6379", RedisCA: ca, RedisCert: cert, RedisKey: key}.Check()
		},
		"http-tls": func(_, cert, key string) error { return HTTPTLS{cert, key}.Check() },
	} {
		for _, c := range []struct{ ca, cert, key, want string }{
			{ca.File, cert, key, ""},
			{"", cert, key, ""},
			{"", cert, "", "--" + name + "-key"},
			{"", "", key, "--" + name + "-cert"},
			{"", cert, other, other + " is not the key of " + cert},
			{"", expired, expiredKey, "--" + name + "-cert, --" + name + "-key: " + expired + " expired at"},
			{"", cert + ".gone", key, "no such file"},
		} {
			err := check(c.ca, c.cert, c.key)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %s %s: %v, want %q", name, c.cert, c.key, err, c.want)
			}
		}
	}
}

// A token in clear text stays on this machine unless somebody says otherwise.
func TestTokenInClearText(t *testing.T) {
	ca := testca.New(t)
	cert, key := ca.Files(t, "a", testca.Valid)
	inTLS := EventsHTTP{HTTPTLS: HTTPTLS{cert, key}}
	for _, c := range []struct {
		flags       EventsHTTP
		addr, token string
		want        string
	}{
		{EventsHTTP{}, ":9100", "secret", "--http-tls-cert"},
		{EventsHTTP{}, "0.0.0.0:9100", "secret", "--http 127.0.0.1:9100"},
		{EventsHTTP{}, "[::]:9100", "secret", "--http-insecure"},
		{EventsHTTP{}, "192.0.2.1:9100", "secret", "clear text"},
		{EventsHTTP{}, "ingest.example:9100", "secret", "clear text"},
		{EventsHTTP{}, "127.0.0.1.example:9100", "secret", "clear text"},
		{EventsHTTP{}, "127.0.0.1:9100", "secret", ""},
		{EventsHTTP{}, "127.8.0.1:9100", "secret", ""},
		{EventsHTTP{}, "[::1]:9100", "secret", ""},
		{EventsHTTP{}, "[::ffff:127.0.0.1]:9100", "secret", ""},
		{EventsHTTP{}, "localhost:9100", "secret", ""},
		{EventsHTTP{}, ":9100", "", ""},
		{EventsHTTP{HTTPInsecure: true}, ":9100", "secret", ""},
		{inTLS, ":9100", "secret", ""},
		{EventsHTTP{}, "", "secret", "give it an address with --http"},
		{EventsHTTP{Metrics: ":9103"}, "127.0.0.1:9100", "secret", ""},
		{EventsHTTP{Metrics: ":9103"}, "", "", ""},
		{EventsHTTP{Tokens: "f"}, ":9100", "", "clear text"},
		{EventsHTTP{Tokens: "f"}, "", "", "give it an address with --http"},
		{EventsHTTP{Tokens: "f", Metrics: ":9103"}, "127.0.0.1:9100", "", ""},
		{EventsHTTP{Metrics: ":9103"}, ":9100", "", "would serve nothing"},
		{EventsHTTP{Metrics: "127.0.0.1:9100"}, "127.0.0.1:9100", "secret", "choose another"},
	} {
		err := c.flags.CheckAt(c.addr, c.token)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v at %q, token %q: %v, want %q", c.flags, c.addr, c.token, err, c.want)
		}
	}
}

// Other machines ask a gateway only with a token and TLS, unless somebody says otherwise.
func TestDoorForPrograms(t *testing.T) {
	ca := testca.New(t)
	cert, key := ca.Files(t, "a", testca.Valid)
	inTLS := EventsHTTP{HTTPTLS: HTTPTLS{cert, key}}
	for _, c := range []struct {
		flags  EventsHTTP
		addr   string
		tokens bool
		want   string
	}{
		{EventsHTTP{}, "", true, ""},
		{EventsHTTP{}, "127.0.0.1:9104", false, ""},
		{EventsHTTP{}, "[::1]:9104", true, ""},
		{EventsHTTP{Metrics: ":9103"}, "127.0.0.1:9104", false, ""},
		{EventsHTTP{Metrics: ":9103"}, "", false, ""},
		{EventsHTTP{}, ":9104", false, "asks nobody for a token"},
		{inTLS, ":9104", false, "asks nobody for a token"},
		{EventsHTTP{}, ":9104", true, "clear text"},
		{EventsHTTP{Tokens: "f"}, ":9104", false, "clear text"},
		{EventsHTTP{}, "gateway.example:9104", true, "clear text"},
		{inTLS, ":9104", true, ""},
		{EventsHTTP{HTTPInsecure: true}, ":9104", true, ""},
		{EventsHTTP{HTTPInsecure: true}, ":9104", false, ""},
		{EventsHTTP{Metrics: "127.0.0.1:9104"}, "127.0.0.1:9104", false, "choose another"},
		{EventsHTTP{HTTPTLS: HTTPTLS{cert, ""}}, ":9104", true, "--http-tls-key"},
	} {
		err := c.flags.CheckDoor(c.addr, c.tokens)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v at %q, tokens %v: %v, want %q", c.flags, c.addr, c.tokens, err, c.want)
		}
	}
}
