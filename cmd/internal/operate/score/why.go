package score

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/operate/history"
	"hamlet/cmd/internal/service/scorer"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/nats"
)

//go:embed why.html
var files embed.FS

var templates = page.Parse(files, "why.html")

// A Config says whom the page asks.
type Config struct {
	NATS *natsgo.Conn

	// Kept returns mail that was kept, by its identity. Its error wraps nats.ErrNotArchived where
	// there is none. It is nil where this console may not read kept mail.
	Kept func(ctx context.Context, identity string) (nats.ArchivedMail, error)

	Bound time.Duration // of one question; zero: 5 s
}

const (
	title = "Why"

	// Messages in memory at once, each of some 26 MB; others are refused.
	asking    = 6 // that are sent, or asked about
	looking   = 4 // that are looked for
	mostOfOne = 2 // of one user, of either
)

// Page returns the page Why.
func Page(site *page.Site, cfg Config) page.Page {
	if cfg.Bound == 0 {
		cfg.Bound = 5 * time.Second
	}
	h := &handler{site: site, cfg: cfg, asking: newQuota(asking, mostOfOne), looking: newQuota(looking, mostOfOne)}
	return page.Page{
		Path: "/why", Title: title, Role: access.Look, Templates: templates, Form: mostForm,
		Handlers: map[string]http.Handler{"GET /why": http.HandlerFunc(h.find), "POST /why": http.HandlerFunc(h.ask)},
	}
}

type handler struct {
	site            *page.Site
	cfg             Config
	asking, looking *quota // of POST and of GET
}

// A view is what the page shows.
type view struct {
	ID      string // that was looked for
	Problem string // why something is missing; a sentence

	Entry    *history.Entry // the journal's line about it; nil: none
	Searched bool           // the journal was read to its end, or to the line
	Content  string         // why the message itself is missing; a sentence
	KeptAt   time.Time      // zero: the message was pasted
	Answer   *answer
	Message  *message
}

// find answers GET /why, with the journal's line and the kept message of an identity.
func (h *handler) find(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), h.cfg.Bound)
	defer cancel()
	id := strings.TrimSpace(r.URL.Query().Get("id"))
	v, status := view{ID: id}, http.StatusOK
	switch {
	case id == "":
	case len(id) > stream.MaxIDLength:
		v.ID, status = "", http.StatusBadRequest
		v.Problem = fmt.Sprintf("An identity or the id of a request has at most %d bytes.", stream.MaxIDLength)
	default:
		if !h.look(ctx, &v, r) {
			status, v.Problem = http.StatusServiceUnavailable, busy
		}
	}
	h.render(w, r, status, &v)
}

// look looks for v.ID. It reports false where there is no place. The place is free before the
// page is sent, which a browser may read slowly.
func (h *handler) look(ctx context.Context, v *view, r *http.Request) bool {
	u := access.FromContext(r.Context())
	if !h.looking.take(u.Name) {
		return false
	}
	defer h.looking.free(u.Name)
	h.journal(ctx, v, r.URL.Query().Get("at"))
	h.kept(ctx, v, u)
	return true
}

const busy = "You or others are asking about as many messages as the console reads at once. Try again in a moment."

// journal looks for the newest line about an id. at is where it stands, if a link says so.
func (h *handler) journal(ctx context.Context, v *view, at string) {
	half, cancel := context.WithTimeout(ctx, h.cfg.Bound/2)
	defer cancel()
	var before nats.JournalPosition
	if line, err := history.ParsePlace(at); err == nil {
		before = nats.JournalPosition{Sequence: line.Sequence, Line: line.Line + 1}
	}
	found, err := history.Read(half, h.cfg.NATS, h.site.Model, &history.Filter{ID: v.ID}, 1, before)
	switch {
	case err != nil:
		v.Problem = page.Away(err)
	case len(found.Entries) > 0:
		v.Entry, v.Searched = &found.Entries[0], true
	case found.Stopped:
		v.Problem = "The journal could not be searched to its end in time. hamlet history --id " +
			page.Clip(page.Visible(v.ID), 64) + " has no limit of time."
	default:
		v.Searched = true
	}
}

// kept asks about the kept message of an identity, if u may see it.
func (h *handler) kept(ctx context.Context, v *view, u access.User) {
	switch {
	case !u.May(access.Label):
		v.Content = "To see a message that was kept needs the role label. You have: " + u.Role.String() + "."
		return
	case h.cfg.Kept == nil:
		v.Content = notKept
		return
	}
	m, err := h.cfg.Kept(ctx, v.ID)
	switch {
	case errors.Is(err, nats.ErrNotArchived):
		v.Content = notKept
		return
	case err != nil:
		v.Content = page.Doing("The kept message cannot be read", err)
		return
	}
	v.KeptAt = m.Time
	h.explain(ctx, v, m.Tenant, &stream.Body{Kind: stream.Mail, Mail: m.Message})
}

const notKept = "The message itself was not kept, or is kept no longer. Scorers keep mail with --keep-mail DAYS. " +
	"You can paste it below."

// explain asks a scorer about a message, and shows both. A message that no scorer answers about
// is shown without colours.
func (h *handler) explain(ctx context.Context, v *view, tenant string, body *stream.Body) {
	verdict, err := Explain(ctx, h.cfg.NATS, h.site.Model, tenant, scorer.Console, body)
	if err != nil {
		v.Problem = page.Away(err)
		if errors.Is(err, ErrBody) {
			return
		}
	} else {
		v.Answer = newAnswer(&verdict, tenant, h.info(ctx))
	}
	m, err := newMessage(tenant, body, verdict.Words)
	if err != nil {
		v.Problem = page.Sentence(err)
		return
	}
	v.Message = &m
}

// info returns what a scorer says of its thresholds; nil if none says so in time.
func (h *handler) info(ctx context.Context) *stream.Info {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	info, err := Info(ctx, h.cfg.NATS, h.site.Model)
	if err != nil {
		return nil
	}
	return &info
}

func (h *handler) render(w http.ResponseWriter, r *http.Request, status int, v *view) {
	w.Header().Set("Cache-Control", "no-store") // it may hold mail
	h.site.Render(w, r, templates, status, title, v)
}
