package review

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/operate/score"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/scorer"
	"hamlet/cmd/internal/service/worth"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

//go:embed review.html
var files embed.FS

var templates = page.Parse(files, "review.html")

// A Config says where the page finds messages, and who takes labels.
type Config struct {
	NATS *natsgo.Conn // with scorers and journal

	// Kept returns mail that was kept, by its identity. Its error wraps nats.ErrNotArchived where
	// there is none. It is nil where this console may not read kept mail.
	Kept func(ctx context.Context, identity string) (nats.ArchivedMail, error)

	Teacher Teacher // nil: labels cannot be given
	Ask     ingest.Asking

	Bound time.Duration // of the time for one page; zero: 5 s
}

const (
	title     = "Review"
	path      = "/review"
	mostRows  = 25 // messages that are shown as a list
	rounds    = 40 // of so many messages that are looked for, until one was kept
	tried     = 5  // messages that are asked about again for one page
	mostNames = 8  // reasons that are shown
)

// Page returns the page Review.
func Page(site *page.Site, cfg Config) page.Page {
	if cfg.Bound == 0 {
		cfg.Bound = 5 * time.Second
	}
	h := &handler{site: site, cfg: cfg, today: tally{seen: map[string]*given{}}}
	h.reader = NewReader(cfg.NATS, site.Model, Window)
	h.reader.OnLabel, h.reader.Ask = h.today.learnt, cfg.Ask
	return page.Page{
		Path: path, Title: title, Role: access.Label, Templates: templates,
		Handlers: map[string]http.Handler{
			"GET " + path:  http.HandlerFunc(h.get),
			"POST " + path: http.HandlerFunc(h.post),
		},
		Live: map[string]page.Fragment{"counts": h.counts},
	}
}

type handler struct {
	site    *page.Site
	cfg     Config
	reader  *Reader
	skipped Skips
	missing absent
	today   tally
}

// A view is what the page shows.
type view struct {
	Problem string // why there is nothing, or not all; a sentence
	Counts  counts
	Message *message // nil: none can be shown
	Asked   bool     // the message was asked for by its identity
	Hint    string   // why no message can be shown; a sentence
	CanSay  bool     // labels can be given
	Rows    []row
	Partial bool // the journal was not read to its end
}

// A row is a message of the list.
type row struct {
	Item
	Share float64 // of the highest worth
}

// A message is one that is shown.
type message struct {
	Message
	ID string

	Item Item // what the journal says; its ID is empty if that is nothing

	Fresh   *stream.Verdict // what the served model says now; nil if no scorer answered
	Problem string          // why there is no fresh answer
	Reasons []stream.Reason // of Fresh, the largest
}

// get answers GET /review: the first message of the queue, or that which ?id= names.
func (h *handler) get(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), h.cfg.Bound)
	defer cancel()
	v := view{CanSay: h.cfg.Teacher != nil}
	status := http.StatusOK
	id := r.URL.Query().Get("id")
	switch {
	case id != "" && !identityForm().MatchString(id):
		status, v.Problem = http.StatusBadRequest, "This is not the identity of a mail: 32 digits of 0-9 and a-f."
	default:
		reading, stop := context.WithTimeout(ctx, h.cfg.Bound/2)
		if err := h.reader.Refresh(reading); err != nil {
			v.Problem = page.Away(err)
		}
		v.Partial = reading.Err() != nil
		stop()
		h.fill(ctx, &v, id, access.FromContext(r.Context()))
	}
	v.Counts = h.figures()
	w.Header().Set("Cache-Control", "no-store") // it holds mail
	h.site.Render(w, r, templates, status, title, &v)
}

func (h *handler) fill(ctx context.Context, v *view, id string, u access.User) {
	skipped := h.skipped.Of(u)
	if id != "" {
		v.Asked = true
		item, _ := h.reader.Item(id)
		v.Message, v.Hint = h.message(ctx, &item, id)
		return
	}
	if h.cfg.Kept != nil {
		known := -1 // messages that were not kept
		for range rounds {
			missing := h.missing.all()
			if len(missing) == known {
				break
			}
			known = len(missing)
			best, _ := h.reader.Best(mostRows, h.reader.Since(), skipped, missing)
			v.Message, v.Hint = h.first(ctx, best)
			if v.Message != nil || v.Hint != notKept || ctx.Err() != nil {
				break
			}
		}
	}
	var missing map[string]bool
	if v.Message != nil {
		missing = h.missing.all()
	}
	best, _ := h.reader.Best(mostRows, h.reader.Since(), skipped, missing)
	most := 1e-300
	for i := range best {
		most = max(most, best[i].Worth)
	}
	for i := range best {
		v.Rows = append(v.Rows, row{best[i], best[i].Worth / most})
	}
	if v.Message == nil && v.Hint == "" {
		v.Hint = notKept
	}
}

