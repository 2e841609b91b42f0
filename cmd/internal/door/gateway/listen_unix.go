//go:build unix

package gateway

import (
	"net"
	"sync"
	"syscall"
)

// umaskMu guards the process's umask.
var umaskMu sync.Mutex

// listenUnix makes a socket that only we can open, until its mode is set.
func listenUnix(path string) (net.Listener, error) {
	umaskMu.Lock()
	defer umaskMu.Unlock()
	defer syscall.Umask(syscall.Umask(0o177))
	return net.Listen("unix", path)
}
