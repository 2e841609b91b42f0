// Package audit is the page Audit of the console: what its users did, the newest first. An
// action has two lines in the stream HAMLET_AUDIT, and one row here.
package audit

import (
	"context"
	"embed"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/nats"
)

//go:embed audit.html
var files embed.FS

var templates = page.Parse(files, "audit.html")

// A Reader returns the newest lines of the audit, at most n, that were written since a time
// (zero: all), the newest first, and how many messages on the way are no lines. *nats.Audit
// is one.
type Reader interface {
	Read(ctx context.Context, n int, since time.Time) (lines []stream.AuditEntry, bad int, err error)
}

const (
	path     = "/audit"
	title    = "Audit"
	newest   = 200 // lines
	patience = 5 * time.Second
)

// Page returns the page. It is for those who may act.
func Page(site *page.Site, reader Reader) page.Page {
	return page.Page{
		Path: path, Title: title, Role: access.Operate, Templates: templates,
		Handlers: map[string]http.Handler{"GET " + path: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), patience)
			defer cancel()
			var v view
			lines, bad, err := reader.Read(ctx, newest, time.Time{})
			switch {
			case errors.Is(err, nats.ErrNoServer):
				v.Problem = "NATS cannot be reached, so the audit cannot be shown. Nothing can be done in the console meanwhile."
			case err != nil:
				v.Problem = "The audit cannot be shown: " + err.Error() + "."
			}
			v.Rows, v.Bad, v.More = rows(lines), bad, len(lines) == newest
			site.Render(w, r, templates, http.StatusOK, title, v)
		})},
	}
}

// A view is what the page shows.
type view struct {
	Problem string // a sentence
	Rows    []row
	Bad     int  // messages that are no lines
	More    bool // there are older lines
}

// A row is one action.
type row struct {
	stream.AuditEntry
	Ended  time.Time // zero: no outcome is known
	Began  time.Time // zero: the line is older than those that were read
	Failed string    // why
	Detail []detail
}

// Known reports whether what came of the action is known.
func (r *row) Known() bool { return !r.Ended.IsZero() }

type detail struct{ Name, Value string }

// rows joins the two lines of an action. Lines come the newest first, and rows stand where
// their newest line does.
func rows(lines []stream.AuditEntry) []row {
	var all []row
	at := map[string]int{}
	for _, e := range lines {
		i, ok := at[e.ID]
		if !ok {
			i = len(all)
			at[e.ID] = i
			all = append(all, newRow(e))
		}
		if e.Outcome == stream.AuditIntended {
			all[i].Began = e.Time
			continue
		}
		all[i].Ended = e.Time
		all[i].Failed, _ = strings.CutPrefix(e.Outcome, stream.AuditFailed)
		if e.Outcome == stream.AuditDone {
			all[i].Failed = ""
		}
	}
	return all
}

func newRow(e stream.AuditEntry) row {
	r := row{AuditEntry: e}
	for _, name := range slices.Sorted(maps.Keys(e.Detail)) {
		r.Detail = append(r.Detail, detail{name, e.Detail[name]})
	}
	return r
}
