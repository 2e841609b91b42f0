// Package model is the page Model of the console: which versions of a model Redis keeps, how
// right the answers were since each, what a version has learnt, and how two differ. Whoever
// operates pins a version here, rolls back and unpins.
//
// The figures are those of `hamlet model` (packages pinning and models) and of the journal of
// decisions (package answered). What a version has learnt is in its bytes: they are read only
// where somebody asks, and what was found is remembered.
package model

import (
	"context"
	"embed"
	"net/http"

	"hamlet/cmd/internal/answered"
	"hamlet/cmd/internal/console/access"
	"hamlet/cmd/internal/console/feed"
	"hamlet/cmd/internal/console/page"
	"hamlet/state/redis"
)

// A Config says where the page finds what it shows. A function that is nil has nothing to show.
type Config struct {
	Model string
	Store *redis.Store // nil: there is none

	Look    func(context.Context) *feed.Snapshot // of a Feed: the lag, and since when labels are known
	Matches func() []answered.Match              // of a Feed: the labelled answers
}

const path = "/model"

//go:embed model.html inside.html compare.html change.html
var files embed.FS

var (
	modelTemplates   = page.Parse(files, "model.html")
	insideTemplates  = page.Parse(files, "inside.html")
	compareTemplates = page.Parse(files, "compare.html")
	changeTemplates  = page.Parse(files, "change.html")
)

// A pages serves the page and those below it.
type pages struct {
	Config
	site  *page.Site
	kept  keptCache
	facts factsCache
	loss  qualityCache
}

// New returns the page Model of a site.
func New(site *page.Site, cfg Config) page.Page {
	p := &pages{Config: cfg, site: site}
	p.kept.read, p.facts.load = p.readKept, p.loadFacts
	return page.Page{
		Path: path, Title: "Model", Role: access.Look, Templates: modelTemplates,
		Handlers: map[string]http.Handler{
			"GET " + path:              http.HandlerFunc(p.show),
			"GET " + path + "/inside":  http.HandlerFunc(p.inside),
			"GET " + path + "/compare": http.HandlerFunc(p.compare),
			"GET " + path + "/change":  site.Allow(access.Operate, p.confirm),
			"POST " + path + "/change": site.Allow(access.Operate, p.change),
		},
		Live: map[string]page.Fragment{
			"state": func(ctx context.Context) (any, error) { s, _ := p.state(ctx, p.look(ctx)); return s, nil },
		},
	}
}
