package learn

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
	"time"

	"hamlet/cmd/internal/process/secretfile"
	"hamlet/cmd/internal/process/wholefile"
	"hamlet/stream/lockfile"
)

// A spool is a directory that keeps events until the service has them. An event is safe there
// before it is sent, and a process that is killed loses none.
//
//	DIR            mode 0700, of the user who learns
//	├─ order       locked while an event gets its place
//	├─ sending     locked by the process that sends
//	├─ new         an event that is being written, by who holds order
//	├─ N.json      an event as the service takes it
//	└─ N.refused   the same, that the token may not say
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
// A token can get further rights, so refused events are kept. Nobody sends them until their
// owner renames them to N.json.
//
// A spool holds at most spoolEvents and spoolBytes. Full, it drops the oldest refused events,
// and without any it takes no event. It is for one goroutine.
type spool struct {
	dir    string
	events int              // the most
	bytes  int64            // the most
	sizes  map[string]int64 // of the files that the last add found
}

// Bounds of a spool.
const (
	spoolEvents = 4096
	spoolBytes  = 256 << 20
)

// orderPatience bounds how long an event waits for its place, while other processes add theirs.
// It may wait twice (see spooler.add), and Dovecot ends a program after 30 s.
const orderPatience = 10 * time.Second

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
	switch {
	case !info.IsDir():
		return nil, fmt.Errorf("spool %s: it is no directory", dir)
	case !secretfile.Private(info):
		return nil, fmt.Errorf("spool %s: its mode is %#o, and other users could read mail: chmod 700",
			dir, info.Mode().Perm())
	case !secretfile.Ours(info):
		return nil, fmt.Errorf("spool %s: it belongs to another user", dir)
	}
	return &spool{dir: dir, events: spoolEvents, bytes: spoolBytes}, nil
}

func (s *spool) path(name string) string { return filepath.Join(s.dir, name) }

// lock takes the lock of a name, and waits for it until ctx ends. It tries once in any case. The
// lock ends with the process, too. The kernel cannot take a wait back: one that was given up
// goes on, gets the lock and leaves it at once.
func (s *spool) lock(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the spool: %w", err)
	}
	err = lockfile.File(f, false)
	if errors.Is(err, lockfile.ErrLocked) && ctx.Err() == nil {
		waited := make(chan error, 1)
		go func() { waited <- lockfile.Wait(f) }()
		select {
		case err = <-waited:
		case <-ctx.Done():
			go func() { <-waited; f.Close() }()
			return nil, fmt.Errorf("lock the spool: %s: %w", name, errLocked)
		}
	}
	if err == nil {
		return func() { f.Close() }, nil
	}
	f.Close()
	if errors.Is(err, lockfile.ErrLocked) {
		err = fmt.Errorf("%s: %w", name, errLocked)
	}
	return nil, fmt.Errorf("lock the spool: %w", err)
}

// list returns the names of the events that wait, and of those that were refused, oldest first.
func (s *spool) list() (waiting, refused []string, err error) {
	entries, err := os.ReadDir(s.dir) // sorted, and the numbers have the same length
	if err != nil {
		return nil, nil, fmt.Errorf("read the spool: %w", err)
	}
	for _, entry := range entries {
		switch name := entry.Name(); {
		case number(name, suffix) > 0:
			waiting = append(waiting, name)
		case number(name, refusedSuffix) > 0:
			refused = append(refused, name)
		}
	}
	return waiting, refused, nil
}

const (
	suffix        = ".json"
	refusedSuffix = ".refused"
	digits        = 19 // of a number
)

func fileName(n int64) string { return fmt.Sprintf("%0*d%s", digits, n, suffix) }

// number returns N of a name, or 0 if it is none.
func number(name, suffix string) int64 {
	text, ok := strings.CutSuffix(name, suffix)
	n, err := strconv.ParseUint(text, 10, 63)
	if !ok || err != nil || len(text) != digits {
		return 0
	}
	return int64(n)
}

// weigh returns the bytes of files. A file keeps its size, so it is asked once.
func (s *spool) weigh(names []string) (size int64, err error) {
	sizes := make(map[string]int64, len(names))
	for _, name := range names {
		known, ok := s.sizes[name]
		if !ok {
			info, err := os.Lstat(s.path(name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // it has been sent
			}
			if err != nil {
				return 0, fmt.Errorf("read the spool: %w", err)
			}
			known = info.Size()
		}
		sizes[name] = known
		size += known
	}
	s.sizes = sizes
	return size, nil
}

// add puts an event at the end. When it returns, the event outlives a failure of power. It waits
// orderPatience for other processes.
func (s *spool) add(ctx context.Context, event []byte) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, orderPatience)
	defer cancel()
	unlock, err := s.lock(ctx, "order")
	if err != nil {
		return "", err
	}
	defer unlock()
	waiting, refused, err := s.list()
	if err != nil {
		return "", err
	}
	n := time.Now().UnixNano()
	if len(waiting) > 0 {
		n = max(n, number(waiting[len(waiting)-1], suffix)+1)
	}
	if len(refused) > 0 {
		n = max(n, number(refused[len(refused)-1], refusedSuffix)+1)
	}
	if err := s.makeRoom(waiting, refused, int64(len(event))); err != nil {
		return "", err
	}
	if err := s.write(fileName(n), event); err != nil {
		return "", fmt.Errorf("write into the spool: %w", err)
	}
	return fileName(n), nil
}

// makeRoom makes room for an event of a size. The error is errSpoolFull if there is none.
func (s *spool) makeRoom(waiting, refused []string, size int64) error {
	held, err := s.weigh(slices.Concat(waiting, refused))
	if err != nil {
		return err
	}
	for len(waiting)+len(refused) >= s.events || held+size > s.bytes {
		if len(refused) == 0 {
			return fmt.Errorf("spool %s: %d messages wait: %w", s.dir, len(waiting), errSpoolFull)
		}
		if err := os.Remove(s.path(refused[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("make room in the spool: %w", err)
		}
		held, refused = held-s.sizes[refused[0]], refused[1:]
	}
	return nil
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
	return wholefile.SyncFolder(s.dir)
}

// send sends the events in order until none waits. It ends with the first error of post that is
// no *rejectedError: that event and those behind it stay. A rejected event is removed, as it
// would be rejected again, or kept as refused. If another process sends, and lock ends before it
// is done, the error is errLocked: the other one takes what has been added before.
func (s *spool) send(lock context.Context, post func(event []byte) error) (sent int, rejected []error, err error) {
	for {
		unlock, err := s.lock(lock, "sending")
		if err != nil {
			return sent, rejected, err
		}
		names, _, err := s.list()
		for ; len(names) > 0 && err == nil; names = names[1:] {
			var event []byte
			if event, err = os.ReadFile(s.path(names[0])); err != nil {
				break
			}
			err = post(bytes.TrimSpace(event))
			refused, _ := errors.AsType[*rejectedError](err)
			switch {
			case err == nil:
				sent++
				err = os.Remove(s.path(names[0]))
			case refused != nil && refused.denied:
				aside := s.path(strings.TrimSuffix(names[0], suffix) + refusedSuffix)
				rejected = append(rejected, fmt.Errorf("%w; the label is kept as %s", err, aside))
				err = os.Rename(s.path(names[0]), aside)
			case refused != nil:
				rejected = append(rejected, err)
				err = os.Remove(s.path(names[0]))
			}
		}
		unlock()
		if err == nil {
			// Who added an event meanwhile could not get the lock, and relies on us.
			if names, _, err = s.list(); err == nil && len(names) > 0 {
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
