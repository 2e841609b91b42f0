package doubtful

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/operate/review"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream/nats"
)

//go:embed doubtful.html
var files embed.FS

var templates = page.Parse(files, "doubtful.html")

// A Config says where the page finds doubtful labels, and who takes what is said of them.
type Config struct {
	NATS  *natsgo.Conn // with the journal
	Judge Judge        // without Logs nothing can be said; Kept may be nil

	Bound time.Duration // of the time for one page; zero: 5 s
}

const (
	title    = "Doubtful"
	path     = "/doubtful"
	mostRows = 50 // labels that are shown as a list
)

// Page returns the page Doubtful.
func Page(site *page.Site, cfg Config) page.Page {
	if cfg.Bound == 0 {
		cfg.Bound = 5 * time.Second
	}
	h := &handler{site: site, cfg: cfg, reader: NewReader(cfg.NATS, site.Model, Window)}
	return page.Page{
		Path: path, Title: title, Role: access.Label, Templates: templates,
		Handlers: map[string]http.Handler{
			"GET " + path:  http.HandlerFunc(h.get),
			"POST " + path: http.HandlerFunc(h.post),
		},
		Live: map[string]page.Fragment{"groups": h.groups},
	}
}

type handler struct {
	site    *page.Site
	cfg     Config
	reader  *Reader
	skipped review.Skips
}

// A view is what the page shows.
type view struct {
	Problem string // why there is nothing, or not all; a sentence
	Partial bool   // the journal was not read to its end
	Groups  []Group
	Item    *Item // nil: there is none
	Message *review.Message
	Hint    string // why the message cannot be shown; a sentence
	CanSay  bool   // something can be said of labels
	Rows    []Item
}

// get answers GET /doubtful: the most doubtful label, or that of the message which ?id= names.
func (h *handler) get(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), h.cfg.Bound)
	defer cancel()
	v := view{CanSay: h.cfg.Judge.Logs != nil}
	reading, stop := context.WithTimeout(ctx, h.cfg.Bound/2)
	all, err := h.reader.Refresh(reading)
	stop()
	if v.Partial = !all; err != nil {
		v.Problem, v.Partial = page.Away(err), false
	}
	items := h.reader.Items(Filter{})
	v.Groups = Groups(items)
	skipped := h.skipped.Of(access.FromContext(r.Context()))
	id := r.URL.Query().Get("id")
	for i := range items {
		if item := &items[i]; id == "" && !skipped[item.ID] || item.ID == id {
			v.Item = item
			break
		}
	}
	if v.Item != nil {
		v.Message, v.Hint = h.message(ctx, v.Item)
	}
	v.Rows = items[:min(len(items), mostRows)]
	w.Header().Set("Cache-Control", "no-store") // it holds mail
	h.site.Render(w, r, templates, http.StatusOK, title, &v)
}

// message returns the message of a label, if it is kept. Without it, hint says why.
func (h *handler) message(ctx context.Context, item *Item) (m *review.Message, hint string) {
	const notKept = "The message was not kept, so it cannot be shown here."
	if h.cfg.Judge.Kept == nil {
		return nil, notKept
	}
	kept, err := h.cfg.Judge.Kept(ctx, item.ID)
	switch {
	case errors.Is(err, nats.ErrNotArchived):
		return nil, notKept
	case err != nil:
		return nil, page.Doing("The kept message cannot be read", err)
	}
	text := review.Read(kept.Message)
	return &text, ""
}

// groups are the fragment that changes while somebody looks.
func (h *handler) groups(ctx context.Context) (any, error) {
	if _, err := h.reader.Refresh(ctx); err != nil {
		return nil, err
	}
	return Groups(h.reader.Items(Filter{})), nil
}

// What a button says.
const (
	sayConfirm = "confirm"
	sayTurn    = "turn"
	saySkip    = "skip"
)

// post answers POST /doubtful: confirm, turn or skip.
func (h *handler) post(w http.ResponseWriter, r *http.Request) {
	id, what := r.FormValue("id"), r.FormValue("answer")
	u := access.FromContext(r.Context())
	switch {
	case !identityForm().MatchString(id), what != sayConfirm && what != sayTurn && what != saySkip:
		h.site.Fail(w, r, http.StatusBadRequest,
			"A label is confirmed, turned around, or skipped. This form said something else.")
		return
	case what == saySkip:
		h.skipped.Add(u, id)
		http.Redirect(w, r, path, http.StatusSeeOther)
		return
	}
	h.site.Act(w, r, page.Action{Name: "doubtful", Target: id, Detail: map[string]string{"answer": what}},
		func(ctx context.Context) (string, error) { return h.say(ctx, u, id, what == sayConfirm) }, path)
}

// say does what a user says of a label. It must be in the list: who may label overrules no other.
func (h *handler) say(ctx context.Context, u access.User, id string, right bool) (notice string, err error) {
	if h.cfg.Judge.Logs == nil {
		return "", errors.New("labels go to Kafka, and this console has none: start it with --kafka")
	}
	item, ok := h.reader.Item(id)
	if !ok {
		return "", errors.New("this message has no doubtful label any more")
	}
	source := review.Source(u.Name)
	if err := h.cfg.Judge.Say(ctx, &item, right, source); err != nil {
		return "", err
	}
	h.reader.Settle(id, h.site.Now())
	label := item.Label
	if !right {
		label = item.Other()
	}
	return fmt.Sprintf("%s is %s. Said by %s.", id[:8], label, page.Visible(source)), nil
}
