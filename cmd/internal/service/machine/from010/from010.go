// Package from010 makes a directory of hamlet 0.1.0 one of this program, once. 0.1.0 kept labelled mail
// in the files of kfake, a Kafka for tests, and models in a snapshot of miniredis. Now there are logs
// in files (package stream/filelog) and models in files (package state/files).
//
//	found, err := from010.Found(dir) // dir is locked by the caller
//	if err == nil && found {
//		err = from010.Convert(ctx, dir, from010.Config{Log: log})
//	}
//
// # What stays as it was
//
// Of records: offset, key, value, headers and time, to the millisecond. So a model's position names the same
// record. Of models: each kept version with its number, epoch, time and bytes, what is pinned, what was
// replaced, and who answers in whose place. The old files are never changed: they stay aside as
// DIR/kafka-0.1.0 and DIR/redis-0.1.0 until the operator removes them.
//
// # What does not come along
//
// All of it is logged, unless it means nothing here:
//
//   - a write that was cut off at a log's end: nobody was told that it is durable
//   - a record larger than [filelog.MaxRecord]: no event is as large. Its offset is a hole
//   - a version that is not whole. 0.1.0 did not load it either
//   - models in other databases of that Redis than Config.Database, and keys that are not hamlet's
//   - topics of several partitions that are not hamlet's own
//   - positions of Kafka's consumer groups, leases, times to live, settings of topics
//
// A log of several partitions is refused before anything is written: [state.ErrPartitions]. Everything
// that is not as it was written is an error too, which names file and byte: *[DamagedError]. After an
// error the directory is as it was.
//
// # Steps
//
//	kafka, redis                  as 0.1.0 left them
//	converting/{models,logs}      are written, and durable
//	models   ← converting/models  renamed
//	logs     ← converting/logs    renamed: from here on the directory is a new one
//	kafka    → kafka-0.1.0        renamed
//	redis    → redis-0.1.0        renamed
//	converting                    removed
//
// Each is durable before the next. While converting is there, a conversion was cut off: without logs it
// begins again, with logs it is finished.
//
// Memory does not depend on the number of records or versions, but for 48 bytes of each chunk.
package from010

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"hamlet/state"
	"hamlet/state/files"
	"hamlet/stream"
)

// A Config of a conversion. Zero fields mean defaults.
type Config struct {
	Database int // of 0.1.0's Redis, whose models are converted: its --redis-db
	Log      *slog.Logger

	// Progress is called now and then with how many bytes were read, of so many in all.
	Progress func(read, of int64)

	step func() error // for tests: called before each change in the directory, and for each batch and key
}

// The names in a directory.
const (
	logFolder   = "logs"
	modelFolder = "models"
	kafkaFolder = "kafka"
	redisFolder = "redis"
	aside       = "-0.1.0"
	converting  = "converting"
)

