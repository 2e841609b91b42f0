// Package credentials keeps the passwords of the NATS that `hamlet up` runs in its process, and
// lets other programs of the same user find them, and the folder of its logs and models.
//
// The passwords are made at the first start. With a data directory they are kept there,
// in the file passwords.json, which only its owner can read. While up runs, a file in
// the user's runtime folder holds its addresses and passwords:
//
//	announcement, err := credentials.Announce()       // up
//	err = announcement.Set(credentials.Access{NATS: …})
//	defer announcement.Close()
//
//	login, ok := credentials.Find("127.0.0.1:4222",   // the others
//		func(a credentials.Access) credentials.Login { return a.NATS })
//
// The runtime folder is $XDG_RUNTIME_DIR/hamlet. A job of cron or of a mail server lacks
// the variable: it takes its usual value, /run/user/UID. Where that folder cannot be used
// it is hamlet-UID in the directory for temporary files. Both are read. A folder that is a
// link, belongs to another user or can be read by one is not used.
//
// up holds a lock (flock) on its file, and a file without a lock is not read. So a
// password is never sent to a program that listens at the address of an up that died.
package credentials

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"hamlet/cmd/internal/process/secretfile"
	"hamlet/cmd/internal/process/wholefile"
)

// Users of the NATS.
const (
	ServiceUser = "hamlet" // may do everything
	AskerUser   = "client" // asks for scores and hears alerts
)

// Passwords are those of the NATS. Each has 130 random bits.
type Passwords struct {
	NATS  string `json:"nats"` // of ServiceUser
	Asker string `json:"client"`
}

// New makes passwords.
func New() Passwords {
	return Passwords{NATS: rand.Text(), Asker: rand.Text()}
}

// complete reports whether no password is missing.
func (p Passwords) complete() bool {
	return p.NATS != "" && p.Asker != ""
}

// FileName is the file of passwords in a data directory.
const FileName = "passwords.json"

// InDir returns the passwords of the data directory dir, and makes them if it has none.
// Processes that make them at once agree. The error says what to do about a file that
// other users can read, or that is damaged.
func InDir(dir string) (Passwords, error) {
	path := filepath.Join(dir, FileName)
	p, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return Passwords{}, fmt.Errorf("make passwords: %w", err)
		}
		p, err = read(path)
	}
	if err != nil {
		return Passwords{}, fmt.Errorf("passwords %s: %w", path, err)
	}
	return p, nil
}

func read(path string) (p Passwords, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|secretfile.NoFollow, 0)
	if err != nil {
		return p, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return p, err
	}
	const again = "delete it, and the next start makes new passwords"
	if !info.Mode().IsRegular() {
		return p, errors.New("is not a file: " + again)
	}
	if !secretfile.Private(info) {
		return p, fmt.Errorf("other users may have read it, its mode is %#o: %s", info.Mode().Perm(), again)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(b, &p); err != nil || !p.complete() {
		return p, errors.New("is damaged: " + again)
	}
	return p, nil
}

// create makes the file with new passwords unless there is one. It is complete from the
// moment it has its name.
func create(path string) error {
	b, err := json.Marshal(New())
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+FileName+"-") // mode 0600, O_EXCL
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, bytes.NewReader(append(b, '\n')))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return wholefile.SyncFolder(filepath.Dir(path))
}
