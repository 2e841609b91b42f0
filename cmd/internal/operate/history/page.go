package history

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/report"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream/nats"
)

//go:embed history.html
var files embed.FS

var templates = page.Parse(files, "history.html")

// A Config says where the journal stands.
type Config struct {
	NATS  *natsgo.Conn
	Bound time.Duration // of one search; zero: 5 s
}

const (
	title      = "History"
	mostRows   = 50      // of a page
	searches   = 2       // at once; others wait
	pageJoined = 200_000 // messages that the figures join: some 20 MB
	mostValue  = 1000    // bytes of a field of the form
)

// Page returns the page History.
func Page(site *page.Site, cfg Config) page.Page {
	if cfg.Bound == 0 {
		cfg.Bound = 5 * time.Second
	}
	h := &handler{site: site, cfg: cfg, turn: make(chan struct{}, searches)}
	return page.Page{
		Path: "/history", Title: title, Role: access.Look, Templates: templates,
		Handlers: map[string]http.Handler{"GET /history": h},
	}
}

type handler struct {
	site *page.Site
	cfg  Config
	turn chan struct{} // holds one token for each search under way
}

// A view is what the page shows.
type view struct {
	Form    form
	Problem string // why there is nothing, or not all; a sentence
	Model   string

	Searched bool
	Found    Found
	Older    string // address; empty: nothing is older
	Newest   string // address; empty: these are the newest

	Figures       *report.Table // what labels say; nil: they were not asked for
	Expected      *report.Table // errors that are expected without labels
	FiguresURL    string
	FiguresUntil  time.Time // zero: they are of all lines
	FiguresBroken string    // why there are none; a sentence
}

// ServeHTTP answers GET /history.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := view{Model: h.site.Model}
	status := http.StatusOK
	var err error
	if v.Form, err = parseForm(r.URL.Query(), h.site.Now()); err != nil {
		status, v.Problem = http.StatusBadRequest, page.Sentence(err)
	} else {
		h.search(r.Context(), &v)
	}
	h.site.Render(w, r, templates, status, title, &v)
}

// search reads the journal, and the figures if they are wanted.
func (h *handler) search(ctx context.Context, v *view) {
	f := &v.Form.Filter
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Bound)
	defer cancel()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		v.Problem = "Others are searching the journal. Try again in a moment."
		return
	}
	var found Found
	var figures Figures
	var figuresErr error
	var all errgroup.Group
	all.Go(func() (err error) {
		found, err = Read(ctx, h.cfg.NATS, h.site.Model, f, mostRows, v.Form.before)
		return err
	})
	if v.Form.Figures {
		all.Go(func() error {
			figures, figuresErr = ReadFigures(ctx, h.cfg.NATS, h.site.Model, f, pageJoined)
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		v.Problem = page.Away(err)
		return
	}
	v.Searched, v.Found = true, found
	if (found.Older != nats.JournalPosition{}) {
		v.Older = v.Form.address(found.Older, v.Form.Figures)
	}
	if (v.Form.before != nats.JournalPosition{}) {
		v.Newest = v.Form.address(nats.JournalPosition{}, v.Form.Figures)
	}
	switch {
	case figuresErr != nil:
		v.FiguresBroken = page.Away(figuresErr)
	case v.Form.Figures:
		v.Figures, v.Expected = tablesOf(figures.Figures)
		if figures.Stopped {
			v.FiguresUntil = figures.Until
		}
	default:
		v.FiguresURL = v.Form.address(v.Form.before, true) + "#figures"
	}
}

// A form is what the reader asks for. Filter.Since is what Since says.
type form struct {
	Filter
	Since   string
	Figures bool

	before nats.JournalPosition
}

// fields are the texts of a form by their names in an address.
func (f *form) fields() map[string]*string {
	return map[string]*string{"id": &f.ID, "message_id": &f.MessageID, "verdict": &f.Verdict, "door": &f.Door,
		"tenant": &f.Tenant, "label": &f.Label, "since": &f.Since}
}

func parseForm(q url.Values, now time.Time) (f form, err error) {
	for name, value := range f.fields() {
		if *value = strings.TrimSpace(q.Get(name)); len(*value) > mostValue {
			*value, err = "", fmt.Errorf("a field has more than %d bytes", mostValue)
		}
	}
	if err != nil {
		return f, err
	}
	f.Figures = q.Get("figures") != ""
	if at := q.Get("before"); at != "" {
		if f.before, err = ParsePlace(at); err != nil {
			return f, errors.New("the link to older decisions is broken; search again")
		}
	}
	if f.Filter.Since, err = cli.Since(f.Since, now); err != nil {
		return f, fmt.Errorf("since: %q is neither a duration such as 24h nor a time such as 2026-11-20T10:00:00Z", f.Since)
	}
	return f, f.check()
}

// Any reports whether anything is asked for but the newest.
func (f *form) Any() bool {
	for _, value := range f.fields() {
		if *value != "" {
			return true
		}
	}
	return false
}

// address returns that of the same search from a place on.
func (f *form) address(before nats.JournalPosition, figures bool) string {
	q := url.Values{}
	for name, value := range f.fields() {
		if *value != "" {
			q.Set(name, *value)
		}
	}
	if (before != nats.JournalPosition{}) {
		q.Set("before", FormatPlace(before))
	}
	if figures {
		q.Set("figures", "1")
	}
	if len(q) == 0 {
		return "/history"
	}
	return "/history?" + q.Encode()
}