// Found reports whether a directory has data of 0.1.0 that is not converted, or not to the end.
func Found(dir string) (bool, error) {
	for _, name := range []string{kafkaFolder, redisFolder, converting} {
		if is, err := exists(filepath.Join(dir, name)); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Convert converts a directory that Found has found, or finishes it. No other program may use the
// directory meanwhile.
func Convert(ctx context.Context, dir string, cfg Config) error {
	c := &conversion{dir: dir, cfg: cfg}
	if c.cfg.Log == nil {
		c.cfg.Log = slog.New(slog.DiscardHandler)
	}
	if c.cfg.step == nil {
		c.cfg.step = func() error { return nil }
	}
	if c.cfg.Progress == nil {
		c.cfg.Progress = func(int64, int64) {}
	}
	if err := c.run(ctx); err != nil {
		return fmt.Errorf("convert %s from hamlet 0.1.0: %w", dir, err)
	}
	return nil
}

// A conversion of one directory.
type conversion struct {
	dir      string
	cfg      Config
	read, of int64 // bytes of the old files
}

func (c *conversion) path(names ...string) string {
	return filepath.Join(append([]string{c.dir}, names...)...)
}

func (c *conversion) run(ctx context.Context) error {
	has := map[string]bool{}
	for _, name := range []string{logFolder, modelFolder, kafkaFolder, redisFolder, kafkaFolder + aside,
		redisFolder + aside, converting} {
		is, err := exists(c.path(name))
		if err != nil {
			return err
		}
		has[name] = is
	}
	switch {
	case has[logFolder] && has[converting]:
		return c.finish()
	case has[logFolder]:
		return fmt.Errorf("it is converted, and hamlet 0.1.0 was started in it again: "+
			"what that has learnt since is in %s and %s, which are not read. "+
			"Move them out of the directory", c.path(kafkaFolder), c.path(redisFolder))
	case has[modelFolder] && !has[converting]:
		return fmt.Errorf("%s is there, and is not from a conversion: move it out of the directory",
			c.path(modelFolder))
	case has[kafkaFolder] && has[kafkaFolder+aside], has[redisFolder] && has[redisFolder+aside]:
		return fmt.Errorf("%s or %s is there already: move it out of the directory", c.path(kafkaFolder+aside),
			c.path(redisFolder+aside))
	}
	if has[converting] {
		c.cfg.Log.Info("a conversion was cut off: it begins again")
	}
	if err := c.write(ctx); err != nil {
		return errors.Join(err, c.discard())
	}
	return c.finish()
}

// write makes what is new, up to the renaming of logs.
func (c *conversion) write(ctx context.Context) (err error) {
	old, err := c.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.close()) }()
	c.of = old.bytes
	if err := c.discard(); err != nil {
		return err
	}
	if err := c.cfg.step(); err != nil {
		return err
	}
	if err := os.Mkdir(c.path(converting), 0o700); err != nil {
		return err
	}
	if err := syncFolder(c.dir); err != nil {
		return err
	}
	err = c.writeModels(ctx, old)
	if err == nil {
		err = c.writeLogs(ctx, old)
	}
	if err == nil {
		err = syncFolder(c.path(converting))
	}
	if full(err) {
		return fmt.Errorf("%w: about %d bytes must be free for the new files beside the old ones", err, old.room(ctx))
	}
	for _, name := range []string{modelFolder, logFolder} {
		if err == nil {
			err = c.rename(filepath.Join(converting, name), name)
		}
	}
	return err
}

func (c *conversion) rename(from, to string) error {
	if err := c.cfg.step(); err != nil {
		return err
	}
	if err := os.Rename(c.path(from), c.path(to)); err != nil {
		return err
	}
	return syncFolder(c.dir)
}

// finish moves the old files aside. What stops it goes on at the next start.
func (c *conversion) finish() error {
	for _, name := range []string{kafkaFolder, redisFolder} {
		is, err := exists(c.path(name))
		if is {
			err = c.rename(name, name+aside)
		}
		if err != nil {
			return err
		}
	}
	if err := c.cfg.step(); err != nil {
		return err
	}
	if err := os.RemoveAll(c.path(converting)); err != nil {
		return err
	}
	if err := syncFolder(c.dir); err != nil {
		return err
	}
	c.cfg.Log.Info("converted from hamlet 0.1.0: the old files stay aside until you remove them", "directory", c.dir,
		"kafka", kafkaFolder+aside, "redis", redisFolder+aside)
	return nil
}

// discard removes what a conversion has written. Models go before the mark that they are from one.
func (c *conversion) discard() error {
	is, err := exists(c.path(converting))
	if !is || err != nil {
		return err
	}
	done, err := exists(c.path(logFolder))
	if done || err != nil {
		return err
	}
	for _, name := range []string{modelFolder, converting} {
		if err := c.cfg.step(); err != nil {
			return err
		}
		if err := os.RemoveAll(c.path(name)); err != nil {
			return err
		}
		if err := syncFolder(c.dir); err != nil {
			return err
		}
	}
	return nil
}

// progress notes that bytes were read.
func (c *conversion) progress(bytes int64) error {
	c.read += bytes
	c.cfg.Progress(min(c.read, c.of), c.of)
	return c.cfg.step()
}

