package sources

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	algos "hamlet/algos/model"
	"hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/show/chart"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/state"
	"hamlet/stream"
)

//go:embed *.html
var files embed.FS

var (
	listTemplates   = page.Parse(files, "sources.html")
	sourceTemplates = page.Parse(files, "source.html")
	planTemplates   = page.Parse(files, "withdraw.html")
)

// The pages.
const (
	listPath     = "/sources"
	sourcePath   = "/sources/one"
	rolePath     = "/sources/role"
	withdrawPath = "/sources/withdraw"
)

// A Config has what the pages read.
type Config struct {
	Store state.Store // of the site's model
	Kafka stream.Logs // without brokers, roles and withdrawals say that they need it

	// Info asks a scorer which thresholds its verdicts have; a plan compares by them. Without an
	// answer it takes the defaults of a scorer.
	Info func(context.Context) (stream.Info, error)
}

// pages are what the handlers share.
type pages struct {
	site  *page.Site
	cfg   Config
	saved *page.Shared[*model.Derived[*Table]]
	plans *plans
}

// Add adds the pages to a site. It returns what runs until its context ends: then it ends
// the plans that are being made, and waits for them.
func Add(site *page.Site, cfg Config) (run func(context.Context) error) {
	p := &pages{site: site, cfg: cfg, plans: newPlans(site.Now)}
	p.saved = model.Newest(cfg.Store, site.Now,
		func(m *algos.Model, c *state.Checkpoint) *Table { return newTable(site.Model, c.Saved, m) })
	serve := func(h http.HandlerFunc) http.Handler { return h }
	site.Add(page.Page{
		Path: listPath, Title: "Sources", Role: access.Look, Templates: listTemplates,
		Handlers: map[string]http.Handler{
			"GET " + listPath:   serve(p.list),
			"GET " + sourcePath: serve(p.source),
			"POST " + rolePath:  site.Allow(access.Operate, p.setRole),
		},
		Live: map[string]page.Fragment{"sources": func(ctx context.Context) (any, error) { return p.table(ctx, nil), nil }},
	})
	site.Add(page.Page{
		Path: withdrawPath, Title: "Withdraw", Role: access.Operate, Hidden: true, Templates: planTemplates,
		Handlers: map[string]http.Handler{
			"GET " + withdrawPath:               serve(p.withdrawal),
			"POST " + withdrawPath + "/plan":    serve(p.startPlan),
			"POST " + withdrawPath + "/confirm": serve(p.confirm),
			"POST " + withdrawPath + "/cancel":  serve(p.cancel),
		},
		Live: map[string]page.Fragment{"plans": func(context.Context) (any, error) { return p.plans.view(), nil }},
	})
	return p.plans.run
}

const mostRows = 100 // sources that a page lists

// A table is what the fragment "sources" shows.
type table struct {
	Problem string // why there is nothing, or nothing new
	Empty   bool   // no model is saved, or it knows no source
	Rows    []row
	Known   int
	page.Part
	Saved Saved
	Chart *chart.Chart
}

type row struct {
	Source
	Name    string // to be shown
	Link    string
	Share   float64
	Remarks string
	Accused string
}

// URL returns the page about a source.
func URL(source string) string { return sourcePath + "?" + url.Values{"source": {source}}.Encode() }

// WithdrawURL returns the page that plans a withdrawal of what a source has taught since an
// incident, an event or a time.
func WithdrawURL(source, since string) string {
	return withdrawPath + "?" + url.Values{"source": {source}, "since": {since}}.Encode()
}

// known returns the sources that the newest model knows, nil if nothing was ever read. problem
// says why there is nothing, or nothing new.
func (p *pages) known(ctx context.Context) (known *Table, problem string) {
	saved, err := p.saved.Get(ctx)
	if err != nil && !errors.Is(err, state.ErrNone) {
		problem = fmt.Sprintf("The saved models cannot be read: %v.", err)
	}
	if saved != nil {
		known = saved.Facts
	}
	return known, problem
}

func (p *pages) table(ctx context.Context, query url.Values) table {
	known, problem := p.known(ctx)
	t := table{Problem: problem}
	if known == nil {
		t.Empty = problem == ""
		return t
	}
	t.Known, t.Saved, t.Empty = known.Known, known.Saved(), known.Known == 0
	t.Part = page.Cut(listPath, query, t.Known, mostRows)
	for _, s := range known.Sources[t.From:t.To] {
		t.Rows = append(t.Rows, newRow(s, known.labels()))
	}
	t.Chart = rates(known.Sources)
	return t
}

