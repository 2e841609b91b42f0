package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	algos "hamlet/algos/model"
	"hamlet/cmd/internal/show/chart"
	"hamlet/cmd/internal/web/page"
)

// Bounds of what is listed.
const (
	mostWeights  = 500
	mostDrawn    = 20 // weights in the chart
	mostSources  = 30 // of a comparison
	mostCompared = 40 // weights of a comparison
	mostName     = 22 // letters of a name in a chart
)

// An insideView is what a version has learnt.
type insideView struct {
	*Facts
	Settings  []Configured
	Adopted   []adopted
	Heads     []head
	Ensembles []ensembles
	Other     int64 // a version to compare with: the newest, or the one before it; 0: there is none
}

// A head is that of one kind of body.
type head struct {
	Body    string
	Weights []weight // those furthest from 0 first
	More    int      // that are not listed
	Chart   *chart.Chart
}

type weight struct {
	Name           string
	Mean, Low, Top float64
}

// Sure reports whether the interval is on one side of 0.
func (w weight) Sure() bool { return w.Low > 0 || w.Top < 0 }

// ensembles are the members of a stack.
type ensembles struct {
	algos.StackState
	Weights []member
	Rebuilt bool // some member is an ensemble
}

type member struct {
	weight
	Built bool
}

// An adopted is a change of the configuration that a learner made.
type adopted struct {
	Events        uint64
	Settings      []Setting // A is before
	Before, After string    // numerics, if they changed
}

func (p *pages) inside(w http.ResponseWriter, r *http.Request) {
	facts, err := p.factsOf(r.Context(), r.URL.Query().Get("version"))
	if err != nil {
		p.fail(w, r, err)
		return
	}
	view := &insideView{Facts: facts, Settings: Configuration(facts.Config), Adopted: adoptions(facts)}
	if kept, err := p.kept.Get(r.Context()); err == nil {
		view.Other = other(&kept.History, facts.Version)
	}
	for _, body := range []string{algos.BodyText, algos.BodyVector} {
		if h := headOf(body, facts.Weights); len(h.Weights) > 0 {
			view.Heads = append(view.Heads, h)
		}
	}
	for _, s := range facts.Stacks {
		e := ensembles{StackState: s}
		for _, m := range s.Members {
			e.Rebuilt = e.Rebuilt || m.Ensemble
			e.Weights = append(e.Weights, member{interval(m.Name, m.Mean, m.SD), m.Built})
		}
		view.Ensembles = append(view.Ensembles, e)
	}
	p.site.Render(w, r, insideTemplates, http.StatusOK, fmt.Sprintf("Version %d", facts.Version), view)
}

// other returns the version that one compares a version with: the newest, or the one before it.
func other(p *History, version int64) int64 {
	if p.Head == 0 || version != p.Head {
		return p.Head
	}
	for i := range p.Versions {
		if number := p.Versions[i].Version; number != version {
			return number
		}
	}
	return 0
}

func (p *pages) compare(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a, err := p.factsOf(r.Context(), q.Get("a"))
	if err != nil {
		p.fail(w, r, err)
		return
	}
	b, err := p.factsOf(r.Context(), q.Get("b"))
	if err != nil {
		p.fail(w, r, err)
		return
	}
	d := Compare(a, b, mostCompared)
	d.More += max(0, len(d.Sources)-mostSources)
	d.Sources = d.Sources[:min(mostSources, len(d.Sources))]
	p.site.Render(w, r, compareTemplates, http.StatusOK,
		fmt.Sprintf("Versions %d and %d", a.Version, b.Version), differenceView{d, int64(b.Events) - int64(a.Events),
			int64(b.Spam) - int64(a.Spam)})
}

// A differenceView is what `hamlet model diff` prints.
type differenceView struct {
	Difference
	Events, Spam int64 // of b less those of a
}

// A missingError says that there is no such version.
type missingError struct{ error }

// factsOf returns what a version has learnt. An empty version is the newest.
func (p *pages) factsOf(ctx context.Context, version string) (*Facts, error) {
	kept, err := p.kept.Get(ctx)
	if err != nil {
		return nil, err
	}
	number := kept.Head
	if version != "" {
		if number, err = strconv.ParseInt(version, 10, 64); err != nil {
			return nil, missingError{errors.New("a version is a number")}
		}
	}
	v := kept.Find(number)
	if v == nil {
		return nil, missingError{fmt.Errorf("version %d is not kept", number)}
	}
	return p.facts.get(ctx, versionID{number, v.SHA256})
}

// fail says why there is nothing to show.
func (p *pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusServiceUnavailable
	missing := missingError{}
	none := &NoneError{}
	if errors.As(err, &missing) || errors.As(err, &none) {
		status = http.StatusNotFound
	}
	p.site.Fail(w, r, status, page.Sentence(err))
}

// interval makes a weight of its mean and standard deviation.
func interval(name string, mean, sd float64) weight {
	return weight{name, mean, mean - algos.Z90*sd, mean + algos.Z90*sd}
}

// headOf lists the weights of a head, and draws the largest.
func headOf(body string, all []algos.Weight) head {
	h := head{Body: body}
	for i := range all {
		if w := &all[i]; w.Body == body {
			h.Weights = append(h.Weights, interval(InputName(w), w.Mean, w.SD))
		}
	}
	slices.SortStableFunc(h.Weights, func(a, b weight) int { return cmp.Compare(math.Abs(b.Mean), math.Abs(a.Mean)) })
	h.More = max(0, len(h.Weights)-mostWeights)
	h.Weights = h.Weights[:len(h.Weights)-h.More]
	drawn := h.Weights[:min(mostDrawn, len(h.Weights))]
	if len(drawn) == 0 {
		return h
	}
	c := &chart.Chart{Title: "Largest weights, " + body, X: chart.Axis{Label: "weight, with its 90 % interval"},
		Y: chart.Axis{Label: "input"}}
	series := chart.Series{Name: "weight", Kind: chart.Points}
	for i := range drawn {
		w := drawn[len(drawn)-1-i] // the axis begins at the bottom
		c.Y.Categories = append(c.Y.Categories, nameIn(w.Name))
		series.X, series.Y = append(series.X, w.Mean), append(series.Y, float64(i))
		series.Lo, series.Hi = append(series.Lo, w.Low), append(series.Hi, w.Top)
	}
	c.Series = []chart.Series{series}
	h.Chart = c
	return h
}

// nameIn cuts the middle of a name for a chart: names of one expert begin alike.
func nameIn(name string) string {
	r := []rune(strings.ToValidUTF8(name, "�"))
	if len(r) <= mostName {
		return string(r)
	}
	return string(r[:mostName/2]) + "…" + string(r[len(r)-mostName/2+1:])
}

// adoptions says what changed each time, the last one first.
func adoptions(f *Facts) (all []adopted) {
	after, numerics := f.Config, f.Numerics
	for _, a := range slices.Backward(f.Adoptions) {
		one := adopted{Events: a.Events, Settings: Changes(a.Config, after)}
		if a.Numerics != numerics {
			one.Before, one.After = a.Numerics, numerics
		}
		all = append(all, one)
		after, numerics = a.Config, a.Numerics
	}
	return all
}
