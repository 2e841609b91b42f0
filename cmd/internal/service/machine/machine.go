// Package machine keeps the logs and the models of one machine in a directory, and lets other
// programs of the same user use them over a socket while one program has the directory open.
//
//	dir, err := machine.Open(ctx, "/var/lib/hamlet", machine.Config{Log: log}) // hamlet up
//	defer dir.Close()
//	go dir.Serve(ctx)
//	events, err := dir.Open(stream.EventsTopic("default"))
//	store, err := dir.Store("default")
//
//	m, err := machine.Find(ctx, "/var/lib/hamlet", log) // a command: over the socket, or on the files
//	defer m.Close()
//
// # Files
//
//	.lock            held by the one program that has the directory open
//	.clock           the time at the last look, and whether it is believed: see doubts
//	socket           where that one serves the others
//	logs/NAME/       a log: see package filelog
//	logs/NAME/retention
//	models/          the models: see package files
//
// Package logtest and package storetest have the laws of both; the socket obeys them too.
package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hamlet/cmd/internal/process/clock"
	"hamlet/cmd/internal/process/secretfile"
	"hamlet/cmd/internal/service/machine/from010"
	"hamlet/state"
	"hamlet/state/files"
	"hamlet/stream"
	"hamlet/stream/filelog"
	"hamlet/stream/lockfile"
)

// A Machine has the logs and the models of a directory.
type Machine interface {
	stream.Logs

	// Store returns the store of a model, which may have no checkpoint yet.
	Store(model string) (state.Store, error)

	// Skip leaves damaged offsets of a log out: see Skip of package filelog. It refuses those that can be read.
	Skip(ctx context.Context, log string, from, to int64) error

	// Close frees the directory, or ends the connection.
	Close() error
}

// A Config says what is kept. Zero fields mean defaults.
type Config struct {
	Keep     int // versions of a model, as Daily: see package files
	Daily    *int
	MaxBytes int64 // of each log, about; 0: any number
	Database int   // of the Redis of 0.1.0 in the directory, whose models are converted: its --redis-db

	Patience time.Duration // for another program that has the directory, and is about to end
	Log      *slog.Logger
}

// DefaultRetention is how long a log keeps a record where nobody says.
const DefaultRetention = 90 * 24 * time.Hour

// A Dir is a directory that this program has open. Its methods may be called concurrently.
type Dir struct {
	path   string
	cfg    Config
	unlock func() error
	models *files.Dir

	full atomic.Pointer[error] // why the last Append found no space; nil: it did

	mu     sync.Mutex
	closed bool
	logs   map[string]*filelog.Log  // those that were used
	keeps  map[string]time.Duration // retentions that could not be written

	learntBy map[string]state.Store // by model: see LearntBy
}

// ErrNoMachine: there is nothing of a machine in the directory.
var ErrNoMachine = errors.New("no hamlet up has kept anything there")

