package credentials

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hamlet/cmd/internal/process/secretfile"
	"hamlet/stream/lockfile"
)

// A Login is how one user reaches one server.
type Login struct {
	Addr     string `json:"address"` // host:port; "" if there is no such server
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
}

// An Access is what a running `hamlet up` tells its user's other programs: where its
// logs and models are, and the logins to the NATS in its process.
type Access struct {
	PID   int    `json:"pid"`
	Data  string `json:"data,omitempty"` // the folder of its logs and models; "": it has neither
	NATS  Login  `json:"nats"`           // of a service
	Asker Login  `json:"nats_client"`    // of a program that asks for scores
}

// An Announcement is the file of one `hamlet up` in the runtime folder.
type Announcement struct {
	folder *os.Root
	name   string   // of the file
	locked *os.File // the file; nil before the first Set
}

const (
	fileSuffix = ".json"
	newSuffix  = ".new" // of a file that Set is writing
)

// Announce opens the runtime folder, creates it if it is missing, and removes the files
// of processes that died. The caller closes the announcement.
func Announce() (*Announcement, error) {
	folder, err := makeFolder()
	if err != nil {
		return nil, err
	}
	removeStale(folder)
	name := fmt.Sprintf("%d-%s%s", os.Getpid(), rand.Text()[:8], fileSuffix)
	return &Announcement{folder: folder, name: name}, nil
}

// Folder returns the path of the runtime folder, and creates it if it is missing. Only this
// user can enter it. A file that is no announcement has another suffix.
func Folder() (path string, err error) {
	folder, err := makeFolder()
	if err != nil {
		return "", err
	}
	return folder.Name(), folder.Close()
}

func makeFolder() (*os.Root, error) {
	var errs []error
	for _, path := range folders() {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			errs = append(errs, err)
			continue
		}
		folder, err := openFolder(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		return folder, nil
	}
	return nil, fmt.Errorf("no runtime folder for secrets: set XDG_RUNTIME_DIR to a directory of your own: %w",
		errors.Join(errs...))
}

// Set writes what other programs find. They find either all of it or what was set
// before.
func (a *Announcement) Set(access Access) error {
	b, err := json.MarshalIndent(access, "", "  ")
	if err != nil {
		return err
	}
	temporary := strings.TrimSuffix(a.name, fileSuffix) + newSuffix
	f, err := a.folder.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, lockfile.Wait(f)) // before it has its name
	if err == nil {
		err = a.folder.Rename(temporary, a.name)
	}
	if err != nil {
		return errors.Join(err, f.Close(), a.folder.Remove(temporary))
	}
	if a.locked != nil {
		err = a.locked.Close()
	}
	a.locked = f
	return err
}

// Close removes the file.
func (a *Announcement) Close() error {
	var err error
	if a.locked != nil {
		err = errors.Join(a.folder.Remove(a.name), a.locked.Close())
	}
	return errors.Join(err, a.folder.Close())
}

// Running returns what each running `hamlet up` of this user announces.
func Running() []Access {
	var all []Access
	for _, path := range folders() {
		folder, err := openFolder(path)
		if err != nil {
			continue
		}
		for _, name := range list(folder, fileSuffix) {
			if a, ok := readAnnounced(folder, name); ok {
				all = append(all, a)
			}
		}
		folder.Close()
	}
	return all
}

// Find returns the login of a running `hamlet up` of this user whose server listens at
// addr, host:port. The login's address is the one to connect to: a name such as
// localhost could lead to another user's program.
func Find(addr string, login func(Access) Login) (Login, bool) {
	for _, a := range Running() {
		l := login(a)
		if dial, ok := reaches(addr, l.Addr); ok {
			l.Addr = dial
			return l, true
		}
	}
	return Login{}, false
}

// Reached reports whether a client that is told addr, host:port, means the login's server.
func (l Login) Reached(addr string) bool {
	_, ok := reaches(addr, l.Addr)
	return ok
}

// reaches reports whether a client that is told addr means the server that listens at
// listener, and where it finds that one.
func reaches(addr, listener string) (dial string, ok bool) {
	host, port, err := net.SplitHostPort(addr)
	listening, listeningPort, listenErr := net.SplitHostPort(listener)
	if err != nil || listenErr != nil || port != listeningPort {
		return "", false
	}
	ip, at := net.ParseIP(host), net.ParseIP(listening)
	switch {
	case at == nil:
		return listener, host == listening
	case at.IsUnspecified() && host == "localhost":
		return net.JoinHostPort("127.0.0.1", port), true
	case at.IsUnspecified():
		return addr, ip != nil && ip.IsLoopback()
	}
	return listener, ip.Equal(at) || host == "localhost" && at.IsLoopback()
}

// folders returns where the runtime folder may be, the better place first.
func folders() []string {
	uid := strconv.Itoa(os.Geteuid())
	login := os.Getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(login) {
		login = filepath.Join("/run/user", uid)
	}
	return []string{filepath.Join(login, "hamlet"), filepath.Join(os.TempDir(), "hamlet-"+uid)}
}

// openFolder opens a folder that is this user's and nobody else's.
func openFolder(path string) (*os.Root, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !named.IsDir() {
		return nil, fmt.Errorf("%s is not a directory: remove it", path)
	}
	folder, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	opened, err := folder.Stat(".") // what is at path may have changed since
	if err == nil {
		err = private(path, named, opened)
	}
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

func private(path string, named, opened fs.FileInfo) error {
	switch {
	case !os.SameFile(named, opened):
		return fmt.Errorf("%s changes under our hands", path)
	case !secretfile.Ours(opened):
		return fmt.Errorf("%s belongs to another user: ask its owner or the administrator to remove it", path)
	case !secretfile.Private(opened):
		return fmt.Errorf("other users may enter %s, its mode is %#o: chmod 700 it", path, opened.Mode().Perm())
	}
	return nil
}

// list returns the names of the folder's files with a suffix.
func list(folder *os.Root, suffix string) []string {
	d, err := folder.Open(".")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1) // those before an error are true
	var all []string
	for _, name := range names {
		if strings.HasSuffix(name, suffix) {
			all = append(all, name)
		}
	}
	return all
}

// readAnnounced reads the file of a process that lives.
func readAnnounced(folder *os.Root, name string) (a Access, ok bool) {
	f, err := folder.Open(name)
	if err != nil {
		return a, false
	}
	defer f.Close()
	if !held(f) {
		return a, false
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return a, false
	}
	return a, json.Unmarshal(b, &a) == nil
}

// removeStale removes the files of processes that died.
func removeStale(folder *os.Root) {
	// A file that is being written is without a lock for a moment.
	const writing = time.Minute
	for _, name := range append(list(folder, fileSuffix), list(folder, newSuffix)...) {
		f, err := folder.Open(name)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		if err == nil && !held(f) && (strings.HasSuffix(name, fileSuffix) || time.Since(info.ModTime()) > writing) {
			_ = folder.Remove(name) // another process may have been first
		}
		f.Close()
	}
}

// held reports whether a process holds the file for itself. The shared lock that it
// tries does not disturb others who ask.
func held(f *os.File) bool {
	return errors.Is(lockfile.File(f, true), lockfile.ErrLocked)
}
