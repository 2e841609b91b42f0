package credentials

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func pathOf(a *Announcement) string { return filepath.Join(a.folder.Name(), a.name) }

// The first start makes passwords that nobody else can read; the next finds them.
// Programs that start at once agree.
func TestPasswordsInADirectory(t *testing.T) {
	dir := t.TempDir()
	const programs = 16
	var made [programs]Passwords
	var starting sync.WaitGroup
	for i := range made {
		starting.Go(func() {
			var err error
			if made[i], err = InDir(dir); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	for _, p := range made {
		if p != made[0] || !p.complete() {
			t.Fatalf("%d starts made %+v and %+v", programs, made[0], p)
		}
	}
	different := map[string]bool{}
	for _, p := range []Passwords{made[0], New()} {
		for _, secret := range []string{p.NATS, p.Asker} {
			different[secret] = true
		}
	}
	if len(different) != 4 {
		t.Errorf("%d different passwords, want 4", len(different))
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("the directory holds %v, %v", files, err)
	}
	if info, err := files[0].Info(); err != nil || info.Name() != FileName || info.Mode() != 0o600 {
		t.Errorf("%v, mode %v, %v", info.Name(), info.Mode(), err)
	}
}

// A file that others may have read, a link or a damaged file is refused, with what to do.
func TestPasswordsThatAreRefused(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good")
	if err := create(good); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for want, prepare := range map[string]func(path string) error{
		"mode is 0640": func(path string) error {
			if err := os.WriteFile(path, content, 0o640); err != nil {
				return err
			}
			return os.Chmod(path, 0o640)
		},
		"symbolic links": func(path string) error { return os.Symlink(good, path) },
		"not a file":     func(path string) error { return os.Mkdir(path, 0o700) },
		"damaged":        func(path string) error { return os.WriteFile(path, content[:20], 0o600) },
		"is damaged":     func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) },
	} {
		dir := t.TempDir()
		if err := prepare(filepath.Join(dir, FileName)); err != nil {
			t.Fatal(err)
		}
		if _, err := InDir(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// ownFolders keeps a test apart from every other `hamlet up` on this machine. It returns
// XDG_RUNTIME_DIR.
func ownFolders(t *testing.T) string {
	t.Helper()
	runtime := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	t.Setenv("TMPDIR", t.TempDir())
	return runtime
}

func announce(t *testing.T, access Access) *Announcement {
	t.Helper()
	a, err := Announce()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Set(access); err != nil {
		t.Fatal(err)
	}
	return a
}

func natsOf(a Access) Login { return a.NATS }

// Programs find the up that listens at an address, of several. They find what it set
// last, and nothing after its end.
func TestFindByAddress(t *testing.T) {
	runtime := ownFolders(t)
	first := announce(t, Access{PID: 1, NATS: Login{Addr: "127.0.0.1:4222", User: "u", Password: "before"}})
	second := announce(t, Access{PID: 2, NATS: Login{Addr: "[::]:4223", User: "u", Password: "second"}})
	defer second.Close()
	if err := first.Set(Access{PID: 1, NATS: Login{Addr: "127.0.0.1:4222", User: "u", Password: "first"}}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pathOf(first), pathOf(second)} {
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	if info, err := os.Stat(filepath.Join(runtime, "hamlet")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
	for addr, want := range map[string]Login{
		"127.0.0.1:4222":          {"127.0.0.1:4222", "u", "first"},
		"localhost:4222":          {"127.0.0.1:4222", "u", "first"}, // not [::1], where another program may listen
		"[::ffff:127.0.0.1]:4222": {"127.0.0.1:4222", "u", "first"},
		"127.0.0.1:4223":          {"127.0.0.1:4223", "u", "second"},
		"localhost:4223":          {"127.0.0.1:4223", "u", "second"},
		"[::1]:4222":              {},
		"127.0.0.2:4222":          {},
		"mx1:4222":                {},
		"192.0.2.1:4223":          {},
		"127.0.0.1:4224":          {},
		"127.0.0.1":               {},
		"":                        {},
	} {
		if got, ok := Find(addr, natsOf); got != want || ok != (want != Login{}) {
			t.Errorf("at %q: %v, %v, want %v", addr, got, ok, want)
		}
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if got, ok := Find("127.0.0.1:4222", natsOf); ok {
		t.Errorf("after its end: %v", got)
	}
}

// The password of an up that was killed goes to nobody: its address may be another
// program's. The next start removes the file.
func TestDeadAnnouncement(t *testing.T) {
	ownFolders(t)
	killed := announce(t, Access{NATS: Login{Addr: "127.0.0.1:4222", Password: "secret"}})
	if err := killed.locked.Close(); err != nil { // as its death does
		t.Fatal(err)
	}
	if got, ok := Find("127.0.0.1:4222", natsOf); ok {
		t.Errorf("found %v", got)
	}
	next := announce(t, Access{})
	defer next.Close()
	if _, err := os.Stat(pathOf(killed)); !os.IsNotExist(err) {
		t.Errorf("the file of a dead process: %v", err)
	}
	if len(Running()) != 1 {
		t.Errorf("%d run, want 1", len(Running()))
	}
}

// A folder that is a link, that others may enter or that belongs to another user is
// neither written nor read; the next place is taken.
func TestFolderOfSomebodyElse(t *testing.T) {
	prepared := map[string]func(path string) error{
		"a link": func(path string) error {
			target := t.TempDir()
			if err := os.Chmod(target, 0o700); err != nil {
				return err
			}
			return os.Symlink(target, path)
		},
		"open": func(path string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.Chmod(path, 0o770)
		},
		"a file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
	}
	if os.Geteuid() == 0 {
		prepared["another user's"] = func(path string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.Chown(path, 65534, 65534)
		}
	} else {
		t.Log("not root: the folder of another user is not tried")
	}
	for name, prepare := range prepared {
		t.Run(name, func(t *testing.T) {
			runtime := ownFolders(t)
			path := filepath.Join(runtime, "hamlet")
			if err := prepare(path); err != nil {
				t.Fatal(err)
			}
			if folder, err := openFolder(path); err == nil {
				folder.Close()
				t.Error("it is used")
			}
			a, err := Announce()
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if filepath.Dir(pathOf(a)) == path {
				t.Errorf("the passwords are in %s", pathOf(a))
			}
			if err := a.Set(Access{NATS: Login{Addr: "127.0.0.1:4222", Password: "x"}}); err != nil {
				t.Fatal(err)
			}
			if _, ok := Find("127.0.0.1:4222", natsOf); !ok {
				t.Error("they are not found in the next place")
			}
		})
	}
}