// Open opens a directory, which it makes if it is missing. One of hamlet 0.1.0 is converted first: see
// package from010. Another program that has it open is an error, which wraps [lockfile.ErrLocked].
func Open(ctx context.Context, path string, cfg Config) (d *Dir, err error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if path, err = filepath.Abs(path); err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w; name one that can be written", path, err)
	}
	var unlock func() error
	err = untilUnlocked(ctx, cfg.Patience, func() (err error) {
		unlock, err = Lock(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := convert(ctx, path, &cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s: %w", path, err), unlock())
	}
	d = &Dir{path: path, cfg: cfg, unlock: unlock, logs: map[string]*filelog.Log{}, keeps: map[string]time.Duration{}}
	err = os.MkdirAll(d.folder(""), 0o700)
	if err == nil {
		models := files.Config{Keep: cfg.Keep, Daily: cfg.Daily, Log: cfg.Log}
		d.models, err = files.Open(filepath.Join(path, "models"), models)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s: %w", path, err), unlock())
	}
	return d, nil
}

// convert makes a directory of 0.1.0 one of this program.
func convert(ctx context.Context, path string, cfg *Config) error {
	found, err := from010.Found(path)
	if err != nil || !found {
		return err
	}
	cfg.Log.Info("converting a directory of hamlet 0.1.0: its files stay aside", "directory", path)
	said := time.Now()
	progress := func(read, of int64) {
		if time.Since(said) > 5*time.Second {
			said = time.Now()
			cfg.Log.Info("converting", "read_bytes", read, "of", of)
		}
	}
	return from010.Convert(ctx, path, from010.Config{Database: cfg.Database, Log: cfg.Log, Progress: progress})
}

// Lock keeps other programs out of a directory until unlock is called or the process ends. The error
// wraps [lockfile.ErrLocked] if another one has it.
func Lock(path string) (unlock func() error, err error) {
	unlock, err = lockfile.Lock(filepath.Join(path, ".lock"))
	if errors.Is(err, lockfile.ErrLocked) {
		return nil, used(path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w; name one that can be written", path, err)
	}
	return unlock, nil
}

func used(path string, err error) error {
	return fmt.Errorf("data directory %s: another hamlet uses it; stop that one or name another directory (%w)", path, err)
}

// LockMade is Lock of a directory that it makes if it is missing.
func LockMade(path string) (unlock func() error, err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data directory %s: %w; name one that can be written", path, err)
	}
	return Lock(path)
}

// ShareLock locks a directory together with others that only read it. Meanwhile Lock fails. It writes
// nothing: a directory that was never locked, or whose lock this user may not open, is not locked.
func ShareLock(path string) (unlock func() error, err error) {
	unlock, err = lockfile.Share(filepath.Join(path, ".lock"))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return func() error { return nil }, nil
	case errors.Is(err, lockfile.ErrLocked):
		return nil, used(path, err)
	case err != nil:
		return nil, fmt.Errorf("lock data directory %s: %w", path, err)
	}
	return unlock, nil
}

// Find returns the machine of a directory: the program that has it open, over its socket, or else its
// files. It makes no directory.
func Find(ctx context.Context, path string, log *slog.Logger) (m Machine, err error) {
	const starting = 5 * time.Second // of a program that has locked the directory, and serves soon
	err = untilUnlocked(ctx, starting, func() (err error) {
		m, err = find(ctx, path, log)
		return err
	})
	return m, err
}

func find(ctx context.Context, path string, log *slog.Logger) (Machine, error) {
	c, refused := Dial(ctx, path)
	if refused == nil {
		return c, nil
	}
	if _, err := os.Stat(filepath.Join(path, "logs")); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrNoMachine
		}
		unlock, locked := lockfile.Share(filepath.Join(path, ".lock"))
		if errors.Is(locked, lockfile.ErrLocked) {
			err = locked // its program has just begun
		} else if old, _ := from010.Found(path); old {
			err = errors.New("it is of hamlet 0.1.0: hamlet up converts it at its first start")
		}
		if locked == nil {
			_ = unlock()
		}
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	if err := ours(path); err != nil {
		return nil, err
	}
	// Whoever only looks drops no version.
	d, err := Open(ctx, path, Config{Keep: 1 << 20, Daily: new(1 << 20), Log: log})
	if err != nil {
		return nil, errors.Join(err, refused)
	}
	return d, nil
}

