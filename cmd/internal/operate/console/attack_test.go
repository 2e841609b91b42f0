package console

import (
	"context"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"hamlet/cmd/internal/web/access"
	"hamlet/state/redis"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// A target is a whole console that is attacked.
type target struct {
	*Console
	t       *testing.T
	guard   *access.Guard
	handler http.Handler
	audit   *nats.Audit
}

func newTarget(t *testing.T) *target {
	t.Helper()
	server, err := embedded.StartNATS(embedded.NATSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	conn, err := nats.Connect(nats.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	store, err := redis.New(redis.Config{Addr: miniredis.RunT(t).Addr(), Model: "default"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	guard, err := access.New(access.Config{Addr: "127.0.0.1:9110", Links: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(t.Context(), Config{Model: "default", Topic: "hamlet.events.default", Guard: guard, NATS: conn, Store: store, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &target{Console: c, t: t, guard: guard, handler: c.Handler(), audit: c.audit}
}

// An attacker is a browser with a session, or with none.
type attacker struct {
	*target
	cookies map[string]string
	token   string
}

// as returns a browser in which a user with the roles has logged in; without roles nobody has.
func (at *target) as(roles access.Role) *attacker {
	at.t.Helper()
	a := &attacker{target: at, cookies: map[string]string{}}
	if roles == 0 {
		return a
	}
	link := at.guard.NewLink(access.User{Name: "eve-" + roles.String(), Role: roles})
	a.token = a.tokenOf(link)
	if status, _ := a.send("POST", link, nil); status != http.StatusSeeOther {
		at.t.Fatalf("log in: %d", status)
	}
	if a.token = a.tokenOf("/history"); a.token == "" {
		at.t.Fatal("a page has no token")
	}
	return a
}

var tokenField = regexp.MustCompile(`name="csrf" value="([^"]*)"`)

func (a *attacker) tokenOf(path string) string {
	_, text := a.send("GET", path, nil)
	if m := tokenField.FindStringSubmatch(text); m != nil {
		return html.UnescapeString(m[1])
	}
	return ""
}

// send sends a request, a POST with the token, and returns the status and the page.
func (a *attacker) send(method, path string, headers http.Header) (int, string) {
	a.t.Helper()
	var form io.Reader
	if method == "POST" {
		form = strings.NewReader(url.Values{access.FormField: {a.token}}.Encode())
	}
	r := httptest.NewRequestWithContext(a.t.Context(), method, "http://127.0.0.1:9110"+path, form)
	r.RemoteAddr = "127.0.0.1:50000"
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range headers {
		r.Header[name] = values
	}
	for name, value := range a.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		a.cookies[c.Name] = c.Value
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") {
		a.t.Errorf("%s %s: Content-Security-Policy %q", method, path, policy)
	}
	return w.Code, w.Body.String()
}

// each calls do for each handler of a page, with a path that it takes.
func (at *target) each(do func(method, path string)) {
	n := 0
	for _, pattern := range at.site.Patterns() {
		method, path, ok := strings.Cut(pattern, " ")
		if !ok {
			at.t.Errorf("%q is for every method", pattern)
			continue
		}
		n++
		do(method, regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(strings.TrimSuffix(path, "{$}"), "1"))
	}
	if n < 5 {
		at.t.Errorf("%d handlers: the test misses its point", n)
	}
}

// freeForLook are POSTs that change nothing for others: whoever may look may ask why a message
// of their own is spam.
var freeForLook = []string{"/why"}

// forLabel are POSTs for those who may see mail.
var forLabel = []string{"/review", "/doubtful", "/why"}

func below(path string, roots []string) bool {
	for _, root := range roots {
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

// Without a session no page answers. Without the token, with that of another session, or from
// another site, no form counts. Without the role a form is refused, whatever it says.
func TestEveryFormIsGuarded(t *testing.T) {
	at := newTarget(t)
	nobody, everything := at.as(0), at.as(access.Look|access.Label|access.Operate)
	other := at.as(access.Look | access.Label | access.Operate)
	look, label, operate := at.as(access.Look), at.as(access.Look|access.Label), at.as(access.Look|access.Operate)
	at.each(func(method, path string) {
		status, text := nobody.send(method, path, nil)
		switch method {
		case "GET":
			if status != http.StatusSeeOther || strings.Contains(text, "<main") {
				t.Errorf("GET %s of nobody: %d", path, status)
			}
			return
		case "POST":
			if status != http.StatusUnauthorized {
				t.Errorf("POST %s of nobody: %d", path, status)
			}
		default:
			t.Errorf("%s %s: pages know GET and POST", method, path)
			return
		}
		own := everything.token
		for what, token := range map[string]string{"no": "", "another session's": other.token} {
			everything.token = token
			if status, _ := everything.send("POST", path, nil); status != http.StatusForbidden {
				t.Errorf("POST %s with %s token: %d", path, what, status)
			}
		}
		everything.token = own
		for _, headers := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Origin": {"https://evil.example"}}} {
			if status, _ := everything.send("POST", path, headers); status != http.StatusForbidden {
				t.Errorf("POST %s with %v: %d", path, headers, status)
			}
		}
		if status, _ := look.send("POST", path, nil); status != http.StatusForbidden && !below(path, freeForLook) {
			t.Errorf("POST %s of who may only look: %d", path, status)
		}
		if status, _ := label.send("POST", path, nil); status != http.StatusForbidden && !below(path, forLabel) {
			t.Errorf("POST %s of who may only label: %d", path, status)
		}
		if status, _ := operate.send("POST", path, nil); status != http.StatusForbidden && below(path, []string{"/review", "/doubtful"}) {
			t.Errorf("POST %s of who may not label: %d", path, status)
		}
	})
}

var (
	inlineScript = regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]`)
	inlineStyle  = regexp.MustCompile(`(?i)<[a-z][^>]*\sstyle\s*=|<style`)
	inlineEvent  = regexp.MustCompile(`(?i)<[a-z][^>]*\son[a-z]+\s*=`)
	elsewhere    = regexp.MustCompile(`(?i)(?:src|href|action)\s*=\s*["']?(?:https?:)?//`)
)

// Every page answers without data, with nothing that its policy forbids. A GET is no action.
func TestPagesKeepTheirPolicy(t *testing.T) {
	at := newTarget(t)
	for _, a := range []*attacker{at.as(access.Look), at.as(access.Look | access.Label | access.Operate)} {
		at.each(func(method, path string) {
			if method != "GET" {
				return
			}
			status, text := a.send("GET", path, nil)
			if status >= 500 {
				t.Errorf("%s: %d: %.300s", path, status, text)
			}
			for what, bad := range map[string]*regexp.Regexp{"a script": inlineScript, "a style": inlineStyle, "an event's handler": inlineEvent, "another host": elsewhere} {
				if m := bad.FindString(text); m != "" {
					t.Errorf("%s has %s in it: %.100q", path, what, m)
				}
			}
			if strings.Contains(text, "<form") && strings.Count(text, `method="post"`) > strings.Count(text, `name="csrf"`) {
				t.Errorf("%s has a form without a token", path)
			}
		})
	}
	if lines, _, err := at.audit.Read(t.Context(), 10, time.Time{}); err != nil || len(lines) > 0 {
		t.Errorf("GETs left %d lines in the audit, %v", len(lines), err)
	}
}

// Paths that are written in other ways, and names below /static/, lead to no page and no file.
func TestPathsOfTheWholeConsole(t *testing.T) {
	at := newTarget(t)
	nobody, look := at.as(0), at.as(access.Look)
	for _, path := range []string{
		"/static/../audit", "/static/%2e%2e/audit", "/static/..%2faudit", "/static/style.css", "/static/", "/static/x/../../../etc/passwd",
		"/static/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "//audit", "/./audit", "/audit/..%2f", "/audit%00", "/AUDIT", "/..%5caudit", "/metrics", "/debug/pprof/", "/healthz",
	} {
		if status, text := nobody.send("GET", path, nil); status == 200 || strings.Contains(text, "hamlet") && strings.Contains(text, "<nav") {
			t.Errorf("%s of nobody: %d", path, status)
		}
		if status, text := look.send("GET", path, nil); status == 200 || strings.Contains(text, "root:") {
			t.Errorf("%s of who may look: %d", path, status)
		}
	}
}
