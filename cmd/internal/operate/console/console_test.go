package console_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"golang.org/x/crypto/bcrypt"

	"hamlet/cmd/internal/operate/console"
	"hamlet/cmd/internal/service/parts"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
)

// A browser is a client with cookies.
type browser struct {
	t    *testing.T
	url  string
	http *http.Client
}

var csrf = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

func (b *browser) get(path string) (int, http.Header, string) {
	b.t.Helper()
	return b.answer(b.http.Get(b.url + path))
}

func (b *browser) post(path string, form url.Values) (int, http.Header, string) {
	b.t.Helper()
	return b.answer(b.http.PostForm(b.url+path, form))
}

func (b *browser) answer(w *http.Response, err error) (int, http.Header, string) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return w.StatusCode, w.Header, string(text)
}

// token returns the token of the first form of a page.
func (b *browser) token(path string) string {
	b.t.Helper()
	_, _, html := b.get(path)
	found := csrf.FindStringSubmatch(html)
	if found == nil {
		b.t.Fatalf("%s has no form:\n%s", path, html)
	}
	return found[1]
}

// noLogs is a Kafka that cannot be reached.
type noLogs struct{ stream.Logs }

var errNoLogs = errors.New("no broker answers")

func (noLogs) Open(string) (stream.Topic, error)               { return nil, errNoLogs }
func (noLogs) Ping(context.Context) error                      { return errNoLogs }
func (noLogs) Partitions(context.Context, string) (int, error) { return 0, errNoLogs }

// serve runs a console on servers at these addresses. Its users are ann, who may do all, and
// bob, who may look; the password of each is the name.
func serve(t *testing.T, natsURL, redisAddr string) func() *browser {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	conn, err := nats.Connect(nats.Config{URL: natsURL, Wait: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	store, err := redis.New(redis.Config{Addr: redisAddr, Model: "default"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	var lines strings.Builder
	for name, roles := range map[string]string{"ann": "look,label,operate", "bob": "look"} {
		hash, err := bcrypt.GenerateFromPassword([]byte(name), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&lines, "%s:%s:%s\n", name, hash, roles)
	}
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	users, err := access.OpenUsers(file)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := access.New(access.Config{Addr: "127.0.0.1:0", Users: users, Style: page.StyleURL(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s := parts.New("hamlet-console", "default", log)
	t.Cleanup(func() { s.Close() })
	served, err := console.Listen(t.Context(), console.Listener{Addr: "127.0.0.1:0", Services: s, Log: log},
		console.Config{Model: "default", Topic: s.Topic(), Guard: guard, NATS: conn, Store: store, Kafka: noLogs{}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- served.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error("the console ended:", err)
		}
	})
	return func() *browser {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Jar: jar, Timeout: time.Minute}
		t.Cleanup(client.CloseIdleConnections)
		return &browser{t, served.URL(), client}
	}
}

// login logs a user in and returns the first page.
func (b *browser) login(name string) string {
	b.t.Helper()
	status, _, html := b.post("/login", url.Values{"name": {name}, "password": {name}, "csrf": {b.token("/login")}})
	if status != http.StatusOK || !strings.Contains(html, "Log out") {
		b.t.Fatalf("%d:\n%s", status, html)
	}
	return html
}

var navigation = regexp.MustCompile(`<li><a href="([^"]+)"`)

// pages returns the paths of the navigation.
func pages(html string) (paths []string) {
	for _, found := range navigation.FindAllStringSubmatch(html, -1) {
		paths = append(paths, found[1])
	}
	return paths
}

// Every page of the navigation is there for those who may see it, before anything has been
// learnt or answered, and has the headers that keep foreign scripts out. The first page is
// small.
func TestPagesBeforeTheFirstEvent(t *testing.T) {
	n, err := embedded.StartNATS(embedded.NATSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	open := serve(t, n.URL(), miniredis.RunT(t).Addr())
	ann := open()
	first := ann.login("ann")
	paths := pages(first)
	for _, want := range []string{"/", "/incidents", "/sources", "/why", "/review", "/doubtful", "/history", "/model", "/audit"} {
		if !slices.Contains(paths, want) {
			t.Errorf("the navigation lacks %s: %v", want, paths)
		}
	}
	for _, path := range paths {
		status, header, html := ann.get(path)
		policy := header.Get("Content-Security-Policy")
		if status != http.StatusOK || strings.Count(html, "<h1>") != 1 || !strings.Contains(html, `aria-current="page"`) ||
			!strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %d, %s\n%s", path, status, policy, html)
		}
		for _, inline := range []string{" style=", " onclick=", "javascript:", "<style"} {
			if strings.Contains(html, inline) {
				t.Errorf("%s has %q, which the policy forbids", path, inline)
			}
		}
	}
	bytes := len(first)
	for _, asset := range regexp.MustCompile(`/static/[^"]+`).FindAllString(first, -1) {
		status, _, text := open().get(asset)
		if status != http.StatusOK {
			t.Errorf("%s: %d", asset, status)
		}
		bytes += len(text)
	}
	if bytes > 100_000 {
		t.Errorf("the first page has %d bytes with all that it needs", bytes)
	}

	bob := open()
	seen := pages(bob.login("bob"))
	if slices.Contains(seen, "/audit") || slices.Contains(seen, "/review") || slices.Contains(seen, "/doubtful") || !slices.Contains(seen, "/sources") {
		t.Errorf("bob may look, and sees %v", seen)
	}
	for _, path := range []string{"/audit", "/review", "/doubtful"} {
		if status, _, _ := bob.get(path); status != http.StatusForbidden {
			t.Errorf("bob gets %s: %d", path, status)
		}
	}
	nobody := open()
	for _, path := range append(paths, "/metrics", "/live?page=/", "/nowhere") {
		if _, _, html := nobody.get(path); !strings.Contains(html, `name="password"`) {
			t.Errorf("%s without a login:\n%s", path, html)
		}
	}
}

// An action has a line before it and one with its outcome, which says why it failed.
func TestActionsAreInTheAudit(t *testing.T) {
	n, err := embedded.StartNATS(embedded.NATSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	ann := serve(t, n.URL(), miniredis.RunT(t).Addr())()
	ann.login("ann")
	form := url.Values{"source": {"desk"}, "role": {"muted"}, "csrf": {ann.token("/sources")}}
	if status, _, html := ann.post("/sources/role", form); status != http.StatusOK || strings.Contains(html, "could not be kept") {
		t.Errorf("%d:\n%s", status, html)
	}
	_, _, html := ann.get("/audit")
	for _, want := range []string{"ann", "standing", "desk", errNoLogs.Error()} {
		if !strings.Contains(html, want) {
			t.Errorf("the audit lacks %q:\n%s", want, html)
		}
	}
}

// Where all servers are away, the pages are there and say so.
func TestPagesWithoutServers(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := closed.Addr().String()
	closed.Close()
	ann := serve(t, "nats://"+addr, addr)()
	for _, path := range pages(ann.login("ann")) {
		start := time.Now()
		status, _, html := ann.get(path)
		if status != http.StatusOK || !strings.Contains(html, "Log out") {
			t.Errorf("%s: %d\n%s", path, status, html)
		}
		t.Logf("%s after %v", path, time.Since(start).Round(time.Millisecond))
	}
}
