// Package loopback gives tests ports of 127.0.0.1 that stay theirs.
//
// A port that is closed for a moment, or on which nobody is to listen, does not
// stay free: the kernel gives it to any connection that goes out, of this process
// or of another, and a client that dials it again and again can even be given it
// itself, and is then connected with itself. A port that is held is given to
// nobody, while servers may still listen on it when they name it.
package loopback

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
)

// Hold returns a host:port of 127.0.0.1 that is the test's until it ends. Who
// dials it is refused, until a server listens on it, and again when that one has
// closed; servers may do so in turn, as often as they like.
//
// It binds a socket to the port that never listens. The kernel gives a port that
// anything is bound to to no connection and to no listener on port 0. Listeners
// that name it get it since both sockets have SO_REUSEADDR, which the net package
// sets for its listeners, and since the one that is there does not listen. That is
// Linux's reading of the option: elsewhere the socket is closed at once, and the
// port is only a free one.
func Hold(t testing.TB) string {
	t.Helper()
	fd, addr, err := bind()
	if err != nil {
		t.Fatalf("hold a port of 127.0.0.1: %v", err)
	}
	release := func() {
		if err := syscall.Close(fd); err != nil {
			t.Errorf("release %s: %v", addr, err)
		}
	}
	if runtime.GOOS == "linux" {
		t.Cleanup(release)
	} else {
		release()
	}
	return addr
}

// bind returns a socket that is bound to a port of the kernel's choice.
func bind() (fd int, addr string, err error) {
	syscall.ForkLock.RLock() // not every system can open a socket that children do not inherit
	fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, "", os.NewSyscallError("socket", err)
	}
	defer func() {
		if err != nil {
			_ = syscall.Close(fd) // err says more
		}
	}()
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, "", os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, "", os.NewSyscallError("bind", err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, "", os.NewSyscallError("getsockname", err)
	}
	in, ok := at.(*syscall.SockaddrInet4)
	if !ok {
		return 0, "", fmt.Errorf("the socket's name is %v", at)
	}
	return fd, netip.AddrPortFrom(netip.AddrFrom4(in.Addr), uint16(in.Port)).String(), nil
}
