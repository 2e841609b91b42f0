//go:build linux

package secretfile

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A socket has its mode, and files that the process makes meanwhile have theirs.
func TestListen(t *testing.T) {
	dir := t.TempDir()
	made := make(chan error)
	stop := make(chan struct{})
	go func() { // folders that nobody may enter are the umask's
		for i := 0; ; i++ {
			select {
			case <-stop:
				made <- nil
				return
			default:
			}
			path := filepath.Join(dir, fmt.Sprint("folder", i))
			err := os.Mkdir(path, 0o700)
			if info, statErr := os.Stat(path); err == nil && statErr == nil && info.Mode().Perm() != 0o700 {
				err = fmt.Errorf("a folder has mode %v", info.Mode())
			}
			_ = os.Remove(path)
			if err != nil {
				made <- err
				return
			}
		}
	}()
	path := filepath.Join(dir, "socket")
	bound := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { setMode(fd, 0o600) })
	}}
	if l, err := bound.Listen(t.Context(), "unix", path); err != nil {
		t.Fatal(err)
	} else if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("as it is bound a socket has mode %v, %v", info.Mode(), err)
	} else {
		l.Close()
	}
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
		for _, mode := range []os.FileMode{0o600, 0o660} {
			l, err := Listen(path, mode)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Fatalf("mode %v, want %v, %v", info.Mode(), mode, err)
			}
			l.Close()
		}
	}
	close(stop)
	if err := <-made; err != nil {
		t.Error(err)
	}
}