// untilUnlocked calls do again while another program has the directory, for a while at most.
func untilUnlocked(ctx context.Context, most time.Duration, do func() error) error {
	for deadline := time.Now().Add(most); ; {
		err := do()
		if !errors.Is(err, lockfile.ErrLocked) || time.Now().After(deadline) {
			return err
		}
		if !clock.Sleep(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// ours returns an error if root would leave files in a directory of another user, who could not read them.
func ours(path string) error {
	info, err := os.Stat(path)
	if err != nil || os.Geteuid() != 0 || secretfile.Ours(info) {
		return err
	}
	return fmt.Errorf("data directory %s belongs to another user, who could not read the files of root: "+
		"run this command as its owner, sudo -u …", path)
}

// LearntBy says that a model is kept elsewhere: retention asks there how far its log is learnt.
func (d *Dir) LearntBy(model string, store state.Store) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.learntBy = map[string]state.Store{model: store}
}

// Path returns the absolute path of the directory.
func (d *Dir) Path() string { return d.path }

// Close closes all logs and the models.
func (d *Dir) Close() error {
	d.mu.Lock()
	logs := d.logs
	d.logs, d.closed = nil, true
	d.mu.Unlock()
	var err error
	for _, log := range logs {
		err = errors.Join(err, log.Close())
	}
	return errors.Join(err, d.models.Close(), d.unlock())
}

// Store implements [Machine].
func (d *Dir) Store(model string) (state.Store, error) { return d.models.Store(model) }

// logName is the rule that Kafka has for the name of a topic.
var logName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)
})

func (d *Dir) folder(log string) string { return filepath.Join(d.path, "logs", log) }

// log returns a log that is there. It opens each once.
func (d *Dir) log(name string) (*filelog.Log, error) {
	if err := checkName(name); err != nil {
		return nil, err // over the socket it is whatever the other program says
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.logs[name]; l != nil {
		return l, nil
	}
	switch _, err := os.Stat(d.folder(name)); {
	case d.closed:
		return nil, filelog.ErrClosed
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", d.folder(name), stream.ErrNoLog)
	case err != nil:
		return nil, err
	}
	return d.open(name)
}

// open opens a log, or makes it. The caller holds d.mu.
func (d *Dir) open(name string) (*filelog.Log, error) {
	next, err := d.given(name)
	if err != nil {
		return nil, err
	}
	l, err := filelog.Open(d.folder(name), filelog.Options{Next: next, Log: d.cfg.Log})
	if err == nil {
		d.logs[name] = l
	}
	return l, err
}

// given returns up to which offset a log has certainly given offsets: a model has learnt them.
func (d *Dir) given(name string) (next int64, err error) {
	model, ok := strings.CutPrefix(name, stream.EventsTopic(""))
	if !ok {
		return 0, nil
	}
	store, err := d.models.Store(model)
	if err != nil {
		return 0, nil // no model has such a name
	}
	h, err := store.Heading(context.Background(), state.Head)
	if errors.Is(err, state.ErrCorrupt) {
		d.cfg.Log.Error("it is not known which offsets of a log were given: its model cannot be read",
			"log", name, "error", err)
	}
	if errors.Is(err, state.ErrNone) || errors.Is(err, state.ErrCorrupt) {
		return 0, nil
	}
	return h.Next, err
}

// Open implements [stream.Logs].
func (d *Dir) Open(name string) (stream.Topic, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	return &topic{d, name}, nil
}

func checkName(name string) error {
	if name == "." || name == ".." || !logName().MatchString(name) {
		return fmt.Errorf("log %q: %w: a name has 1 to 249 letters, digits, '.', '_' and '-'", name, stream.ErrNoLog)
	}
	return nil
}

// Ping implements [stream.Logs].
func (d *Dir) Ping(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return filelog.ErrClosed
	}
	return nil
}

