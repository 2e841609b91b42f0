// Package sources has the console's pages about who gives labels: how many, how often wrong,
// and how far each is believed. There an operator sets a source's standing, and withdraws
// what it has taught after seeing what that would do.
package sources

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"hamlet/cmd/internal/chart"
	"hamlet/cmd/internal/console/access"
	"hamlet/cmd/internal/console/page"
	list "hamlet/cmd/internal/sources"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
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
	Store *redis.Store // of the site's model
	Kafka kafka.Config // without brokers, roles and withdrawals say that they need it

	// Info asks a scorer which thresholds its verdicts have; a plan compares by them. Nil, or
	// without an answer: the defaults of a scorer.
	Info func(context.Context) (stream.Info, error)
}

// pages are what the handlers share.
type pages struct {
	site  *page.Site
	cfg   Config
	known known
	plans *plans
}

// Add adds the pages to a site. It returns what runs until its context ends: then it ends
// the plans that are being made, and waits for them.
func Add(site *page.Site, cfg Config) (run func(context.Context) error) {
	p := &pages{site: site, cfg: cfg, known: known{store: cfg.Store, model: site.Model, now: site.Now}, plans: newPlans(site.Now)}
	get := func(h http.HandlerFunc) http.Handler { return h }
	post := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, mostForm)
			h(w, r)
		}
	}
	site.Add(page.Page{
		Path: listPath, Title: "Sources", Role: access.Look, Templates: listTemplates,
		Handlers: map[string]http.Handler{
			"GET " + listPath:   get(p.list),
			"GET " + sourcePath: get(p.source),
			"POST " + rolePath:  site.Allow(access.Operate, post(p.setRole)),
		},
		Live: map[string]page.Fragment{"sources": func(ctx context.Context) (any, error) { return p.table(ctx, 0), nil }},
	})
	site.Add(page.Page{
		Path: withdrawPath, Title: "Withdraw", Role: access.Operate, Hidden: true, Templates: planTemplates,
		Handlers: map[string]http.Handler{
			"GET " + withdrawPath:               get(p.withdrawal),
			"POST " + withdrawPath + "/plan":    post(p.startPlan),
			"POST " + withdrawPath + "/confirm": post(p.confirm),
			"POST " + withdrawPath + "/cancel":  post(p.cancel),
		},
		Live: map[string]page.Fragment{"plans": func(context.Context) (any, error) { return p.plans.view(), nil }},
	})
	return p.plans.run
}

const (
	mostRows = 100     // sources that a page lists
	mostForm = 1 << 16 // bytes of a form
)

// A table is what the fragment "sources" shows.
type table struct {
	Problem    string // why there is nothing, or nothing new
	Empty      bool   // no model is saved, or it knows no source
	Rows       []row
	From, To   int // of Known, from 1
	Known      int
	Next, Back string // pages; "": none
	Saved      list.Saved
	Chart      *chart.Chart
}

type row struct {
	list.Source
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

// table returns the sources from the number from on.
func (p *pages) table(ctx context.Context, from int) table {
	known, err := p.known.get(ctx)
	t := table{Problem: problem(err)}
	if known == nil {
		t.Empty = err == nil || errors.Is(err, state.ErrNone)
		return t
	}
	t.Known, t.Saved, t.Empty = len(known.Sources), known.Saved(), len(known.Sources) == 0
	from = max(0, min(from, t.Known-1))
	to := min(from+mostRows, t.Known)
	t.From, t.To = from+1, to
	if to < t.Known {
		t.Next = listPath + "?from=" + strconv.Itoa(to)
	}
	if from > 0 {
		t.Back = listPath + "?from=" + strconv.Itoa(max(0, from-mostRows))
	}
	total := uint64(0)
	for i := range known.Sources {
		total += known.Sources[i].Labels
	}
	for _, s := range known.Sources[from:to] {
		t.Rows = append(t.Rows, newRow(s, total))
	}
	t.Chart = rates(known.Sources)
	return t
}

func newRow(s list.Source, total uint64) row {
	r := row{Source: s, Name: page.Visible(s.Source), Link: URL(s.Source), Remarks: s.Remarks(), Accused: s.AccusedAt()}
	if total > 0 {
		r.Share = float64(s.Labels) / float64(total)
	}
	return r
}

// problem returns an error as a sentence, "" if there is none or nothing is saved yet.
func problem(err error) string {
	if err == nil || errors.Is(err, state.ErrNone) {
		return ""
	}
	return fmt.Sprintf("The saved models cannot be read: %v.", err)
}

const (
	mostDrawn = 16 // sources in the chart
	nameDrawn = 18 // runes of a name there
)

// rates draws the flip rates of the sources with most labels; nil if none has any.
func rates(sources []list.Source) *chart.Chart {
	zero, one := 0.0, 1.0
	points := chart.Series{Name: "flip rate, 90 %", Kind: chart.Points}
	var names []string
	for i := range sources[:min(len(sources), mostDrawn)] {
		s := &sources[i]
		if s.Labels == 0 {
			break
		}
		name := []rune(page.Visible(s.Source))
		if len(name) > nameDrawn {
			name = append(name[:nameDrawn-1], '…')
		}
		names = append(names, string(name))
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

// list shows all sources.
func (p *pages) list(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("from")) // what is no number is 0
	t := p.table(r.Context(), from)
	p.site.Render(w, r, listTemplates, http.StatusOK, "Sources", struct {
		Table table
		First bool // the fragment follows
	}{t, t.From <= 1})
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

// source shows one source.
func (p *pages) source(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("source")
	if name == "" {
		http.Redirect(w, r, listPath, http.StatusSeeOther)
		return
	}
	known, err := p.known.get(r.Context())
	s := single{Problem: problem(err), Name: name, Shown: page.Visible(name), Withdraw: WithdrawURL(name, "24h"), Roles: slices.Clone(roles)}
	if known != nil {
		total := uint64(0)
		for i := range known.Sources {
			total += known.Sources[i].Labels
		}
		if i := slices.IndexFunc(known.Sources, func(s list.Source) bool { return s.Source == name }); i >= 0 {
			s.Known, s.Row = true, newRow(known.Sources[i], total)
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
	standing, err := list.NewStanding(source, role, p.site.Now())
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
	p.site.Act(w, r, page.Action{Name: "standing", Target: source, Detail: map[string]string{"role": role}}, func(ctx context.Context) (string, error) {
		if err := list.Set(ctx, p.cfg.Kafka, p.site.Model, standing); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s is %s for labels from now on. The record is written. "+
			"This page shows it when the learner has read and saved it.", source, role), nil
	}, back)
}

// needKafka returns an error if the console knows no Kafka.
func (p *pages) needKafka() error {
	if len(p.cfg.Kafka.Brokers) == 0 {
		return errors.New("the console was started without --kafka, and this writes to the events topic")
	}
	return nil
}