// An old directory is what 0.1.0 has left.
type old struct {
	partitions []*partition
	snapshot   *snapshot // nil: 0.1.0 had saved no model
	models     []*model
	kept       []files.Kept // of models
	bytes      int64        // that are read of all
}

// open looks at the old files, and refuses what cannot be converted before anything is changed.
func (c *conversion) open() (o *old, err error) {
	o = new(old)
	if o.partitions, err = openKafka(c.path(kafkaFolder), c.cfg.Log); err != nil {
		return nil, err
	}
	for _, p := range o.partitions {
		n, err := p.size()
		if err != nil {
			return nil, err
		}
		o.bytes += n
	}
	o.snapshot, err = openSnapshot(c.path(redisFolder))
	if errors.Is(err, fs.ErrNotExist) {
		if is, _ := exists(c.path(redisFolder)); is {
			c.cfg.Log.Warn("the embedded Redis has no snapshot, so there is no model to convert: "+
				"learners make them from their logs", "folder", c.path(redisFolder))
		}
		return o, nil
	}
	if err != nil {
		return nil, err
	}
	c.of = o.bytes + 2*o.snapshot.size // about
	if err := o.openModels(c); err != nil {
		return nil, errors.Join(err, o.close())
	}
	o.bytes += o.snapshot.size
	for _, m := range o.models {
		for _, chunk := range m.chunks {
			o.bytes += chunk.size
		}
	}
	return o, nil
}

func (o *old) openModels(c *conversion) (err error) {
	if o.models, err = readModels(o.snapshot, c.cfg.Database, c.cfg.Log, c.progress); err != nil {
		return err
	}
	for _, m := range o.models {
		k, err := m.what(c.cfg.Log)
		if err != nil {
			return err
		}
		o.kept = append(o.kept, k)
	}
	return nil
}

func (o *old) close() error {
	if o.snapshot == nil {
		return nil
	}
	return o.snapshot.Close()
}

// room returns about how many bytes the new files take. It reads the logs, which are compressed.
func (o *old) room(ctx context.Context) (n int64) {
	const frame, file = 64, 16 << 10 // about
	for i := range o.kept {
		n += room(&o.kept[i])
	}
	for _, p := range o.partitions {
		n += file
		_, _ = p.read(ctx, slog.New(slog.DiscardHandler), func(r stream.Record) error {
			n += frame + int64(r.Size()+4*len(r.Headers))
			return nil
		}, func(int64) error { return nil })
	}
	return n
}

// full reports whether there was no room on the disk.
func full(err error) bool {
	return errors.Is(err, stream.ErrFull) || errors.Is(err, state.ErrTransient) || errors.Is(err, syscall.ENOSPC)
}

func (c *conversion) writeModels(ctx context.Context, o *old) error {
	dir, err := files.Open(c.path(converting, modelFolder), files.Config{Log: c.cfg.Log})
	if err != nil {
		return err
	}
	for i, m := range o.models {
		if err := m.put(ctx, o.snapshot, o.kept[i], dir, c.progress); err != nil {
			return errors.Join(err, dir.Close())
		}
		k := &o.kept[i]
		c.cfg.Log.Info("converted a model", "model", m.name, "versions", len(k.Versions), "head", k.Head, "epoch",
			k.Epoch)
	}
	return dir.Close()
}

func (c *conversion) writeLogs(ctx context.Context, o *old) error {
	if err := os.Mkdir(c.path(converting, logFolder), 0o700); err != nil {
		return err
	}
	for _, p := range o.partitions {
		w := &writer{path: c.path(converting, logFolder, p.topic), first: p.first, end: p.first}
		end, err := p.read(ctx, c.cfg.Log, func(r stream.Record) error { return w.add(ctx, r) }, c.progress)
		if err == nil {
			err = w.close(ctx, end)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("topic %s: %w", p.topic, err), w.abandon())
		}
		c.cfg.Log.Info("converted a log", "topic", p.topic, "first", p.first, "end", end)
	}
	return nil
}

// syncFolder makes the names in a folder survive a loss of power. Windows keeps them by itself.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
