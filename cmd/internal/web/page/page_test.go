package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
)

const hostile = `"><script>alert(1)</script>' onload=x`

var templates = page.Parse(fstest.MapFS{"a.html": {Data: []byte(
	`{{define "content"}}<p title="{{.}}">{{.}} {{short 5 .}}</p>{{if may "operate"}}<form method="post">{{csrf}}</form>{{end}}{{end}}` +
		`{{define "count"}}<b>{{number .}}</b>{{end}}`)}}, "a.html")

// A rig is a site whose user the test chooses.
type rig struct {
	site   *page.Site
	server *httptest.Server
	user   access.User
	audit  []string
	refuse error // what the audit says
	count  atomic.Int64
	panics atomic.Int64 // that are in the log
}

// A panicCounter is a log of which a test wants the panics alone.
type panicCounter struct {
	slog.Handler
	n *atomic.Int64
}

func (c panicCounter) Enabled(context.Context, slog.Level) bool { return true }

func (c panicCounter) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if r.Level == slog.LevelError && a.Key == "panic" && a.Value.String() == "a bug" {
			c.n.Add(1)
		}
		return true
	})
	return nil
}

func newRig(t *testing.T) *rig {
	r := &rig{user: access.User{Name: "ann", Role: access.Look | access.Operate, Session: "s1", FormToken: "secret"}}
	r.site = page.NewSite(page.Config{Model: "default", Log: slog.New(panicCounter{slog.DiscardHandler, &r.panics}),
		Audit: func(_ context.Context, _ *http.Request, _ string, a page.Action, outcome string) error {
			r.audit = append(r.audit, a.Name+" "+outcome)
			return r.refuse
		}})
	act := func(err error) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			r.site.Act(w, req, page.Action{Name: "pin", Target: "7"}, func(context.Context) (string, error) {
				r.audit = append(r.audit, "acted")
				return "pinned " + hostile, err
			}, req.FormValue("back"))
		}
	}
	r.site.Add(page.Page{Path: "/", Title: "Now", Role: access.Look, Templates: templates,
		Handlers: map[string]http.Handler{
			"GET /{$}": http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				r.site.Render(w, req, templates, http.StatusOK, hostile, hostile)
			}),
			"POST /good": r.site.Allow(access.Operate, act(nil)),
			"POST /bad":  r.site.Allow(access.Operate, act(errors.New("Redis is away"))),
		},
		Live: map[string]page.Fragment{
			"count":   func(context.Context) (any, error) { return r.count.Load(), nil },
			"missing": func(context.Context) (any, error) { return nil, errors.New("away") },
			"wrong":   func(context.Context) (any, error) { panic("a bug") },
		}})
	r.site.Add(page.Page{Path: "/sources", Title: "Sources", Role: access.Look})
	r.site.Add(page.Page{Path: "/sources/withdraw", Title: "Withdraw", Role: access.Look, Hidden: true, Handlers: map[string]http.Handler{
		"GET /sources/withdraw": http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			r.site.Render(w, req, templates, http.StatusOK, "Withdraw", "x")
		})}})
	r.site.Add(page.Page{Path: "/model", Title: "Model", Role: access.Operate,
		Handlers: map[string]http.Handler{"GET /model": http.NotFoundHandler()}})
	h := r.site.Handler()
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h.ServeHTTP(w, req.WithContext(access.WithUser(req.Context(), r.user)))
	}))
	t.Cleanup(func() { r.site.Close(); r.server.Close() })
	return r
}

