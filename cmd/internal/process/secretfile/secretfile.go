// Package secretfile reads files that hold secrets: keys, tokens, passwords and their
// hashes. It refuses one that every user of the machine may read or write.
//
//	text, info, err := secretfile.Read("/etc/hamlet/tokens.yaml", 16<<20)
//
// A group may read such a file: the package of Debian installs it as root:hamlet 0640, and
// Kubernetes mounts it for a group. Who is in the group is the operator's choice.
package secretfile

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// Check returns an error if every user of the machine may read or write the file at path,
// or if there is none.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return check(path, info)
}

// check takes a pipe as it is. Windows has no such modes.
func check(path string, info fs.FileInfo) error {
	mode := info.Mode()
	if !mode.IsRegular() || mode.Perm()&0o006 == 0 || runtime.GOOS == "windows" {
		return nil
	}
	return fmt.Errorf("%s holds secrets, and every user of this machine may read or write it, its mode is %#o: "+
		"chmod o= %[1]s (for a Secret of Kubernetes: defaultMode: 0440)", path, mode.Perm())
}

// Read returns the text of the file at path, which may have most bytes.
func Read(path string, most int64) ([]byte, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if err := check(path, info); err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(text)) > most {
		return nil, nil, fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return text, info, nil
}
