package systemd

import (
	"bytes"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// A socket is found by the address of a flag, and given to one of them. Those that no flag
// asks for are named in the log.
func TestListener(t *testing.T) {
	var s sockets
	s.taken = true
	path := filepath.Join(t.TempDir(), "door.sock")
	for _, at := range []struct{ network, addr string }{{"tcp", "127.0.0.1:0"}, {"tcp", ":0"}, {"unix", path}, {"tcp", "127.0.0.1:0"}} {
		l, err := net.Listen(at.network, at.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		s.held = append(s.held, l)
	}
	all := append([]net.Listener{}, s.held...)
	_, port, err := net.SplitHostPort(all[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, everywhere, err := net.SplitHostPort(all[1].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		addr string
		want net.Listener
	}{
		{"127.0.0.1:1", nil}, {":" + port, nil}, {"127.0.0.2:" + port, nil}, {"unix:" + path + "x", nil}, {path, nil}, {"no address", nil},
		{"127.0.0.1:" + port, all[0]}, {"127.0.0.1:" + port, nil}, {":" + everywhere, all[1]}, {"unix:" + path, all[2]},
	} {
		if got, err := s.at(c.addr); err != nil || got != c.want {
			t.Errorf("%s: %v, %v, want %v", c.addr, got, err, c.want)
		}
	}
	var log bytes.Buffer
	s.warnOfUnused(slog.New(slog.NewTextHandler(&log, nil)))
	if want := all[3].Addr().String(); strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %s:\n%s", want, &log)
	}
}
