// Package review is the page Review of the console: one message after the other whose label
// would teach most, to be called spam or ham. The queue is that of `hamlet review`.
//
// The page asks a scorer about each message that it shows, because the answer in the journal may
// be of an older model. If the newer answer leaves little to learn, it shows the next one.
package review

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/console/access"
	"hamlet/cmd/internal/console/page"
	"hamlet/cmd/internal/review"
	"hamlet/cmd/internal/scorer"
	"hamlet/stream"
	"hamlet/stream/nats"
)

//go:embed review.html
var files embed.FS

var templates = page.Parse(files, "review.html")

// A Config says where the page finds messages, and who takes labels.
type Config struct {
	NATS  *natsgo.Conn // with scorers and journal; nil: nowhere
	Model string

	// Kept returns mail that was kept, by its identity. Its error wraps nats.ErrNotKept where
	// there is none. It is nil where this console may not read kept mail.
	Kept func(ctx context.Context, identity string) (nats.KeptMail, error)

	Teacher review.Teacher // nil: labels cannot be given

	Bound time.Duration // of the time for one page; zero: 5 s
}

const (
	title     = "Review"
	path      = "/review"
	listed    = 25 // messages that are shown as a list
	rounds    = 40 // of so many messages that are looked for, until one was kept
	tried     = 5  // messages that are asked about again for one page
	mostForm  = 64 << 10
	mostNames = 8 // reasons that are shown
)

// Page returns the page Review.
func Page(site *page.Site, cfg Config) page.Page {
	if cfg.Bound == 0 {
		cfg.Bound = 5 * time.Second
	}
	h := &handler{site: site, cfg: cfg, skipped: skips{sessions: map[string]map[string]bool{}}, today: tally{seen: map[string]*given{}}}
	if cfg.NATS != nil {
		h.reader = review.NewReader(cfg.NATS, cfg.Model, review.Window)
		h.reader.OnLabel = h.today.learnt
	}
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
	reader  *review.Reader // nil without NATS
	skipped skips
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

// A row is a message of the list. Its texts are visible ones.
type row struct {
	review.Item
	Share float64 // of the worth of the first
}

// A message is one that is shown.
type message struct {
	review.Message
	ID string

	Item          review.Item // what the journal says; its ID is empty if that is nothing
	Verdict, Door string      // of Item, visible

	Fresh   *stream.Verdict // what the served model says now; nil if no scorer answered
	Problem string          // why there is no fresh answer
	Reasons []stream.Reason // of Fresh, the largest; their names are visible
}

var identityForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// get answers GET /review: the first message of the queue, or that which ?id= names.
func (h *handler) get(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), h.cfg.Bound)
	defer cancel()
	v := view{CanSay: h.cfg.Teacher != nil}
	status := http.StatusOK
	id := r.URL.Query().Get("id")
	switch {
	case h.reader == nil:
		v.Problem = "This console has no NATS, where scorers and the journal are. Start it with --nats."
	case id != "" && !identityForm.MatchString(id):
		status, v.Problem = http.StatusBadRequest, "This is no identity of a mail: 32 digits of 0-9 and a-f."
	default:
		reading, stop := context.WithTimeout(ctx, h.cfg.Bound/2)
		if err := h.reader.Refresh(reading); err != nil {
			v.Problem = away(err)
		}
		v.Partial = reading.Err() != nil
		stop()
		h.fill(ctx, &v, id, access.FromContext(r.Context()))
	}
	v.Counts = h.figures()
	w.Header().Set("Cache-Control", "no-store") // it holds mail
	h.site.Render(w, r, templates, status, title, &v)
}

// fill finds the message to show.
func (h *handler) fill(ctx context.Context, v *view, id string, u access.User) {
	skipped := h.skipped.of(u)
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
			best, _ := h.reader.Best(listed, h.reader.Since(), skipped, missing)
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
	best, _ := h.reader.Best(listed, h.reader.Since(), skipped, missing)
	for i := range best {
		one := row{best[i], best[i].Worth / max(best[0].Worth, 1e-300)}
		one.Verdict, one.Door, one.Tenant = stream.Decision(page.Visible(string(one.Verdict))), page.Visible(one.Door), page.Visible(one.Tenant)
		v.Rows = append(v.Rows, one)
	}
	if v.Message == nil && v.Hint == "" {
		v.Hint = notKept
	}
}

// first returns the first of the messages that was kept and leaves something to learn. Without
// one, hint says why; it is empty if there are no messages.
func (h *handler) first(ctx context.Context, best []review.Item) (first *message, hint string) {
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
		if asked++; asked == tried || i+1 == len(best) || !h.settled(m, &best[i+1]) {
			return m, ""
		}
		first = m // if no other was kept
	}
	return first, hint
}