// Partitions implements [stream.Logs].
func (d *Dir) Partitions(_ context.Context, name string) (int, error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	switch _, err := os.Stat(d.folder(name)); {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return 1, nil
}

// Ensure implements [stream.Logs]. In contrast to Kafka it sets the retention of a log that is there. Where
// that cannot be written, as on a full disk, it holds until the directory is closed: a shorter one makes room.
func (d *Dir) Ensure(_ context.Context, name string, _ int, retention time.Duration) error {
	if err := checkName(name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return filelog.ErrClosed
	}
	if d.logs[name] == nil {
		if _, err := d.open(name); err != nil {
			return err
		}
	}
	retention = cmp.Or(retention, DefaultRetention)
	delete(d.keeps, name)
	if err := d.setRetention(name, retention); err != nil {
		d.keeps[name] = retention
		d.cfg.Log.Warn("how long a log keeps its records cannot be written, and holds until this program ends",
			"log", name, "retention", retention, "error", err)
	}
	return nil
}

// Patience implements [stream.Logs].
func (d *Dir) Patience() time.Duration { return 0 }

// Logger implements [stream.Logs].
func (d *Dir) Logger() *slog.Logger { return d.cfg.Log }

// Skip implements [Machine]. A record that can be read was acknowledged: a slip of the operator must not lose it.
func (d *Dir) Skip(ctx context.Context, name string, from, to int64) error {
	l, err := d.log(name)
	if err != nil {
		return err
	}
	for at := from; at < to; {
		records, _, err := l.Read(ctx, at, stream.Limit{Records: 1}, 0)
		var bad *filelog.DamagedError
		if errors.As(err, &bad) {
			at = bad.To
			continue
		}
		if len(records) > 0 && records[0].Offset < to {
			return fmt.Errorf("leave out the offsets from %d to %d: %d can be read, and would be lost: "+
				"leave out those that the log names as damaged", from, to-1, records[0].Offset)
		}
		if err == nil { // what is appended meanwhile is not to be left out
			return fmt.Errorf("leave out the offsets from %d to %d: the log ends at %d", from, to-1, at)
		}
		if !errors.Is(err, stream.ErrGone) && !errors.Is(err, stream.ErrBeyond) {
			return err
		}
		break // Skip says that
	}
	return l.Skip(from, to)
}

// A topic is a log of a directory. The directory closes it.
type topic struct {
	dir  *Dir
	name string
}

// Name implements [stream.Topic].
func (t *topic) Name() string { return "log " + t.name }

// Close implements [stream.Topic].
func (t *topic) Close() error { return nil }

// Bounds implements [stream.Log].
func (t *topic) Bounds(ctx context.Context) (stream.Bounds, error) {
	l, err := t.dir.log(t.name)
	if err != nil {
		return stream.Bounds{}, err
	}
	return l.Bounds(ctx)
}

// Read implements [stream.Log].
func (t *topic) Read(ctx context.Context, from int64, most stream.Limit,
	wait time.Duration) ([]stream.Record, int64, error) {
	l, err := t.dir.log(t.name)
	if err != nil {
		return nil, 0, err
	}
	return l.Read(ctx, from, most, wait)
}

// Since implements [stream.Log].
func (t *topic) Since(ctx context.Context, at time.Time) (int64, error) {
	l, err := t.dir.log(t.name)
	if err != nil {
		return 0, err
	}
	return l.Since(ctx, at)
}

// Append implements [stream.Appender]. Unlike a log in Kafka it does not wait for room:
// [stream.ErrFull].
func (t *topic) Append(ctx context.Context, records ...stream.Record) error {
	l, err := t.dir.log(t.name)
	if err != nil {
		return err
	}
	err = l.Append(ctx, records...)
	switch {
	case errors.Is(err, stream.ErrFull):
		if t.dir.full.Swap(&err) == nil {
			t.dir.cfg.Log.Error("no space is left for the log: labels are refused until there is room", "error", err)
		}
	case err == nil && t.dir.full.Load() != nil && t.dir.full.Swap(nil) != nil:
		t.dir.cfg.Log.Info("there is room for the log again")
	}
	return err
}

// Full returns why the last records were refused, where there was no space for them; nil if they were
// not. The next ones may find room.
func (d *Dir) Full() error {
	if err := d.full.Load(); err != nil {
		return *err
	}
	return nil
}

// Waiting returns an appender that waits for room, as a log in Kafka does, until ctx ends.
func Waiting(a stream.Appender) stream.Appender { return waiting{a} }

type waiting struct{ stream.Appender }

func (w waiting) Append(ctx context.Context, records ...stream.Record) error {
	const again = time.Second
	for {
		// What is in of records that were too many for one write may be in twice: they are known by
		// their ids.
		err := w.Appender.Append(ctx, records...)
		if !errors.Is(err, stream.ErrFull) || !clock.Sleep(ctx, again) {
			return err
		}
	}
}
