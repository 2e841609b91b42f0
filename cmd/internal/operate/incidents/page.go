package incidents

import (
	"cmp"
	"context"
	"embed"
	"net/http"
	"net/url"
	"slices"
	"time"

	"hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/state"
	"hamlet/stream"
)

//go:embed *.html
var files embed.FS

var (
	listTemplates = page.Parse(files, "incidents.html")
	oneTemplates  = page.Parse(files, "incident.html")
)

const (
	listPath        = "/incidents"
	acknowledgePath = "/incidents/acknowledge"
)

// An Audit says who acknowledged which incident. *nats.Audit is one.
type Audit interface {
	Acknowledged(ctx context.Context) (map[string]stream.AuditEntry, error)
}

// A Config has what the pages read.
type Config struct {
	Log   *Log
	Audit Audit
	Store state.Store // of the site's model
}

// pages are what the handlers share.
type pages struct {
	Config
	site         *page.Site
	acknowledged *page.Shared[acknowledgements]
	saved        *page.Shared[*model.Derived[*facts]]
}

// Page returns the pages.
func Page(site *page.Site, cfg Config) page.Page {
	p := &pages{Config: cfg, site: site,
		acknowledged: newAcknowledged(cfg.Audit, site.Now), saved: model.Newest(cfg.Store, site.Now, factsOf)}
	return page.Page{
		Path: listPath, Title: "Incidents", Role: access.Look, Templates: listTemplates,
		Handlers: map[string]http.Handler{
			"GET " + listPath:           http.HandlerFunc(p.list),
			"GET " + listPath + "/{id}": http.HandlerFunc(p.one),
			"POST " + acknowledgePath:   site.Allow(access.Operate, p.acknowledge),
		},
		Live: map[string]page.Fragment{"incidents": func(ctx context.Context) (any, error) { return p.table(ctx, nil), nil }},
	}
}

// URL returns the page of an incident.
func URL(id string) string { return listPath + "/" + url.PathEscape(id) }

const mostRows = 50 // incidents that a page lists

// A table is what the fragment "incidents" shows.
type table struct {
	Problems  []string
	Rows      []row
	Open, All int
	page.Part
}

// A row is an incident in the list.
type row struct {
	ID, Link        string // "": an alert of a program without incidents
	Open            bool
	State, Kind     string
	Body, Accused   string
	Partition       int
	Opened, Changed time.Time
	Steps, Reading  string
	By              string // who acknowledged it; "": nobody
	At              time.Time
	Since           bool // it has changed since
}

// table returns the incidents of a page, those that are open first.
func (p *pages) table(ctx context.Context, query url.Values) table {
	all, acknowledged, problems := p.incidents(ctx)
	t := table{Problems: problems, All: len(all), Part: page.Cut(listPath, query, len(all), mostRows)}
	for _, i := range all {
		if i.Open() {
			t.Open++
		}
	}
	sorted := slices.Clone(all)
	slices.Reverse(sorted)
	slices.SortStableFunc(sorted, func(a, b *Incident) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), b.Last().Time.Compare(a.Last().Time))
	})
	for _, i := range sorted[t.From:t.To] {
		t.Rows = append(t.Rows, newRow(i, acknowledged))
	}
	return t
}

func rank(i *Incident) int {
	if i.Open() {
		return 0
	}
	return 1
}

func newRow(i *Incident, acknowledged acknowledgements) row {
	last := i.Last()
	r := row{
		ID: i.ID(), Open: i.Open(), State: last.State, Kind: last.Kind, Body: last.Body, Partition: last.Partition,
		Accused: page.Visible(last.Accused),
		Opened:  i.First().Time, Changed: last.Time, Steps: i.Steps(), Reading: page.Visible(i.Reading()),
	}
	if r.ID == "" {
		return r
	}
	r.Link = URL(r.ID)
	if e, ok := acknowledged[r.ID]; ok {
		r.By, r.At, r.Since = page.Visible(e.User), e.Time, last.Time.After(e.Time)
	}
	return r
}

func (p *pages) list(w http.ResponseWriter, r *http.Request) {
	t := p.table(r.Context(), r.URL.Query())
	p.site.Render(w, r, listTemplates, http.StatusOK, "Incidents", struct {
		Table table
		First bool // the fragment follows
	}{t, t.From == 0})
}

// find returns an incident, nil if there is none of this id.
func find(all []*Incident, id string) *Incident {
	i := slices.IndexFunc(all, func(i *Incident) bool { return i.ID() == id })
	if i < 0 || id == "" {
		return nil
	}
	return all[i]
}

// acknowledge writes a line of the audit: this user has seen the incident. Nothing else
// changes.
func (p *pages) acknowledge(w http.ResponseWriter, r *http.Request) {
	id := r.PostFormValue("incident")
	all, _, _ := p.incidents(r.Context())
	i := find(all, id)
	if i == nil {
		p.site.Back(w, r, listPath, "Nothing was done: there is no such incident.", true)
		return
	}
	action := page.Action{Name: stream.ActionAcknowledge, Target: id,
		Detail: map[string]string{"state": i.Last().State, "kind": i.Last().Kind}}
	p.site.Act(w, r, action, func(context.Context) (string, error) {
		return "You have acknowledged the incident. The list shows it to all.", nil
	}, URL(id))
	p.acknowledged.Forget()
}
