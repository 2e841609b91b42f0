package nats_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream/nats"
	"hamlet/stream/questions"
	"hamlet/stream/servertest/loopback"
)

func TestConnectNamesTheAddressThatDoesNotAnswer(t *testing.T) {
	addr := loopback.Hold(t)
	_, err := nats.Connect(nats.Config{URL: "nats://me:secret@" + addr})
	if !errors.Is(err, natsgo.ErrNoServers) {
		t.Fatalf("Connect: %v, want ErrNoServers", err)
	}
	if s := err.Error(); !strings.Contains(s, addr) || !strings.Contains(s, "no server answers") || strings.Contains(s, "secret") {
		t.Errorf("error %q: want the address and what is wrong, and no password", s)
	}
}

func TestConnectWithAWrongPassword(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		Username: "scorer", Password: "right"})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	addr := "nats://" + s.Addr().String()

	_, err = nats.Connect(nats.Config{URL: addr, User: "scorer", Password: "wrong"})
	if err == nil || !strings.Contains(err.Error(), "check the user name") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("with a wrong password: %v", err)
	}
	_, err = nats.Connect(nats.Config{URL: addr, User: "scorer", Password: "right", Token: "t"})
	if err == nil || !strings.Contains(err.Error(), "only one") {
		t.Errorf("with a user and a token: %v", err)
	}
	_, err = nats.Connect(nats.Config{URL: addr, Creds: "/nonexistent/scorer.creds"})
	if err == nil || !strings.Contains(err.Error(), "credentials file") {
		t.Errorf("with a missing credentials file: %v", err)
	}
	conn, err := nats.Connect(nats.Config{URL: addr, User: "scorer", Password: "right"})
	if err != nil {
		t.Fatal(err)
	}
	if err := nats.Close(patience(t), conn); err != nil {
		t.Error(err)
	}
	if err := nats.Close(patience(t), conn); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

// A text that is not an address may contain a password anywhere.
func TestErrorsKeepPasswords(t *testing.T) {
	for _, address := range []string{
		"nats://user:s3cret@127.0.0.1:notaport",
		"nats://user:s3c%ret@127.0.0.1:4222",
		"nats://user:/s3cret@127.0.0.1:4222",
		"nats://user:12/s3cret@127.0.0.1:4222",
		"nats://us er:s3cret@127.0.0.1:4222",
		"nats://s3cret@",
		"s3cret://s3cret://",
		"127.0.0.1:4222,nats://user:s3cret@[::1:4222",
		"nats://user:s3cret@127.0.0.1:4222\x7f",
	} {
		_, err := nats.Connect(nats.Config{URL: address, Timeout: 50 * time.Millisecond})
		if err == nil {
			t.Fatalf("Connect(%q) succeeded", address)
		}
		for _, text := range []string{err.Error(), nats.Redact(address)} {
			if strings.Contains(text, "s3c") || strings.Contains(text, "ret@") || strings.Contains(text, "%re") {
				t.Errorf("Connect(%q): %q tells the password", address, text)
			}
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"nats://127.0.0.1:4222":               "nats://127.0.0.1:4222",
		"127.0.0.1:4222, tls://u:p@nats.two":  "nats://127.0.0.1:4222,tls://xxxxx@nats.two",
		"nats://token@nats.one:4222":          "nats://xxxxx@nats.one:4222",
		"nats://u:p%40@nats.one,nats://%@two": "nats://xxxxx@nats.one,(not an address)",
	} {
		if got := nats.Redact(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
}

// A service that was started before its server serves once there is one, and
// serves again after the server's restart.
func TestServiceOutlivesTheServer(t *testing.T) {
	addr := loopback.Hold(t)
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	start := func() *server.Server {
		t.Helper()
		s, err := server.NewServer(&server.Options{Host: at.IP.String(), Port: at.Port, NoSigs: true, NoLog: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		return s
	}
	stop := func(s *server.Server) { s.Shutdown(); s.WaitForShutdown() }

	conn, err := nats.Connect(nats.Config{URL: "nats://" + addr, Wait: true})
	if err != nil {
		t.Fatal(err)
	}
	service, err := nats.NewService(conn, nats.ServiceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Serve(ctx, scorer{}, nil) }()

	first := start()
	<-service.Ready()
	if _, err := client(t, conn, "").Ask(patience(t), questions.Question{Body: []byte("x"), ContentType: questions.Text}); err != nil {
		t.Errorf("after a late start of the server: %v", err)
	}
	back := conn.StatusChanged(natsgo.CONNECTED)
	stop(first)
	second := start()
	<-back
	if _, err := client(t, conn, "").Ask(patience(t), questions.Question{Body: []byte("x"), ContentType: questions.Text}); err != nil {
		t.Errorf("after a restart of the server: %v", err)
	}
	conn.RemoveStatusListener(back)

	// Stopping without a server must not hang.
	lost := conn.StatusChanged(natsgo.RECONNECTING)
	stop(second)
	<-lost
	conn.RemoveStatusListener(lost)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := nats.Close(patience(t), conn); err != nil {
		t.Errorf("close: %v", err)
	}
}