func (r *rig) get(t *testing.T, path string) (int, string) {
	t.Helper()
	w, err := http.Get(r.server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	return w.StatusCode, body(t, w)
}

func body(t *testing.T, w *http.Response) string {
	t.Helper()
	defer w.Body.Close()
	var b strings.Builder
	if _, err := bufio.NewReader(w.Body).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Text stays text wherever it stands, and what a role may not do it does not see.
func TestPageEscapesAndHides(t *testing.T) {
	r := newRig(t)
	status, html := r.get(t, "/")
	if status != http.StatusOK || strings.Contains(html, "<script>") || strings.Count(html, "&lt;script&gt;") < 4 {
		t.Errorf("%d: %s", status, html)
	}
	for _, want := range []string{`name="csrf" value="secret"`, `aria-current="page">Now`, `href="/model"`, `data-live="/live?page=/"`, `<html lang="en">`} {
		if !strings.Contains(html, want) {
			t.Errorf("%s is missing", want)
		}
	}
	r.user.Role = access.Look
	if _, html = r.get(t, "/"); strings.Contains(html, `href="/model"`) || strings.Contains(html, "<form method=\"post\">") {
		t.Errorf("a looker sees the operator's things: %s", html)
	}
	if status, html = r.get(t, "/model"); status != http.StatusForbidden || !strings.Contains(html, "needs the role operate") {
		t.Errorf("%d: %s", status, html)
	}
	if _, html = r.get(t, "/sources/withdraw"); !strings.Contains(html, `<a href="/sources" aria-current="page">`) || strings.Contains(html, ">Withdraw</a>") {
		t.Errorf("a hidden page is not in that above it: %s", html)
	}
	if status, _ = r.get(t, "/nowhere"); status != http.StatusNotFound {
		t.Errorf("no such page: %d", status)
	}
}

func (r *rig) post(t *testing.T, path string) *http.Response {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	w, err := client.Post(r.server.URL+path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Body.Close()
	return w
}

// An action has its line before it, its outcome after it, and its notice once, for the one
// who acted. Without a line nothing is done. Nobody is sent to another site.
func TestActionsLeaveLines(t *testing.T) {
	r := newRig(t)
	w := r.post(t, "/good?back=/")
	if got := fmt.Sprint(r.audit); w.StatusCode != http.StatusSeeOther || got != "[pin intended acted pin done]" {
		t.Fatalf("%d %s", w.StatusCode, got)
	}
	to := w.Header.Get("Location")
	r.user.Session = "s2"
	if _, html := r.get(t, to); strings.Contains(html, "pinned") {
		t.Error("another session reads the notice")
	}
	r.user.Session = "s1"
	if _, html := r.get(t, to); !strings.Contains(html, `role="status">pinned &#34;&gt;&lt;script`) {
		t.Error("the notice is missing:", html)
	}
	if _, html := r.get(t, to); strings.Contains(html, "pinned") {
		t.Error("the notice comes twice")
	}

	r.audit = nil
	if _, html := r.get(t, r.post(t, "/bad?back=/").Header.Get("Location")); !strings.Contains(html, `role="alert">Redis is away`) ||
		fmt.Sprint(r.audit) != "[pin intended acted pin failed: Redis is away]" {
		t.Errorf("%v: %s", r.audit, html)
	}
	r.audit, r.refuse = nil, errors.New("NATS is away")
	if _, html := r.get(t, r.post(t, "/good?back=/").Header.Get("Location")); !strings.Contains(html, "Nothing was done") || fmt.Sprint(r.audit) != "[pin intended]" {
		t.Errorf("%v: %s", r.audit, html)
	}
	r.refuse = nil
	for _, to := range []string{"https://example.org/", "//example.org/", `/\example.org`, "x"} {
		if at := r.post(t, "/good?back="+to).Header.Get("Location"); !strings.HasPrefix(at, "/?notice=") {
			t.Errorf("%s leads to %s", to, at)
		}
	}
	r.user.Role = access.Look
	r.audit = nil
	if w := r.post(t, "/good"); w.StatusCode != http.StatusForbidden || len(r.audit) > 0 {
		t.Errorf("a looker acts: %d, %v", w.StatusCode, r.audit)
	}
}

// Who looks gets a fragment at once and again when it changed. A fragment that fails, or panics,
// keeps nobody from the others.
func TestFragmentsFollow(t *testing.T) {
	r := newRig(t)
	w, err := http.Get(r.server.URL + "/live?page=/")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	events := bufio.NewScanner(w.Body)
	next := func() (fragments map[string]string) {
		for events.Scan() {
			if data, ok := strings.CutPrefix(events.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &fragments); err != nil {
					t.Fatal(err)
				}
				return fragments
			}
		}
		t.Fatal("the stream ended:", events.Err())
		return nil
	}
	if got := next(); len(got) != 1 || got["count"] != "<b>0</b>" {
		t.Errorf("%v", got)
	}
	r.count.Store(1234567)
	if got := next(); got["count"] != "<b>1\u202f234\u202f567</b>" {
		t.Errorf("%v", got)
	}
	if r.panics.Load() == 0 {
		t.Error("a panic is not in the log")
	}
	r.site.Close() // ends the stream
	for events.Scan() {
	}
	if status, _ := r.get(t, "/live?page=/"); status != http.StatusServiceUnavailable {
		t.Errorf("after the end: %d", status)
	}
	if status, _ := r.get(t, "/live?page=/model"); status != http.StatusNotFound {
		t.Errorf("a page without fragments: %d", status)
	}
}

// 500 streams of one user: some are served, the others are refused with words, and pages
// come all the same.
func TestTooManyStreams(t *testing.T) {
	r := newRig(t)
	served, refused := 0, 0
	for range 500 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.server.URL+"/live?page=/", nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Body.Close()
		switch w.StatusCode {
		case http.StatusOK:
			served++
		case http.StatusServiceUnavailable:
			if w.Header.Get("Retry-After") == "" {
				t.Fatal("Retry-After is missing")
			}
			refused++
		}
	}
	if served != 32 || refused != 468 {
		t.Errorf("%d served, %d refused", served, refused)
	}
	if status, _ := r.get(t, "/"); status != http.StatusOK {
		t.Errorf("a page: %d", status)
	}
	r.user.Name = "bob"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.server.URL+"/live?page=/", nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := http.DefaultClient.Do(req)
	if err != nil || w.StatusCode != http.StatusOK {
		t.Errorf("another user: %v, %v", w, err)
	}
	if err == nil {
		w.Body.Close()
	}
}

// Style and script are kept by browsers, and need no login.
func TestAssets(t *testing.T) {
	r := newRig(t)
	_, html := r.get(t, "/")
	server := httptest.NewServer(page.Static())
	defer server.Close()
	n := 0
	for line := range strings.Lines(html) {
		at := strings.Index(line, "/static/")
		if at < 0 {
			continue
		}
		path := line[at : at+strings.IndexByte(line[at:], '"')]
		w, err := http.Get(server.URL + path)
		if err != nil || w.StatusCode != http.StatusOK || !strings.Contains(w.Header.Get("Cache-Control"), "immutable") {
			t.Fatalf("%s: %v, %v", path, w, err)
		}
		if text := body(t, w); len(text) < 1000 {
			t.Errorf("%s has %d bytes", path, len(text))
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d assets", n)
	}
	for _, path := range []string{"/static/../page.go", "/static/%2e%2e/page.go", "/static/", "/static/000000000000/style.css"} {
		if w, err := http.Get(server.URL + path); err != nil || w.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %v, %v", path, w, err)
		}
	}
}

func TestFigures(t *testing.T) {
	for p, want := range map[float64]string{0.5: "0.5000", 2e-6: "2e−06", 1 - 2e-6: "1 − 2e−06", 1: "1.0000", 0: "0.0000"} {
		if got := page.Probability(p); got != want {
			t.Errorf("%g: %s, want %s", p, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1\u202f000", -1234567: "−1\u202f234\u202f567"} {
		if got, err := page.Number(n); got != want || err != nil {
			t.Errorf("%d: %s, %v", n, got, err)
		}
	}
	for d, want := range map[time.Duration]string{0: "just now", time.Minute: "60 s ago", 5 * time.Minute: "5 min ago", 3 * time.Hour: "3 h ago", 72 * time.Hour: "3 days ago"} {
		if got := page.Ago(d); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
	if got := page.Bytes(1536); got != "1.5 KiB" {
		t.Error(got)
	}
}
