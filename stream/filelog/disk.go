package filelog

import (
	"io"
	"os"
	"path/filepath"
	"time"
)

// A folder is where a log has its files. The tests have one that loses power.
type folder interface {
	create(name string) (file, error) // which must not be there
	open(name string) (file, error)
	names() ([]string, error)
	rename(from, to string) error
	remove(name string) error
	sync() error // makes create, rename and remove durable
}

// A file of a folder. What Sync has not returned for may be lost, in any part.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Changed() (time.Time, error) // when it was written last
	Truncate(size int64) error
	Sync() error
}

// A dir is a folder of the operating system.
type dir string

func (d dir) create(name string) (file, error) {
	return d.openFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (d dir) open(name string) (file, error) { return d.openFile(name, os.O_RDWR) }

func (d dir) openFile(name string, how int) (file, error) {
	f, err := os.OpenFile(filepath.Join(string(d), name), how, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d dir) names() (all []string, err error) {
	entries, err := os.ReadDir(string(d))
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, err
}

func (d dir) rename(from, to string) error {
	return os.Rename(filepath.Join(string(d), from), filepath.Join(string(d), to))
}

func (d dir) remove(name string) error { return os.Remove(filepath.Join(string(d), name)) }

func (d dir) sync() error { return syncFolder(string(d)) }

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Changed() (time.Time, error) {
	info, err := f.Stat()
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}
