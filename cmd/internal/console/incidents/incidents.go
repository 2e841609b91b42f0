// Package incidents has the console's pages about what is wrong and what was: the incidents
// of a model, and the life of one of them. An operator acknowledges an incident there, and
// goes on from it to pin a version of before and to withdraw what a source has taught.
package incidents

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/alarms"
	"hamlet/cmd/internal/console/access"
	"hamlet/cmd/internal/console/page"
	"hamlet/state/redis"
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
	NATS  *natsgo.Conn // has the alerts; nil: nowhere
	Audit Audit        // nil: nobody's acknowledgements are known
	Store *redis.Store // of the site's model
}

// pages are what the handlers share.
type pages struct {
	site  *page.Site
	store *redis.Store
	log   incidentLog
	saved saved
}

// Page returns the pages.
func Page(site *page.Site, cfg Config) page.Page {
	p := &pages{site: site, store: cfg.Store,
		log:   incidentLog{conn: cfg.NATS, audit: cfg.Audit, model: site.Model, now: site.Now},
		saved: saved{store: cfg.Store, now: site.Now},
	}
	return page.Page{
		Path: listPath, Title: "Incidents", Role: access.Look, Templates: listTemplates,
		Handlers: map[string]http.Handler{
			"GET " + listPath:           http.HandlerFunc(p.list),
			"GET " + listPath + "/{id}": http.HandlerFunc(p.one),
			"POST " + acknowledgePath:   site.Allow(access.Operate, p.acknowledge),
		},
		Live: map[string]page.Fragment{"incidents": func(ctx context.Context) (any, error) { return p.table(ctx, 0), nil }},
	}
}

// URL returns the page of an incident.
func URL(id string) string { return listPath + "/" + url.PathEscape(id) }

const (
	mostRows = 50      // incidents that a page lists
	mostForm = 1 << 16 // bytes of a form
)

// A table is what the fragment "incidents" shows.
type table struct {
	Problems  []string
	Rows      []row
	Open, All int
	Next      string // page; "": none
	Back      string
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

// table returns the incidents, those that are open first, from the number from on.
func (p *pages) table(ctx context.Context, from int) table {
	all, acknowledged, problems := p.log.get(ctx)
	t := table{Problems: problems, All: len(all)}
	for _, i := range all {
		if i.Open() {
			t.Open++
		}
	}
	sorted := slices.Clone(all)
	slices.Reverse(sorted)
	slices.SortStableFunc(sorted, func(a, b *alarms.Incident) int {
		if a.Open() != b.Open() {
			return cmp.Compare(rank(a), rank(b))
		}
		return b.Last().Time.Compare(a.Last().Time)
	})
	from = max(0, min(from, len(sorted)-1))
	to := min(from+mostRows, len(sorted))
	for _, i := range sorted[from:to] {
		t.Rows = append(t.Rows, newRow(i, acknowledged))
	}
	if to < len(sorted) {
		t.Next = listPath + "?from=" + strconv.Itoa(to)
	}
	if from > 0 {
		t.Back = listPath + "?from=" + strconv.Itoa(max(0, from-mostRows))
	}
	return t
}

// rank puts what is open first.
func rank(i *alarms.Incident) int {
	if i.Open() {
		return 0
	}
	return 1
}

func newRow(i *alarms.Incident, acknowledged map[string]stream.AuditEntry) row {
	last := i.Last()
	r := row{
		ID: i.ID(), Open: i.Open(), State: last.State, Kind: last.Kind, Body: last.Body, Accused: page.Visible(last.Accused), Partition: last.Partition,
		Opened: i.First().Time, Changed: last.Time, Steps: i.Steps(), Reading: page.Visible(i.Reading()),
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

// list shows the incidents.
func (p *pages) list(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("from")) // what is no number is 0
	p.site.Render(w, r, listTemplates, http.StatusOK, "Incidents", struct {
		Table table
		First bool // the fragment follows
	}{p.table(r.Context(), from), from <= 0})
}

// find returns an incident, nil if there is none of this id.
func find(all []*alarms.Incident, id string) *alarms.Incident {
	i := slices.IndexFunc(all, func(i *alarms.Incident) bool { return i.ID() == id })
	if i < 0 || id == "" {
		return nil
	}
	return all[i]
}

// acknowledge writes a line of the audit: this user has seen the incident. Nothing else
// changes.
func (p *pages) acknowledge(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	id := r.PostFormValue("incident")
	all, _, _ := p.log.get(r.Context())
	i := find(all, id)
	if i == nil {
		p.site.Back(w, r, listPath, "Nothing was done: there is no such incident.", true)
		return
	}
	action := page.Action{Name: stream.ActionAcknowledge, Target: id, Detail: map[string]string{"state": i.Last().State, "kind": i.Last().Kind}}
	p.site.Act(w, r, action, func(context.Context) (string, error) {
		return "You have acknowledged the incident. The list shows it to all.", nil
	}, URL(id))
	p.log.forget()
}

// sentence returns an error for people.
func sentence(doing string, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return doing + ": there was no answer in time."
	}
	return fmt.Sprintf("%s: %s.", doing, page.Visible(err.Error()))
}