// first returns the first of the messages that was kept and leaves something to learn. Without
// one, hint says why; it is empty if there are no messages.
func (h *handler) first(ctx context.Context, best []Item) (first *message, hint string) {
	asked := 0
	for i := range best {
		m, why := h.message(ctx, &best[i], best[i].ID)
		if m == nil {
			if hint = why; hint != notKept {
				return nil, hint
			}
			if h.site.Now().Sub(best[i].Time) > time.Minute { // mail is stored a little later
				h.missing.add(best[i].ID)
			}
			continue
		}
		if asked++; asked == tried || i+1 == len(best) || best[i].Asked || !h.settled(m, &best[i+1]) {
			return m, ""
		}
		first = m // if no other was kept
	}
	return first, hint
}

// settled reports whether the newer answer about a message leaves less to learn than half of what
// the next one promises. The queue takes the worth of the newer answer.
func (h *handler) settled(m *message, next *Item) bool {
	if m.Fresh == nil || m.Item.ID == "" {
		return false
	}
	p, lo, hi := m.Fresh.P, m.Fresh.Interval[0], m.Fresh.Interval[1]
	h.reader.Revalue(m.ID, p, lo, hi)
	return worth.Of(p, lo, hi) < next.Worth/2
}

const notKept = "None of these messages was kept, so none can be shown or labelled here."

// message reads a kept message and asks about it. Without it, hint says why.
func (h *handler) message(ctx context.Context, item *Item, id string) (m *message, hint string) {
	if h.cfg.Kept == nil {
		return nil, notKept
	}
	kept, err := h.cfg.Kept(ctx, id)
	switch {
	case errors.Is(err, nats.ErrNotArchived):
		return nil, notKept
	case err != nil:
		return nil, page.Doing("The kept message cannot be read", err)
	}
	m = &message{Message: Read(kept.Message), ID: id, Item: *item}
	verdict, err := score.Ask(ctx, h.cfg.NATS, h.site.Model, questions.Question{
		Body: kept.Message, ContentType: questions.Mail, Explain: true, Tenant: kept.Tenant, Door: scorer.Console,
	})
	if err != nil {
		m.Problem = page.Away(err)
		return m, ""
	}
	m.Fresh, m.Reasons = &verdict, verdict.Reasons[:min(len(verdict.Reasons), mostNames)]
	return m, ""
}

// What a button says.
const skip = "skip"

// post answers POST /review: spam, ham, or skip.
func (h *handler) post(w http.ResponseWriter, r *http.Request) {
	id, what := r.FormValue("id"), r.FormValue("label")
	label, err := stream.ParseLabel(what)
	u := access.FromContext(r.Context())
	switch {
	case !identityForm().MatchString(id), what != skip && (err != nil || label == stream.Unlabelled):
		h.site.Fail(w, r, http.StatusBadRequest, "A message is spam, ham, or skipped. This form said something else.")
		return
	case what == skip:
		h.skipped.Add(u, id)
		http.Redirect(w, r, path, http.StatusSeeOther)
		return
	}
	h.site.Act(w, r, page.Action{Name: "label", Target: id, Detail: map[string]string{"label": label.String()}},
		func(ctx context.Context) (string, error) {
			return h.label(ctx, u, id, label)
		}, path)
}

// label teaches what a user says of a message.
func (h *handler) label(ctx context.Context, u access.User, id string, label stream.Label) (notice string, err error) {
	switch {
	case h.cfg.Teacher == nil:
		return "", errors.New("labels go to Kafka, and this console has none: start it with --kafka")
	case h.cfg.Kept == nil:
		return "", errors.New("this console reads no kept mail, and a label needs its message")
	}
	m, err := h.cfg.Kept(ctx, id)
	if err != nil {
		return "", fmt.Errorf("a label needs its message: %w", err)
	}
	source := Source(u.Name)
	if err := Teach(ctx, h.cfg.Teacher, &m, label, source); err != nil {
		return "", err
	}
	h.reader.Labelled(id)
	h.today.add(id, label, h.site.Now())
	return fmt.Sprintf("%s is %s. Said by %s.", id[:8], label, page.Visible(source)), nil
}

// Source returns the source of a user's labels. No source is an address: where the name is one,
// its hash stands for it, as in the journal.
func Source(user string) string { return sourcePrefix + stream.Unaddressed(user) }

const sourcePrefix = "console:"
