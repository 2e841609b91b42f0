package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"hamlet/state"
)

func TestMain(m *testing.M) {
	SetLogger(slog.New(slog.DiscardHandler)) // the library reports every refused connection itself
	// After many failed dials the library tries by itself, and sleeps for a second between tries.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// Every error that a user can cause names the address and what to do.
func TestErrorsSayWhatToDo(t *testing.T) {
	guarded := miniredis.RunT(t)
	guarded.RequireUserAuth("learner", "right")
	open := miniredis.RunT(t)
	// No server listens at the local address of a connection, and no one else gets its
	// port while the connection lasts.
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	nobody, err := from.Dial("tcp", open.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()

	for _, test := range []struct {
		name      string
		cfg       Config
		say       string
		transient bool
	}{
		{"nobody there", Config{Addr: nobody.LocalAddr().String()}, "no redis answers there: start one or correct the address", true},
		{"no password", Config{Addr: guarded.Addr()}, "correct them", false},
		{"wrong password", Config{Addr: guarded.Addr(), Username: "learner", Password: "wrong"}, "correct them", false},
		{"no TLS there", Config{Addr: open.Addr(), TLS: &tls.Config{}}, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := New(test.cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			err = s.Ping(t.Context())
			if err == nil {
				t.Fatal("ping succeeded")
			}
			mustContain(t, err.Error(), test.cfg.Addr, test.say)
			if test.say != "" && errors.Is(err, state.ErrTransient) != test.transient {
				t.Errorf("transient(%q) = %v, want %v", err, !test.transient, test.transient)
			}
			if _, err := s.Save(t.Context(), checkpoint(1, 1, "a")); err == nil {
				t.Error("save succeeded")
			} else {
				mustContain(t, err.Error(), test.cfg.Addr, "save model default")
			}
		})
	}
}

func TestNewReportsEveryField(t *testing.T) {
	_, err := New(Config{Model: "Bad Name", DB: -1, Keep: -1, Grace: -1})
	if err == nil {
		t.Fatal("New accepted it all")
	}
	mustContain(t, err.Error(), "no address", `"Bad Name"`, "database -1", "keep -1", "grace -1ns")
}

func TestTransient(t *testing.T) {
	busy := miniredis.RunT(t)
	s, err := New(Config{Addr: busy.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for reply, want := range map[string]bool{
		"LOADING Redis is loading the dataset in memory":                     true,
		"READONLY You can't write against a read only replica.":              true,
		"OOM command not allowed when used memory > 'maxmemory'.":            true,
		"BUSY Redis is busy running a script.":                               true,
		"MISCONF Redis is configured to save RDB snapshots, but cannot.":     true,
		"NOPERM this user has no permissions":                                false,
		"WRONGTYPE Operation against a key holding the wrong kind of value":  false,
		"ERR Error running script: user_script:1: attempt to call a nil":     false,
		"NOAUTH Authentication required.":                                    false,
		"ERR max number of clients reached":                                  true,
		"CLUSTERDOWN The cluster is down":                                    true,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data n": true,
	} {
		busy.SetError(reply)
		if _, err := s.Seize(t.Context(), "w"); err == nil || errors.Is(err, state.ErrTransient) != want {
			t.Errorf("reply %q: error %v is transient: %v, want %v", reply, err, !want, want)
		}
	}
	for _, reply := range []string{"MOVED 866 10.0.0.2:6379", "ASK 866 10.0.0.2:6379"} {
		busy.SetError(reply)
		_, err := s.Seize(t.Context(), "w")
		if err == nil || errors.Is(err, state.ErrTransient) {
			t.Fatalf("reply %q: error %v, want one that lasts", reply, err)
		}
		mustContain(t, err.Error(), "node of a Redis Cluster")
	}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{context.Canceled, false},
		{context.DeadlineExceeded, true},
		{io.EOF, true},
		{os.ErrDeadlineExceeded, true},
		{&net.DNSError{IsNotFound: true}, false},
		{&net.DNSError{IsTimeout: true}, true},
		{errors.New("else"), false},
	} {
		if got := transient(fmt.Errorf("save: %w", test.err)); test.err != nil && got != test.want {
			t.Errorf("transient(%v) = %v, want %v", test.err, got, test.want)
		}
	}
}