// settled reports whether the newer answer about a message leaves less to learn than half of what
// the next one promises. The queue takes the worth of the newer answer.
func (h *handler) settled(m *message, next *review.Item) bool {
	if m.Fresh == nil || m.Item.ID == "" {
		return false
	}
	p, lo, hi := m.Fresh.P, m.Fresh.Interval[0], m.Fresh.Interval[1]
	h.reader.Revalue(m.ID, p, lo, hi)
	return review.Worth(p, lo, hi) < next.Worth/2
}

const notKept = "None of these messages was kept, so none can be shown or labelled here."

// message reads a kept message and asks about it. Without it, hint says why.
func (h *handler) message(ctx context.Context, item *review.Item, id string) (m *message, hint string) {
	if h.cfg.Kept == nil {
		return nil, notKept
	}
	kept, err := h.cfg.Kept(ctx, id)
	switch {
	case errors.Is(err, nats.ErrNotKept):
		return nil, notKept
	case err != nil:
		return nil, "The kept message cannot be read: " + clean(err) + "."
	}
	m = &message{Message: review.Read(kept.Message), ID: id, Item: *item, Verdict: page.Visible(string(item.Verdict)), Door: page.Visible(item.Door)}
	verdict, err := h.ask(ctx, &kept)
	if err != nil {
		m.Problem = away(err)
		return m, ""
	}
	m.Fresh = verdict
	for _, r := range verdict.Reasons[:min(len(verdict.Reasons), mostNames)] {
		r.Name = page.Visible(r.Name)
		m.Reasons = append(m.Reasons, r)
	}
	return m, ""
}

// ask asks a scorer about a kept message.
func (h *handler) ask(ctx context.Context, m *nats.KeptMail) (*stream.Verdict, error) {
	client, err := nats.NewClient(h.cfg.NATS, h.cfg.Model)
	if err != nil {
		return nil, err
	}
	verdicts, err := client.For(m.Tenant, scorer.Console).Score(ctx, m.Message, nats.TypeMail, true)
	switch {
	case err != nil:
		return nil, err
	case len(verdicts) != 1:
		return nil, errors.New("the scorer answers no single verdict")
	}
	return &verdicts[0], nil
}

// What a button says.
const skip = "skip"

// post answers POST /review: spam, ham, or skip.
func (h *handler) post(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	id, what := r.FormValue("id"), r.FormValue("label")
	label, err := stream.ParseLabel(what)
	u := access.FromContext(r.Context())
	switch {
	case !identityForm.MatchString(id), what != skip && (err != nil || label == stream.Unlabelled):
		h.site.Fail(w, r, http.StatusBadRequest, "A message is spam, ham, or skipped. This form said something else.")
		return
	case what == skip:
		h.skipped.add(u, id)
		http.Redirect(w, r, path, http.StatusSeeOther)
		return
	}
	h.site.Act(w, r, page.Action{Name: "label", Target: id, Detail: map[string]string{"label": label.String()}}, func(ctx context.Context) (string, error) {
		return h.label(ctx, u, id, label)
	}, path)
}

// label teaches what a user says of a message.
func (h *handler) label(ctx context.Context, u access.User, id string, label stream.Label) (notice string, err error) {
	switch {
	case h.cfg.Teacher == nil:
		return "", errors.New("labels go to Kafka, and this console has none: start it with --kafka")
	case h.cfg.Kept == nil || h.reader == nil:
		return "", errors.New("this console reads no kept mail, and a label needs its message")
	}
	m, err := h.cfg.Kept(ctx, id)
	if err != nil {
		return "", fmt.Errorf("a label needs its message: %w", err)
	}
	source := Source(u.Name)
	if err := review.Teach(ctx, h.cfg.Teacher, &m, label, source); err != nil {
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

// away says why nobody answers.
func away(err error) string {
	switch {
	case errors.Is(err, nats.ErrNoScorer):
		return "No scorer of this model is there to answer."
	case errors.Is(err, nats.ErrNoServer), errors.Is(err, natsgo.ErrConnectionClosed):
		return "NATS cannot be reached, and scorers and the journal are there. Load this page again."
	case errors.Is(err, context.DeadlineExceeded):
		return "There was no answer in time. Load this page again."
	}
	text := clean(err)
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// clean returns an error's text as a page shows it.
func clean(err error) string {
	const most = 300
	text := []rune(page.Visible(err.Error()))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
