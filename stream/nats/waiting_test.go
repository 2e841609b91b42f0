package nats_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream/nats"
	"hamlet/stream/servertest/loopback"
)

// A logged is a log that is read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// eventually waits until there is what is wanted.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

func startWithPassword(t *testing.T, addr, password string) (stop func()) {
	t.Helper()
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{Host: at.IP.String(), Port: at.Port, NoSigs: true, NoLog: true, Username: "scorer", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	stop = sync.OnceFunc(func() { s.Shutdown(); s.WaitForShutdown() })
	t.Cleanup(stop)
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the nats server doesn't listen")
	}
	return stop
}

// Who waits for a server says why there is none, also when it comes and refuses us.
func TestWaitingSaysWhy(t *testing.T) {
	addr := loopback.Hold(t)
	all, seldom := new(logged), new(logged)
	wait := func(w io.Writer, every time.Duration) *natsgo.Conn {
		conn, err := nats.ConnectTelling(nats.Config{
			URL: "nats://scorer:s3cret@" + addr, Wait: true, Log: slog.New(slog.NewTextHandler(w, nil)),
		}, every)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		return conn
	}
	conn := wait(all, time.Nanosecond)
	eventually(t, "nothing says that there is no server", func() bool { return strings.Contains(all.String(), "nats is not connected") })
	c := client(t, conn, "")
	if _, err := c.Info(patience(t)); !errors.Is(err, nats.ErrNoServer) {
		t.Errorf("without a server: %v", err)
	}

	startWithPassword(t, addr, "right")
	wait(seldom, time.Hour)
	const refused = "Authorization Violation"
	eventually(t, "nothing says that the password is wrong", func() bool { return strings.Count(all.String(), refused) > 1 })
	eventually(t, "an answer does not say that the password is wrong", func() bool {
		_, err := c.Info(patience(t))
		return errors.Is(err, nats.ErrNoServer) && strings.Contains(err.Error(), refused)
	})
	eventually(t, "nothing says at once that the password is wrong", func() bool { return strings.Contains(seldom.String(), refused) })
	if n := strings.Count(seldom.String(), "\n"); n != 1 || !strings.Contains(seldom.String(), "check the user name") {
		t.Errorf("in an hour it says %d times\n%s", n, seldom.String())
	}
	if strings.Contains(all.String()+seldom.String(), "s3cret") {
		t.Error("the log tells the password")
	}
}

// A server that comes back with another password is not an error in the log for each attempt.
func TestPasswordThatChanged(t *testing.T) {
	addr := loopback.Hold(t)
	stop := startWithPassword(t, addr, "right")
	log := new(logged)
	conn, err := nats.Connect(nats.Config{URL: "nats://scorer:right@" + addr, Wait: true, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	stop()
	startWithPassword(t, addr, "other")
	eventually(t, "it does not try again", func() bool { return conn.Stats().Reconnects > 2 })
	if text := log.String(); strings.Contains(text, "nats error") || strings.Count(text, "nats is not connected") > 1 {
		t.Errorf("the log says\n%s", text)
	}
}

// A closed connection does not come back, and is not waited for.
func TestAskOnClosedConnection(t *testing.T) {
	conn := connect(t, startServer(t))
	c := client(t, conn, "")
	conn.Close()
	if _, err := c.Info(patience(t)); !errors.Is(err, natsgo.ErrConnectionClosed) || errors.Is(err, nats.ErrNoServer) {
		t.Errorf("%v, want that the connection is closed", err)
	}
}
