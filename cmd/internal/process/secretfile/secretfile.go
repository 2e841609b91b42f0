// Package secretfile reads files that hold secrets: keys, tokens, passwords and their
// hashes. It refuses one that every user of the machine may read or write, and one that
// belongs to another user. It looks at the file that it has open, before it reads.
//
//	text, err := secretfile.Read("/etc/hamlet/tokens.yaml", 16<<20)
//
// A group may read such a file: the package of Debian installs it as root:hamlet 0640, and
// Kubernetes mounts it for a group. Who is in the group is the operator's choice. Root takes
// a file of every user: in a container, files of the host belong to one.
//
// A program that runs on follows its files with [Live].
package secretfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Check returns an error if the file at path is missing, or others can read it. It is for callers
// that do not read the file themselves: another file may be at path a moment later.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return check(path, info)
}

// check takes a pipe as it is.
func check(path string, info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case !mode.IsRegular():
		return nil
	case open(info):
		return fmt.Errorf("%s holds secrets, and every user of this machine may read or write it, its mode is %#o: "+
			"chmod o= %[1]s (for a Secret of Kubernetes: defaultMode: 0440)", path, mode.Perm())
	case !trusted(info):
		return fmt.Errorf("%s holds secrets, and belongs to %s: give it to root, or to the user of this program, with chown",
			path, Owner(info))
	}
	return nil
}

// Read returns the text of the file at path, which may have most bytes.
func Read(path string, most int64) ([]byte, error) {
	f, unfit, err := look(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if unfit != nil {
		return nil, unfit
	}
	return readAll(f, most)
}

// ReadAny is Read of a file that holds secrets only sometimes. The error unfit says why it is
// none for secrets. Who finds secrets in the text must not use them then.
func ReadAny(path string, most int64) (text []byte, unfit, err error) {
	f, unfit, err := look(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	text, err = readAll(f, most)
	return text, unfit, err
}

// look opens a file, and says why it is none for secrets.
func look(path string) (f *os.File, unfit, err error) {
	if f, err = os.Open(path); err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, check(path, info), nil
}

func readAll(f *os.File, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", f.Name(), most)
	}
	return text, nil
}
