package model

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"time"

	"hamlet/cmd/internal/operate/now"
	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/show/chart"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/state"
)

// A Config says where the page finds what it shows.
type Config struct {
	Store   state.Store
	Look    func(context.Context) *now.Snapshot // of a Feed: the lag, and since when labels are known
	Matches func() []answered.Match             // of a Feed: the labelled answers
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
	kept  page.Shared[Kept]
	facts factsCache
	loss  qualityCache
}

// New returns the page Model of a site.
func New(site *page.Site, cfg Config) page.Page {
	p := &pages{Config: cfg, site: site}
	p.kept.Read, p.kept.Now, p.kept.Again, p.kept.Time = p.readKept, site.Now, keptFor, redisTime
	p.facts.load = p.loadFacts
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
			"state": func(ctx context.Context) (any, error) { s, _ := p.state(ctx, p.Look(ctx)); return s, nil },
		},
	}
}

// An overview is what the page shows.
type overview struct {
	State  stateView
	Rows   []row
	Quiet  string // why there is no log loss, as a sentence; empty: there is
	Since  time.Time
	Back   bool // there are versions to roll back to
	Events *chart.Chart
	Loss   *chart.Chart
}

// A row is a version.
type row struct {
	V          *Version
	Own, Since quality
}

// First and Second report whether the version is chosen to be compared.
func (s *overview) First(r row) bool  { return len(s.Rows) > 1 && r.V == s.Rows[1].V }
func (s *overview) Second(r row) bool { return r.V == s.Rows[0].V }

// A stateView is the fragment about the model.
type stateView struct {
	Away  string // why Redis says nothing, as a sentence
	None  bool   // The store keeps no version
	Model string

	Newest, Serves *Version // nil: it cannot be read
	Pinned         bool
	Lost           bool // the pinned version is lost
	Lag            int64
	LagAway        string   // why the lag is not known
	Answers        *Answers // another model that answers in its place; nil: none
}

// state asks Redis what there is. The lag is as it was seen.
func (p *pages) state(ctx context.Context, seen *now.Snapshot) (s stateView, kept Kept) {
	s.Model = p.site.Model
	kept, err := p.kept.Get(ctx)
	none := &NoneError{}
	switch {
	case errors.As(err, &none):
		s.None = true
		return s, kept
	case err != nil:
		s.Away = page.Sentence(fmt.Errorf("the store does not say which versions there are: %w", err))
		return s, kept
	}
	s.Answers, s.Pinned, s.Lost = kept.Answers, kept.Pinned != 0, kept.PinLost
	s.Newest, s.Serves = kept.Find(kept.Head), kept.Find(kept.Served)
	switch {
	case seen.Learnt.LagAway != "":
		s.LagAway = seen.Learnt.LagAway
	case !seen.Learnt.LagKnown:
		s.LagAway = "The lag is not known yet. Look again in a moment."
	default:
		s.Lag = seen.Learnt.Lag
	}
	return s, kept
}

func (p *pages) show(w http.ResponseWriter, r *http.Request) {
	data := &overview{}
	var kept Kept
	seen := p.Look(r.Context())
	data.State, kept = p.state(r.Context(), seen)
	if len(kept.Versions) > 0 && data.State.Away == "" {
		_, err := kept.Rollback()
		data.Back = err == nil
		p.describe(data, &kept.History, seen)
	}
	p.site.Render(w, r, modelTemplates, http.StatusOK, "Model", data)
}

func (p *pages) describe(data *overview, kept *History, seen *now.Snapshot) {
	now := p.site.Now()
	known := p.answers(seen)
	rows, loss := p.loss.get(now, p.site.Model, kept, known)
	for i := range kept.Versions {
		v := &kept.Versions[i]
		data.Rows = append(data.Rows, row{v, rows[v.Version].Own, rows[v.Version].Since})
	}
	data.Events, data.Loss, data.Since, data.Quiet = eventsChart(now, kept), loss, known.since, known.quiet
}
