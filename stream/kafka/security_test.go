package kafka_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kfake"

	"hamlet/stream/kafka"
	"hamlet/stream/servertest/loopback"
)

// identity makes a certificate for 127.0.0.1: the server's side and the client's.
func identity(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: roots}
}

// The same user and certificate serve the admin requests, the log and the group.
func TestTLSAndSASL(t *testing.T) {
	server, client := identity(t)
	_, cfg := fakeCluster(t, kfake.TLS(server), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "learner", "secret"))
	mechanism, err := scram.Mechanism(scram.SHA256, "learner", "secret")
	if err != nil {
		t.Fatal(err)
	}
	cfg.TLS, cfg.SASL = client, mechanism
	if err := cfg.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	ensure(t, cfg, "t")
	log := newLog(t, cfg, "t")
	add(t, log, numbered(0, 100)...)
	k := newKeeper()
	stop := consume(t, cfg, "t", k.read("a"))
	k.until(t, "the records", func() bool { return k.count() == 100 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if b, err := log.Bounds(t.Context()); err != nil || b.First != 0 || b.End != 100 {
		t.Errorf("Bounds = %+v, %v", b, err)
	}
}

func TestPingSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	server, client := identity(t)
	_, stranger := identity(t)
	open := cluster(t)
	_, withTLS := fakeCluster(t, kfake.TLS(server))
	_, withSASL := fakeCluster(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "learner", "secret"))
	nobody := loopback.Hold(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() }) // accepts in the kernel and never answers
	for _, c := range []struct {
		name   string
		cfg    kafka.Config
		change func(*kafka.Config)
		is     error
		says   string
	}{
		{"right", open, func(*kafka.Config) {}, nil, ""},
		{"no broker", open, func(c *kafka.Config) { c.Brokers = []string{nobody} }, nil, "check the address"},
		{"no answer", open, func(c *kafka.Config) { c.Brokers = []string{silent.Addr().String()} }, context.DeadlineExceeded, "no answer in time"},
		{"TLS to plain text", open, func(c *kafka.Config) { c.TLS = client }, nil, "TLS"},
		{"plain text to TLS", withTLS, func(*kafka.Config) {}, nil, "TLS"},
		{"unknown authority", withTLS, func(c *kafka.Config) { c.TLS = stranger }, kafka.ErrTLS, "authority"},
		{"no password", withSASL, func(*kafka.Config) {}, nil, "SASL"},
		{"wrong password", withSASL, func(c *kafka.Config) { c.SASL = plain.Mechanism{Username: "learner", Password: "wrong"} }, nil, "password"},
		{"wrong mechanism", withSASL, func(c *kafka.Config) {
			c.SASL, _ = scram.Mechanism(scram.SHA512, "learner", "secret")
		}, nil, "password"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := c.cfg
			c.change(&cfg)
			timeout := 30 * time.Second
			if c.is == context.DeadlineExceeded {
				timeout = time.Second // all of which it takes
			}
			err := cfg.Ping(within(t, timeout))
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			t.Log(err)
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), cfg.Brokers[0]) {
				t.Errorf("Ping = %v; want the address %s and %q", err, cfg.Brokers[0], c.says)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("Ping = %v; want %v", err, c.is)
			}
		})
	}
}
