package settings

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An address is host:port; one with a password in it is refused without saying it.
func TestAddresses(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for addr, fails := range map[string]string{
		"redis:6379":                     "",
		"[::1]:6379":                     "",
		"redis://:s3cret@127.0.0.1:6379": "without a scheme, user or password",
		"u:s3cret@127.0.0.1:9092":        "without a scheme, user or password",
		"rediss://127.0.0.1:6379":        "without a scheme, user or password",
		"127.0.0.1":                      `"127.0.0.1" is not host:port`,
		"127.0.0.1:0":                    "is not host:port",
		"127.0.0.1:70000":                "is not host:port",
		"127.0.0.1:http":                 "is not host:port",
	} {
		_, redisErr := Redis{Redis: addr}.Config("default", log)
		_, kafkaErr := Kafka{Kafka: []string{"kafka:9092", addr}}.Config("test", log)
		for flag, err := range map[string]error{"--redis": redisErr, "--kafka": kafkaErr} {
			switch {
			case fails == "" && err != nil:
				t.Errorf("%s %s: %v", flag, addr, err)
			case fails != "" && (err == nil || !strings.Contains(err.Error(), fails) || !strings.Contains(err.Error(), flag)):
				t.Errorf("%s %s: %v, want %q", flag, addr, err, fails)
			case err != nil && strings.Contains(err.Error(), "s3cret"):
				t.Errorf("%s: the error tells the password: %v", flag, err)
			}
		}
	}
	if _, err := (Redis{Redis: "/run/redis.sock"}).Config("default", log); err != nil {
		t.Errorf("a socket: %v", err)
	}
}

// Several addresses of Redis say what they are: Sentinels, or nodes of a Cluster.
func TestSeveralAddressesOfRedis(t *testing.T) {
	for fails, f := range map[string]Redis{
		"several addresses need --redis-cluster, or --redis-sentinel": {Redis: "a:1,b:1"},
		`--redis: "b" is not host:port`:                               {Redis: "a:1, b", RedisCluster: true},
		`"/run/redis.sock" is not host:port`:                          {Redis: "/run/redis.sock", RedisSentinel: "hamlet"},
		"--redis-cluster and --redis-sentinel":                        {Redis: "a:1", RedisCluster: true, RedisSentinel: "hamlet"},
		"has no database 2":                                           {Redis: "a:1", RedisCluster: true, RedisDB: 2},
		"need --redis-sentinel":                                       {Redis: "a:1", RedisSentinelPassword: "s3cret"},
		"":                                                            {Redis: "a:1, b:1", RedisCluster: true},
	} {
		_, err := f.Config("default", nil)
		if fails == "" && err != nil || fails != "" && (err == nil || !strings.Contains(err.Error(), fails)) {
			t.Errorf("%+v: %v, want %q", f, err, fails)
		}
	}
	cfg, err := Redis{Redis: "a:1,b:1", RedisSentinel: "hamlet", RedisSentinelUser: "u", RedisSentinelPassword: "p", RedisDB: 2}.Config("m", nil)
	if err != nil || cfg.Addr != "a:1,b:1" || cfg.Sentinel != "hamlet" || cfg.SentinelUsername != "u" || cfg.SentinelPassword != "p" || cfg.DB != 2 {
		t.Errorf("Sentinels: %+v, %v", cfg, err)
	}
}

// An outage is 0 or longer than an election of leaders.
func TestKafkaOutage(t *testing.T) {
	for outage, good := range map[time.Duration]bool{0: true, 10 * time.Second: true, 10 * time.Minute: true, time.Second: false, -time.Minute: false} {
		cfg, err := Kafka{Kafka: []string{"kafka:9092"}, KafkaAccess: KafkaAccess{KafkaOutage: outage}}.Config("test", nil)
		if good && (err != nil || cfg.MaxOutage != outage || cfg.Seen == nil) || !good && (err == nil || !strings.Contains(err.Error(), "--kafka-outage")) {
			t.Errorf("%v: %+v, %v", outage, cfg, err)
		}
	}
}

// A file of credentials is nobody else's to read.
func TestCredentialsAreSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scorer.creds")
	if err := os.WriteFile(path, []byte("seed"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{0o600: "", 0o640: "", 0o644: "--nats-creds: " + path} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		err := NATS{NATS: "nats://n:4222", NATSAccess: NATSAccess{NATSCreds: path}}.Check()
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("mode %#o: %v, want %q", mode, err, want)
		}
	}
}
