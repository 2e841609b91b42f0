package teach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A spool is a directory that keeps events until the service has them. An event is safe there
// before it is sent, and a process that is killed loses none.
//
//	DIR            mode 0700, of the user who learns
//	├─ order       locked while an event gets its place
//	├─ sending     locked by the process that sends
//	├─ new         an event that is being written, by who holds order
//	└─ N.json      an event as the service takes it
//
// N is the time of the event in nanoseconds, or one more than the largest N. Events are sent one
// by one in the order of N. A file is removed when the service has its event. A process that is
// killed before that leaves the file, and the next one sends the event again. The model knows
// the event by its id and learns it once.
//
// No event is left out because a newer one is about the same message. A request that its sender
// gave up can still reach the model. The model knows that event by then, because the spool has
// sent it again before the newer one. So the last label wins.
//
// A spool holds at most spoolEvents and spoolBytes. Full, it takes no event.
type spool struct {
	dir    string
	events int   // the most
	bytes  int64 // the most
}

// Bounds of a spool.
const (
	spoolEvents = 4096
	spoolBytes  = 256 << 20
)

var (
	errSpoolFull = errors.New("the spool is full")
	errLocked    = errors.New("another process holds the lock")
)

// openSpool makes the directory if there is none. Only its owner may see it, as it holds mail.
func openSpool(dir string) (*spool, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the spool: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("open the spool: %w", err)
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return nil, fmt.Errorf("spool %s: it is no directory", dir)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("spool %s: its mode is %#o, and other users could read mail: chmod 700", dir, info.Mode().Perm())
	case known && int(owner.Uid) != os.Geteuid():
		return nil, fmt.Errorf("spool %s: it belongs to another user", dir)
	}
	return &spool{dir: dir, events: spoolEvents, bytes: spoolBytes}, nil
}

func (s *spool) path(name string) string { return filepath.Join(s.dir, name) }

// lock takes the lock of a name, and tries until ctx ends. It tries once in any case. The lock
// ends with the process, too.
func (s *spool) lock(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the spool: %w", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock the spool: %w", err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("lock the spool: %s: %w", name, errLocked)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// waiting returns the names of the events that wait, oldest first, and their bytes.
func (s *spool) waiting() (names []string, size int64, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, 0, fmt.Errorf("read the spool: %w", err)
	}
	for _, entry := range entries {
		if _, ok := number(entry.Name()); !ok {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has been sent
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read the spool: %w", err)
		}
		names, size = append(names, entry.Name()), size+info.Size()
	}
	slices.Sort(names) // the numbers have the same length
	return names, size, nil
}

const suffix = ".json"

func fileName(n int64) string { return fmt.Sprintf("%019d%s", n, suffix) }

func number(name string) (int64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, ok && err == nil && fileName(n) == name
}

// add puts an event at the end. When it returns, the event outlives a failure of power.
func (s *spool) add(ctx context.Context, event []byte) (name string, err error) {
	unlock, err := s.lock(ctx, "order")
	if err != nil {
		return "", err
	}
	defer unlock()
	names, size, err := s.waiting()
	if err != nil {
		return "", err
	}
	if len(names) >= s.events || size+int64(len(event)) > s.bytes {
		return "", fmt.Errorf("spool %s: %d messages wait: %w", s.dir, len(names), errSpoolFull)
	}
	n := time.Now().UnixNano()
	if len(names) > 0 {
		newest, _ := number(names[len(names)-1])
		n = max(n, newest+1)
	}
	if err := s.write(fileName(n), event); err != nil {
		return "", fmt.Errorf("write into the spool: %w", err)
	}
	return fileName(n), nil
}

// write makes a file that has its name once it is whole and on the disk.
func (s *spool) write(name string, b []byte) error {
	f, err := os.OpenFile(s.path("new"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(s.path("new"))) // the disk may be full
	}
	if err := os.Rename(s.path("new"), s.path(name)); err != nil {
		return err
	}
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// send sends the events in order until none waits. It ends with the first error of post that is
// no *rejectedError: that event and those behind it stay. A rejected event is removed, as it
// would be rejected again. If another process sends, and lock ends before it is done, the error
// is errLocked: the other one takes what has been added before.
func (s *spool) send(lock context.Context, post func(event []byte) error) (sent int, rejected []error, err error) {
	for {
		unlock, err := s.lock(lock, "sending")
		if err != nil {
			return sent, rejected, err
		}
		names, _, err := s.waiting()
		for len(names) > 0 && err == nil {
			var event []byte
			if event, err = os.ReadFile(s.path(names[0])); err != nil {
				break
			}
			var refused *rejectedError
			if err = post(bytes.TrimSpace(event)); errors.As(err, &refused) {
				rejected, err = append(rejected, err), nil
			} else if err == nil {
				sent++
			}
			if err == nil {
				err = os.Remove(s.path(names[0]))
				names = names[1:]
			}
		}
		unlock()
		if err == nil {
			// Who added an event meanwhile could not get the lock, and relies on us.
			if names, _, err = s.waiting(); err == nil && len(names) > 0 {
				continue
			}
		}
		return sent, rejected, err
	}
}

// has counts those of the events that wait.
func (s *spool) has(names []string) (n int) {
	for _, name := range names {
		if _, err := os.Lstat(s.path(name)); err == nil {
			n++
		}
	}
	return n
}
