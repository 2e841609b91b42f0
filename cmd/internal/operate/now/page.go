package now

import (
	"context"
	"embed"
	"net/http"

	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
)

//go:embed now.html
var files embed.FS

var templates = page.Parse(files, "now.html")

const title = "Now"

// Page returns the page Now. Somebody runs the feed.
func Page(site *page.Site, f *Feed) page.Page {
	look := func(ctx context.Context) (any, error) { return newView(f.Look(ctx)), nil }
	live := map[string]page.Fragment{}
	for _, name := range fragments {
		live[name] = look
	}
	show := func(w http.ResponseWriter, r *http.Request) {
		site.Render(w, r, templates, http.StatusOK, title, newView(f.Look(r.Context())))
	}
	return page.Page{
		Path: "/", Title: title, Role: access.Look, Templates: templates,
		Handlers: map[string]http.Handler{"GET /{$}": http.HandlerFunc(show)},
		Live:     live,
	}
}

// fragments are the names of templates that change.
var fragments = []string{"tiles", "alarms", "verdicts", "doors", "quality", "model"}
