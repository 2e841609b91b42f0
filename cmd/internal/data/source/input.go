package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"hamlet/cmd/internal/process/cli"
)

// usagef returns an error of wrong usage, which has its own exit status.
func usagef(format string, args ...any) error { return cli.Usagef(format, args...) }

// Open examines the first headSize bytes of an input.
const headSize = 256 << 10

// An input is one file, or a stream that can be read once. Reading it decompresses.
type input struct {
	name   string // as the user wrote it, for messages
	path   string
	stream io.Reader // standard input or a pipe; nil: the file at path
	file   *os.File  // the pipe, which Source.Close closes

	// Results of unpacked for an opened stream. Only unpacked sets them.
	peeked *bufio.Reader
	closer func()
}

// inputs returns the files of paths. The error lists all problems.
func (s *Source) inputs(paths []string) (list []*input, err error) {
	var errs []error
	for _, path := range paths {
		found, err := s.inputsOf(path)
		list, errs = append(list, found...), append(errs, err)
	}
	return list, errors.Join(errs...)
}

// inputsOf returns the files of path. Those of a directory are sorted by name.
func (s *Source) inputsOf(path string) ([]*input, error) {
	if path == "-" {
		for _, in := range s.once {
			if in.path == path {
				return nil, usagef("- is given twice: standard input can be read once")
			}
		}
		return s.readOnce(&input{name: "standard input", path: path, stream: s.cfg.Stdin}), nil
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("%s: cannot be read: %w", path, plain(err))
		}
		return s.readOnce(&input{name: path, path: path, stream: f, file: f}), nil
	}
	names, err := filesUnder(path)
	if err != nil {
		return nil, err
	}
	return files(names), nil
}

func files(names []string) []*input {
	list := make([]*input, len(names))
	for i, name := range names {
		list[i] = &input{name: name, path: name}
	}
	return list
}

func (s *Source) readOnce(in *input) []*input {
	s.once = append(s.once, in)
	return []*input{in}
}

// filesUnder returns path itself or, if it is a directory, the regular files under it,
// sorted by name, without hidden ones. Unreadable or empty paths are an error.
func filesUnder(path string) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file or directory", path)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, plain(err))
	case !info.IsDir():
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("%s: cannot be read: %w", path, plain(err))
		}
		f.Close()
		if info.Mode().IsRegular() && info.Size() == 0 {
			return nil, &EmptyError{path, "the file is empty"}
		}
		return []string{path}, nil
	}
	var names []string
	root := path + string(filepath.Separator) // path may be a link, which WalkDir would not follow
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasPrefix(d.Name(), ".") && name != root {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if isRegular(name) {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", path, plain(err))
	}
	if len(names) == 0 {
		return nil, &EmptyError{path, "the directory holds no file"}
	}
	return names, nil
}

// isRegular reports whether name, after links, is a regular file. Pipes and devices may
// never end.
func isRegular(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// plain returns an error of package os without its operation and path, because our
// messages name the path.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// open returns the input's bytes, decompressed. A stream has the same reader every time.
func (in *input) open() (*bufio.Reader, func(), error) {
	r, closer, err := in.unpacked()
	if err != nil {
		err = fmt.Errorf("%s: %w", in.name, err)
	}
	return r, closer, err
}

// unpacked is like open, but its errors do not name the input.
func (in *input) unpacked() (*bufio.Reader, func(), error) {
	if in.stream != nil {
		if in.peeked == nil {
			r, closer, err := unpack(in.stream)
			if err != nil {
				return nil, nil, err
			}
			in.peeked, in.closer = r, closer
		}
		return in.peeked, func() {}, nil
	}
	f, err := os.Open(in.path)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot be read: %w", plain(err))
	}
	r, closer, err := unpack(f)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return r, func() { closer(); f.Close() }, nil
}

func (in *input) close() error {
	if in.closer != nil {
		in.closer()
		in.closer = nil
	}
	if in.file != nil {
		return in.file.Close()
	}
	return nil
}

// head returns the first bytes, at most headSize. On a pipe it waits only for the first
// line.
func (in *input) head() ([]byte, error) {
	r, closer, err := in.open()
	if err != nil {
		return nil, err
	}
	defer closer()
	n := headSize
	if in.stream != nil {
		for n = 1; n <= headSize; n = r.Buffered() + 1 {
			_, err := r.Peek(n) // reads at least once
			b, _ := r.Peek(r.Buffered())
			if err != nil || bytes.IndexByte(b, '\n') >= 0 {
				break
			}
		}
		n = max(r.Buffered(), 1)
	}
	b, err := r.Peek(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", in.name, plain(err))
	}
	if len(b) == 0 {
		return nil, &EmptyError{in.name, "empty"}
	}
	return slices.Clone(b), nil
}

// unpack decompresses gzip and Zstandard, recognised by their first bytes.
func unpack(r io.Reader) (*bufio.Reader, func(), error) {
	packed := bufio.NewReaderSize(r, 64<<10)
	magic, _ := packed.Peek(4)
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(packed)
		if err != nil {
			return nil, nil, fmt.Errorf("unpack gzip: %w", err)
		}
		return bufio.NewReaderSize(z, headSize), func() { z.Close() }, nil
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, nil, fmt.Errorf("unpack zstd: %w", err)
		}
		return bufio.NewReaderSize(z, headSize), z.Close, nil
	}
	return bufio.NewReaderSize(packed, headSize), func() {}, nil
}
