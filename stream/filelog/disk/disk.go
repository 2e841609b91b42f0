// Package disk is where a log has its files: a folder of the operating system, or one that a test
// takes the power from.
package disk

import (
	"io"
	"os"
	"path/filepath"
	"time"
)

// A Folder holds the files of a log. Package disktest has one that loses power.
type Folder interface {
	Create(name string) (File, error) // which must not be there
	Open(name string) (File, error)
	Names() ([]string, error)
	Rename(from, to string) error
	Remove(name string) error
	Sync() error // makes Create, Rename and Remove durable
}

// A File of a folder. What Sync has not returned for may be lost, in any part.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Changed() (time.Time, error) // when it was written last
	Truncate(size int64) error
	Sync() error
}

// A Dir is a folder of the operating system, by its path.
type Dir string

// Create implements [Folder].
func (d Dir) Create(name string) (File, error) {
	return d.openFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Open implements [Folder].
func (d Dir) Open(name string) (File, error) { return d.openFile(name, os.O_RDWR) }

func (d Dir) openFile(name string, how int) (File, error) {
	f, err := os.OpenFile(filepath.Join(string(d), name), how, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Names implements [Folder].
func (d Dir) Names() (all []string, err error) {
	entries, err := os.ReadDir(string(d))
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, err
}

// Rename implements [Folder].
func (d Dir) Rename(from, to string) error {
	return os.Rename(filepath.Join(string(d), from), filepath.Join(string(d), to))
}

// Remove implements [Folder].
func (d Dir) Remove(name string) error { return os.Remove(filepath.Join(string(d), name)) }

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
