package systemd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/activation"
)

// Sockets are the listening sockets that systemd has handed to this process, because a unit
// such as hamlet.socket holds them. They stay open while the service restarts: who connects
// meanwhile waits, and is served by the next process.
//
// The addresses are those of the flags. A flag whose address systemd holds uses that socket.
type sockets struct {
	mu    sync.Mutex
	taken bool
	held  []net.Listener // that no flag has asked for yet
}

var inherited sockets

// Listener returns the socket that systemd holds at an address: host:port, or unix:PATH. It is
// nil if there is none. A socket is returned once.
func Listener(addr string) (net.Listener, error) { return inherited.at(addr) }

func (s *sockets) at(addr string) (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.taken {
		s.taken = true
		var errs []error
		for _, f := range activation.Files(true) {
			l, err := net.FileListener(f)
			if err := errors.Join(err, f.Close()); err != nil {
				errs = append(errs, fmt.Errorf("the socket %s of systemd: %w", f.Name(), err))
				continue
			}
			s.held = append(s.held, l)
		}
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
	}
	if len(s.held) == 0 {
		return nil, nil
	}
	i := slices.IndexFunc(s.held, func(l net.Listener) bool { return same(l.Addr(), addr) })
	if i < 0 {
		return nil, nil
	}
	l := s.held[i]
	s.held = slices.Delete(s.held, i, i+1)
	return l, nil
}

// same reports whether a socket has the address of a flag.
func same(at net.Addr, addr string) bool {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return at.Network() == "unix" && at.String() == path
	}
	tcp, ok := at.(*net.TCPAddr)
	if !ok {
		return false
	}
	wanted, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil || wanted.Port != tcp.Port {
		return false
	}
	anywhere := wanted.IP == nil || wanted.IP.IsUnspecified()
	return anywhere && tcp.IP.IsUnspecified() || wanted.IP.Equal(tcp.IP)
}

// warnOfUnused says which sockets no flag has asked for: who connects there is not answered.
func (s *sockets) warnOfUnused(log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.held {
		log.Warn("systemd holds a socket that no flag names: nobody answers there", "addr", l.Addr().String())
	}
}
