package access

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A logged holds the text of a log that several goroutines write.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// The last user is removed like every other: by a file that is empty, that has comments alone,
// or that is no longer there.
func TestTheLastUserIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := usersFile(t, "ann:"+cheap+":look")
		var log logged
		users, err := OpenUsers(path)
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, Config{Users: users, Log: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { r.guard.watch(ctx, nil); close(ended) }()
		defer func() { cancel(); <-ended }()
		settle := func() {
			time.Sleep(21 * time.Second) // four looks
			synctest.Wait()
		}
		write := func(text string) {
			t.Helper()
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			settle()
		}
		for name, remove := range map[string]func(){
			"an empty file": func() { write("") },
			"comments":      func() { write("# nobody\n") },
			"no file": func() {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				settle()
			},
		} {
			write("ann:" + cheap + ":look\n")
			ann := r.loggedIn("ann")
			log.Reset()
			remove()
			if s := ann.get("/").StatusCode; s != http.StatusSeeOther {
				t.Errorf("%s: the session goes on: %d", name, s)
			}
			if s := r.browser().login("ann", password); s != http.StatusUnauthorized {
				t.Errorf("%s: a login: %d", name, s)
			}
			if n := strings.Count(log.String(), "nobody of it may come in"); n != 1 {
				t.Errorf("%s is logged %d times:\n%s", name, n, &log)
			}
		}
		// A mistake is logged once, and again when the file is written again.
		write("ann:" + cheap + ":look\n")
		ann := r.loggedIn("ann")
		log.Reset()
		for i, text := range []string{"ann\n", "ann:x\n"} {
			write(text)
			if n := strings.Count(log.String(), "stay as they were"); n != i+1 {
				t.Errorf("after %d mistakes the log has %d:\n%s", i+1, n, &log)
			}
		}
		if s := ann.get("/").StatusCode; s != http.StatusOK {
			t.Errorf("after a mistake: %d", s)
		}
		// A file that nobody may take is taken once its mode is right, which leaves its time.
		write("ann:" + cheap + ":operate\n")
		write("ann:" + cheap + ":look,operate\n")
		for _, mode := range []os.FileMode{0o602, 0o600} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			if mode == 0o602 {
				write("ann:" + cheap + ":look,label\n")
			}
			settle()
		}
		if l, ok := users.find("ann"); !ok || l.roles != Look|Label {
			t.Errorf("after chmod: %v, %v", l.roles, ok)
		}
	})
}

// A console without a file has nothing to read again: its terminal's end ends it.
func TestHangupsAreTakenForTheFile(t *testing.T) {
	g := newRig(t, Config{Links: true}).guard
	hangups, stop := g.hangups()
	stop()
	if hangups != nil {
		t.Error("without a file of users the console takes SIGHUP")
	}
	hangups, stop = newRig(t, Config{Users: openUsers(t, threeUsers...)}).guard.hangups()
	stop()
	if hangups == nil {
		t.Error("with a file of users the console takes no SIGHUP")
	}
}

// Another program of the host sets cookies of our name. They do not hide the session.
func TestForeignCookies(t *testing.T) {
	r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
	b := r.loggedIn("ann")
	wrong := strings.Repeat("a", secretLength)
	for _, before := range [][]string{{"x"}, {""}, {wrong}, {"x", "y", "z", "x", "y", "z"}, {wrong, "x", wrong, wrong}} {
		req := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/", nil)
		for _, value := range append(before, b.session()) {
			req.AddCookie(&http.Cookie{Name: "hamlet-session-8080", Value: value})
		}
		if s, _ := r.guard.sessions.find(req, r.guard.cookieName(req), time.Now()); s == nil {
			t.Errorf("behind %q the session is not found", before)
		}
	}
}
