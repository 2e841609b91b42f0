// Package history is the page History of the console: the journal of decisions with filters, the
// newest first, and how right the answers were. It shows what `hamlet history` prints, by the
// same code.
package history

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/console/access"
	"hamlet/cmd/internal/console/page"
	"hamlet/cmd/internal/history"
	"hamlet/stream"
	"hamlet/stream/nats"
)

//go:embed history.html
var files embed.FS

var templates = page.Parse(files, "history.html")

// A Config says where the journal stands.
type Config struct {
	NATS  *natsgo.Conn // nil: nowhere
	Model string
	Bound time.Duration // of one search; zero: 5 s
}

const (
	title      = "History"
	rows       = 50      // of a page
	searches   = 2       // at once; others wait
	mostJoined = 200_000 // messages that the figures join: some 30 MB
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
	Page     history.Page
	Rows     []row
	Older    string // address; empty: nothing is older
	Newest   string // address; empty: these are the newest

	Figures       []figure
	FiguresURL    string
	FiguresUntil  time.Time // zero: they are of all lines
	FiguresBroken string    // why there are none; a sentence
}

// ServeHTTP answers GET /history.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := view{Model: h.cfg.Model}
	status := http.StatusOK
	var filter history.Filter
	var err error
	if v.Form, err = parseForm(r.URL.Query()); err == nil {
		filter, err = v.Form.filter(h.site.Now())
	}
	switch {
	case err != nil:
		status, v.Problem = http.StatusBadRequest, page.Visible(sentence(err))
	case h.cfg.NATS == nil:
		v.Problem = "This console has no NATS, where the journal stands. Start it with --nats."
	default:
		h.search(r.Context(), &v, &filter)
	}
	h.site.Render(w, r, templates, status, title, &v)
}

// search reads the journal, and the figures if they are wanted.
func (h *handler) search(ctx context.Context, v *view, f *history.Filter) {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Bound)
	defer cancel()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		v.Problem = "Others are searching the journal. Try again in a moment."
		return
	}
	var found history.Page
	var figures history.Figures
	var figuresErr error
	var all errgroup.Group
	all.Go(func() (err error) {
		found, err = history.Read(ctx, h.cfg.NATS, h.cfg.Model, f, rows, v.Form.before)
		return err
	})
	if v.Form.Figures {
		all.Go(func() error {
			figures, figuresErr = history.ReadFigures(ctx, h.cfg.NATS, h.cfg.Model, f, mostJoined)
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		v.Problem = away(err)
		return
	}
	v.Searched, v.Page = true, found
	for i := range found.Entries {
		v.Rows = append(v.Rows, newRow(&found.Entries[i]))
	}
	if (found.Older != nats.JournalPlace{}) {
		v.Older = v.Form.address(found.Older, v.Form.Figures)
	}
	if (v.Form.before != nats.JournalPlace{}) {
		v.Newest = v.Form.address(nats.JournalPlace{}, v.Form.Figures)
	}
	switch {
	case figuresErr != nil:
		v.FiguresBroken = away(figuresErr)
	case v.Form.Figures:
		v.Figures = newFigures(figures.Figures)
		if figures.Stopped {
			v.FiguresUntil = figures.Until
		}
	default:
		v.FiguresURL = v.Form.address(v.Form.before, true) + "#figures"
	}
}

// away says why the journal cannot be read.
func away(err error) string {
	if errors.Is(err, nats.ErrNoServer) || errors.Is(err, natsgo.ErrConnectionClosed) || errors.Is(err, context.DeadlineExceeded) {
		return "NATS cannot be reached, and the journal stands there. Nothing is lost: scorers keep what they answer for a while. Load this page again."
	}
	return page.Visible(sentence(err))
}

// sentence returns an error as a sentence.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// A form is what the reader asks for.
type form struct {
	ID, MessageID, Verdict, Door, Tenant, Label, Since string
	Figures                                            bool

	before nats.JournalPlace
}

func parseForm(q url.Values) (form, error) {
	f := form{
		ID: q.Get("id"), MessageID: q.Get("message_id"), Verdict: q.Get("verdict"), Door: q.Get("door"),
		Tenant: q.Get("tenant"), Label: q.Get("label"), Since: q.Get("since"), Figures: q.Get("figures") != "",
	}
	for _, value := range []*string{&f.ID, &f.MessageID, &f.Verdict, &f.Door, &f.Tenant, &f.Label, &f.Since} {
		if *value = strings.TrimSpace(*value); len(*value) > mostValue {
			*value = ""
			return f, fmt.Errorf("a field has more than %d bytes", mostValue)
		}
	}
	if at := q.Get("before"); at != "" {
		sequence, line, _ := strings.Cut(at, "-")
		s, err1 := strconv.ParseUint(sequence, 10, 63)
		l, err2 := strconv.ParseUint(line, 10, 31)
		if err1 != nil || err2 != nil {
			return f, errors.New("the link to older decisions is broken; search again")
		}
		f.before = nats.JournalPlace{Sequence: s, Line: int(l)}
	}
	return f, nil
}

// filter returns what the form asks for.
func (f *form) filter(now time.Time) (history.Filter, error) {
	since, err := cli.Since(f.Since, now)
	if err != nil {
		return history.Filter{}, fmt.Errorf("since: %q is neither a duration such as 24h nor a time such as 2026-11-20T10:00:00Z", f.Since)
	}
	switch f.Verdict {
	case "", string(stream.DecideSpam), string(stream.DecideHam), string(stream.DecideUnsure):
	default:
		return history.Filter{}, fmt.Errorf("the verdict %q is not known: it is spam, ham or unsure", f.Verdict)
	}
	switch f.Label {
	case "", history.Labelled, history.Corrected:
	default:
		return history.Filter{}, fmt.Errorf("the label %q is none of %s and %s", f.Label, history.Labelled, history.Corrected)
	}
	if f.MessageID != "" && stream.MessageIDHash(f.MessageID) == "" {
		return history.Filter{}, fmt.Errorf("the Message-ID %q is empty", f.MessageID)
	}
	return history.Filter{ID: f.ID, MessageID: f.MessageID, Verdict: f.Verdict, Door: f.Door, Tenant: f.Tenant, Label: f.Label, Since: since}, nil
}

// Any reports whether anything is asked for but the newest.
func (f *form) Any() bool {
	return f.ID != "" || f.MessageID != "" || f.Verdict != "" || f.Door != "" || f.Tenant != "" || f.Label != "" || f.Since != ""
}

// address returns that of the same search from a place on.
func (f *form) address(before nats.JournalPlace, figures bool) string {
	q := url.Values{}
	for name, value := range map[string]string{
		"id": f.ID, "message_id": f.MessageID, "verdict": f.Verdict, "door": f.Door, "tenant": f.Tenant, "label": f.Label, "since": f.Since,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if (before != nats.JournalPlace{}) {
		q.Set("before", fmt.Sprintf("%d-%d", before.Sequence, before.Line))
	}
	if figures {
		q.Set("figures", "1")
	}
	if len(q) == 0 {
		return "/history"
	}
	return "/history?" + q.Encode()
}
