package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"hamlet/cmd/internal/web/access"
)

const (
	livePath = "/live"

	liveEvery   = 2 * time.Second  // between two drawings of a page's fragments
	drawTime    = 10 * time.Second // for one drawing
	heartbeat   = 20 * time.Second // so that proxies keep the connection
	liveWrite   = 10 * time.Second // a viewer that takes no event for so long is dropped
	mostStreams = 256              // of all viewers; more are answered 503
	mostOfOne   = 32               // of one user
)

// A hub draws the fragments of pages that somebody looks at, and sends the changed ones to
// all who look. A page that nobody looks at costs nothing.
type hub struct {
	site *Site
	done chan struct{}

	mu      sync.Mutex
	closed  bool
	streams int
	users   map[string]int    // streams by user
	topics  map[string]*topic // by path, while somebody looks
}

// A topic is a page that is looked at.
type topic struct {
	viewers   int
	stop      context.CancelFunc
	fragments map[string]drawn
	round     int           // counts changes
	changed   chan struct{} // closed at the next change
}

// drawn is a fragment as it was drawn last.
type drawn struct {
	html  string
	round int // of the change
}

func (h *hub) init(s *Site) {
	h.site, h.done, h.users, h.topics = s, make(chan struct{}), map[string]int{}, map[string]*topic{}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.done)
	}
}

// enter counts a viewer of p; the page's fragments are drawn from the first one on. It
// reports false where there are too many.
func (h *hub) enter(p *Page, user string) (*topic, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.streams >= mostStreams || h.users[user] >= mostOfOne {
		return nil, false
	}
	h.streams++
	h.users[user]++
	t := h.topics[p.Path]
	if t == nil {
		ctx, stop := context.WithCancel(context.Background())
		t = &topic{stop: stop, fragments: map[string]drawn{}, changed: make(chan struct{})}
		h.topics[p.Path] = t
		go h.draw(ctx, p, t)
	}
	t.viewers++
	return t, true
}

func (h *hub) leave(p *Page, user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams--
	if h.users[user]--; h.users[user] == 0 {
		delete(h.users, user)
	}
	t := h.topics[p.Path]
	if t.viewers--; t.viewers == 0 {
		t.stop()
		delete(h.topics, p.Path)
	}
}

// draw draws the page's fragments until ctx ends.
func (h *hub) draw(ctx context.Context, p *Page, t *topic) {
	ticker := time.NewTicker(liveEvery)
	defer ticker.Stop()
	for {
		drawing, cancel := context.WithTimeout(ctx, drawTime)
		fresh := h.site.fragments(drawing, p)
		cancel()
		h.mu.Lock()
		changed := false
		for name, html := range fresh {
			if t.fragments[name].html != html {
				t.fragments[name] = drawn{html, t.round + 1}
				changed = true
			}
		}
		if changed {
			t.round++
			close(t.changed)
			t.changed = make(chan struct{})
		}
		h.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-h.done:
			return
		case <-ticker.C:
		}
	}
}

// fragments draws all fragments of a page. One that fails is missing.
func (s *Site) fragments(ctx context.Context, p *Page) map[string]string {
	all := make(map[string]string, len(p.Live))
	for name, get := range p.Live {
		html, err := s.fragment(ctx, p, name, get)
		switch {
		case err == nil:
			all[name] = html
		case ctx.Err() == nil:
			s.Log.Debug("a fragment of the console cannot be drawn", "page", p.Path, "fragment", name, "error", err)
		}
	}
	return all
}

// fragment draws one. A panic is logged and ends nothing else: pages of hamlet up are drawn in
// the process that learns and scores.
func (s *Site) fragment(ctx context.Context, p *Page, name string, get Fragment) (html string, err error) {
	defer func() {
		if what := recover(); what != nil {
			s.Log.Error("drawing a fragment of the console panicked", "page", p.Path, "fragment", name,
				"panic", what, "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	data, err := get(ctx)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := p.Templates.execute(&b, name, access.User{Role: p.Role}, s.Now(), data); err != nil {
		return "", err
	}
	return b.String(), nil
}

var errPanicked = errors.New("it panicked")

// since returns the fragments that changed after a round.
func (h *hub) since(t *topic, round int) (fragments map[string]string, now int, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, d := range t.fragments {
		if d.round > round {
			if fragments == nil {
				fragments = map[string]string{}
			}
			fragments[name] = d.html
		}
	}
	return fragments, t.round, t.changed
}

// live streams the fragments of a page as server-sent events: an event "fragments" is a JSON
// object of a fragment's name to its HTML.
func (s *Site) live(w http.ResponseWriter, r *http.Request) {
	var p *Page
	for i := range s.pages {
		if s.pages[i].Path == r.URL.Query().Get("page") && len(s.pages[i].Live) > 0 {
			p = &s.pages[i]
		}
	}
	user := access.FromContext(r.Context())
	switch {
	case p == nil:
		http.Error(w, "this page has no stream of events", http.StatusNotFound)
		return
	case !user.May(p.Role):
		http.Error(w, "this needs the role "+p.Role.String(), http.StatusForbidden)
		return
	}
	t, ok := s.hub.enter(p, user.Name)
	if !ok {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many open pages; this one shows what it had", http.StatusServiceUnavailable)
		return
	}
	defer s.hub.leave(p, user.Name)
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		s.Log.Debug("a stream of events cannot have its own deadline", "error", err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	send := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(liveWrite)) // where it has none, the server's holds
		if _, err := w.Write([]byte(text)); err != nil {
			return false
		}
		return control.Flush() == nil
	}
	if !send(": hamlet\nretry: 5000\n\n") {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	round := 0
	for {
		fragments, now, changed := s.hub.since(t, round)
		if round = now; len(fragments) > 0 {
			text, err := json.Marshal(fragments)
			if err != nil || !send(fmt.Sprintf("event: fragments\ndata: %s\n\n", text)) {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.hub.done:
			return
		case <-changed:
		case <-beat.C:
			if !send(": \n\n") {
				return
			}
		}
	}
}