// First is the number of the first row, from 1.
func (t table) First() int { return t.From + 1 }

func newRow(s Source, total uint64) row {
	r := row{Source: s, Name: page.Visible(s.Source), Link: URL(s.Source), Remarks: s.Remarks(), Accused: s.AccusedAt()}
	if total > 0 {
		r.Share = float64(s.Labels) / float64(total)
	}
	return r
}

const (
	mostDrawn = 16 // sources in the chart
	nameDrawn = 17 // runes of a name there
)

// rates draws the flip rates of the sources with most labels; nil if none has any.
func rates(sources []Source) *chart.Chart {
	zero, one := 0.0, 1.0
	points := chart.Series{Name: "flip rate, 90 %", Kind: chart.Points}
	var names []string
	for i := range sources[:min(len(sources), mostDrawn)] {
		s := &sources[i]
		if s.Labels == 0 {
			break
		}
		names = append(names, page.Clip(page.Visible(s.Source), nameDrawn))
		points.X, points.Lo, points.Hi = append(points.X, s.Rate), append(points.Lo, s.Lo), append(points.Hi, s.Hi)
	}
	if len(names) == 0 {
		return nil
	}
	for i := range names {
		points.Y = append(points.Y, float64(len(names)-1-i)) // the first on top
	}
	slices.Reverse(names)
	return &chart.Chart{
		Title: "How often labels contradict the model",
		X:     chart.Axis{Label: "flip rate", Min: &zero, Max: &one}, Y: chart.Axis{Label: "source", Categories: names},
		Series:  []chart.Series{points},
		Caption: "Each point is a source, those with most labels. The line is the 90 % interval.",
	}
}

func (p *pages) list(w http.ResponseWriter, r *http.Request) {
	t := p.table(r.Context(), r.URL.Query())
	p.site.Render(w, r, listTemplates, http.StatusOK, "Sources", struct {
		Table table
		First bool // the fragment follows
	}{t, t.From == 0})
}

// A single is what the page about one source shows.
type single struct {
	Problem     string
	Name        string // as asked for
	Shown       string
	Known       bool
	Row         row
	Saved       time.Time
	Roles       []choice
	Withdraw    string // the page that plans a withdrawal
	WithoutName bool   // only the beginning of the name is known
}

type choice struct {
	Role, Means string
	Chosen      bool
}

var roles = []choice{
	{Role: "ordinary", Means: "weighed by its agreement with others"},
	{Role: "anchor", Means: "believed; the others are compared with it"},
	{Role: "muted", Means: "its labels teach nothing"},
}

func (p *pages) source(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("source")
	if name == "" {
		http.Redirect(w, r, listPath, http.StatusSeeOther)
		return
	}
	known, problem := p.known(r.Context())
	s := single{Problem: problem, Name: name, Shown: page.Visible(name), Withdraw: WithdrawURL(name, "24h"),
		Roles: slices.Clone(roles)}
	if known != nil {
		if i := slices.IndexFunc(known.Sources, func(s Source) bool { return s.Source == name }); i >= 0 {
			s.Known, s.Row = true, newRow(known.Sources[i], known.labels())
			s.WithoutName = s.Row.Cut
		}
		s.Saved = known.Saved().Saved
	}
	for i := range s.Roles {
		s.Roles[i].Chosen = s.Known && s.Roles[i].Role == s.Row.Role
	}
	p.site.Render(w, r, sourceTemplates, http.StatusOK, "Source", s)
}

// setRole writes an operator's word about a source.
func (p *pages) setRole(w http.ResponseWriter, r *http.Request) {
	source, role := r.PostFormValue("source"), r.PostFormValue("role")
	back := URL(source)
	standing, err := NewStanding(source, role, p.site.Now())
	if err == nil {
		err = p.needKafka()
	}
	if err != nil {
		if source == "" {
			back = listPath
		}
		p.site.Back(w, r, back, fmt.Sprintf("Nothing was done: %v.", err), true)
		return
	}
	p.site.Act(w, r, page.Action{Name: "standing", Target: source, Detail: map[string]string{"role": role}},
		func(ctx context.Context) (string, error) {
			if err := Set(ctx, p.cfg.Kafka, p.site.Model, standing); err != nil {
				return "", err
			}
			return fmt.Sprintf("%s is %s for labels from now on. The record is written. "+
				"This page shows it when the learner has read and saved it.", source, role), nil
		}, back)
}

// needKafka returns an error if the console knows no Kafka.
func (p *pages) needKafka() error {
	if p.cfg.Kafka == nil {
		return errors.New("the console was started without --kafka, and this writes to the events topic")
	}
	return nil
}
