// Package page is what all pages of the web console share: the frame with its navigation,
// style and script, the functions of templates, actions that leave an audit line, and
// fragments that change while somebody looks.
//
//	//go:embed sources.html
//	var files embed.FS
//	var templates = page.Parse(files, "sources.html") // defines "content" and the fragment "table"
//
//	site.Add(page.Page{
//		Path: "/sources", Title: "Sources", Role: access.Look, Templates: templates,
//		Handlers: map[string]http.Handler{"GET /sources": …, "POST /sources/role": site.Allow(access.Operate, …)},
//		Live:     map[string]page.Fragment{"table": func(ctx context.Context) (any, error) { … }},
//	})
//
// A page works without the script: it has links, forms and tables. The script adds
// fragments that change, times in the reader's zone, and keys.
package page

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"hamlet/cmd/internal/web/access"
)

// A Config is what a Site needs.
type Config struct {
	Model string // its name
	Audit Audit
	Log   *slog.Logger
	Now   func() time.Time // nil: time.Now
}

// A Site is a set of pages about one model. Add is called before Handler, which is called
// once. All else is safe for concurrent use.
type Site struct {
	Config
	pages   []Page
	flashes flashes
	hub     hub
}

// A Page is an entry of the navigation, and what belongs to it.
type Page struct {
	Path, Title string      // "/sources", "Sources"
	Role        access.Role // who sees it in the navigation, and may hear its fragments
	Hidden      bool        // it has no entry in the navigation
	Templates   *Templates  // of Live
	Handlers    map[string]http.Handler
	Form        int64 // bytes of a form that is posted; zero: 64 KiB
	// Live are fragments that change, by the name of their template: each returns what its
	// template shows. They hold nothing that Role does not allow. An error keeps what was
	// shown last.
	Live map[string]Fragment
}

// A Fragment returns the data of a template. It is called every two seconds while somebody
// looks, once for all who look.
type Fragment func(ctx context.Context) (any, error)

// NewSite returns a site without pages.
func NewSite(cfg Config) *Site {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Site{Config: cfg}
	s.hub.init(s)
	return s
}

// Add adds a page behind the others.
func (s *Site) Add(p Page) { s.pages = append(s.pages, p) }

// Patterns returns the patterns of all handlers of pages, as http.ServeMux has them.
func (s *Site) Patterns() (all []string) {
	for _, p := range s.pages {
		all = slices.AppendSeq(all, maps.Keys(p.Handlers))
	}
	slices.Sort(all)
	return all
}

// Close ends the streams of events. Streams that are asked for later are refused.
func (s *Site) Close() { s.hub.close() }

// Handler returns what serves all pages. Every request has its user in its context: see
// access.WithUser.
func (s *Site) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, p := range s.pages {
		for _, pattern := range slices.Sorted(maps.Keys(p.Handlers)) {
			mux.Handle(pattern, s.Allow(p.Role, bounded(cmp.Or(p.Form, mostForm), p.Handlers[pattern])))
		}
	}
	mux.Handle("GET "+livePath, http.HandlerFunc(s.live))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.Fail(w, r, http.StatusNotFound, "There is no such page.")
	})
	return mux
}

const mostForm = 1 << 16

// bounded bounds what a request may send.
func bounded(most int64, h http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, most)
		h.ServeHTTP(w, r)
	}
}

// Allow answers 403, with a page, to those without the role.
func (s *Site) Allow(role access.Role, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u := access.FromContext(r.Context()); !u.May(role) {
			s.Fail(w, r, http.StatusForbidden, "This needs the role "+role.String()+". You have: "+u.Role.String()+".")
			return
		}
		h(w, r)
	})
}

// A frame is what the layout shows.
type frame struct {
	Title, Model, Live  string
	Pages               []entry
	User                access.User
	Notice              flash
	StyleURL, ScriptURL string
	Data                any
}

type entry struct {
	Path, Title string
	Current     bool
}

// Render writes a page: the frame, and in it the template "content" with data.
func (s *Site) Render(w http.ResponseWriter, r *http.Request, t *Templates, status int, title string, data any) {
	u := access.FromContext(r.Context())
	f := frame{Title: title, Model: s.Model, User: u, Data: data, StyleURL: styleURL, ScriptURL: scriptURL}
	best, current := "", "" // a hidden page belongs to the one above it
	for _, p := range s.pages {
		if !under(r.URL.Path, p.Path) {
			continue
		}
		if !p.Hidden && len(p.Path) > len(current) {
			current = p.Path
		}
		if len(p.Path) > len(best) {
			best = p.Path
			if f.Live = ""; len(p.Live) > 0 && r.URL.Path == p.Path {
				f.Live = livePath + "?page=" + p.Path
			}
		}
	}
	for _, p := range s.pages {
		if u.May(p.Role) && !p.Hidden {
			f.Pages = append(f.Pages, entry{p.Path, p.Title, p.Path == current})
		}
	}
	if id := r.URL.Query().Get(flashKey); id != "" {
		f.Notice = s.flashes.take(id, u.Session, s.Now())
	}
	var b bytes.Buffer
	if err := t.execute(&b, "layout", u, s.Now(), f); err != nil {
		s.Log.Error("a page of the console cannot be drawn", "page", r.URL.Path, "error", err)
		http.Error(w, "this page cannot be drawn; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // whoever left needs no answer
}

// under reports whether path is the page or below it.
func under(path, page string) bool {
	return path == page || page != "/" && strings.HasPrefix(path, page+"/")
}

// Fail writes a page that says what went wrong, in a sentence.
func (s *Site) Fail(w http.ResponseWriter, r *http.Request, status int, what string) {
	s.Render(w, r, failure, status, http.StatusText(status), what)
}

var failure = Parse(own, "failure.html")

// flashes are sentences for the page that comes after an action.
type flashes struct {
	mu  sync.Mutex
	all map[string]flash
}

// A flash is shown once, to the session that caused it.
type flash struct {
	Text    string
	Failed  bool
	session string
	until   time.Time
}

const (
	flashKey    = "notice"
	flashTime   = 10 * time.Minute
	mostFlashes = 1000 // more lose the oldest
)

func (n *flashes) put(id string, one flash) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[string]flash{}
	}
	if len(n.all) >= mostFlashes {
		earlier := func(a, b string) int { return n.all[a].until.Compare(n.all[b].until) }
		delete(n.all, slices.MinFunc(slices.Collect(maps.Keys(n.all)), earlier))
	}
	n.all[id] = one
}

func (n *flashes) take(id, session string, now time.Time) flash {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.all[id]
	if one.session != session {
		return flash{}
	}
	delete(n.all, id)
	if now.After(one.until) {
		return flash{}
	}
	return one
}
