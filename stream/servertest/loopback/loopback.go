//go:build unix

// Package loopback reserves ports of 127.0.0.1 for tests. A port without a listener
// does not stay free: the kernel may give it to an outgoing connection. It may even
// connect a client that dials the port with itself.
package loopback

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
)

// Hold returns a host:port of 127.0.0.1 that is reserved until the test ends. Dialing
// it is refused, unless a server listens on it. Servers may do so in turn.
//
// It binds a socket to the port and never listens. So the kernel gives the port to no
// outgoing connection, and to no listener on port 0. A listener that names the port
// gets it, because both sockets have SO_REUSEADDR (the net package sets it) and the
// first one does not listen. This holds on Linux. Elsewhere Hold closes the socket at
// once, and the port is only free for the moment.
func Hold(t testing.TB) string {
	t.Helper()
	fd, addr, err := bind()
	if err != nil {
		t.Fatalf("reserve a port of 127.0.0.1: %v", err)
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

// bind returns a socket bound to a port that the kernel chose.
func bind() (fd int, addr string, err error) {
	syscall.ForkLock.RLock() // not every system has SOCK_CLOEXEC
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
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, "", os.NewSyscallError("getsockname", err)
	}
	in, ok := bound.(*syscall.SockaddrInet4)
	if !ok {
		return 0, "", fmt.Errorf("the socket's name is %v", bound)
	}
	return fd, netip.AddrPortFrom(netip.AddrFrom4(in.Addr), uint16(in.Port)).String(), nil
}
