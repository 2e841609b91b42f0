package bench

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"slices"

	"hamlet/cmd/internal/chart"
)

//go:embed alarms.html
var alarmsPageText string

var alarmsPage = template.Must(template.New("alarms").Parse(alarmsPageText))

// An alarmsPageData is what the template shows.
type alarmsPageData struct {
	Summary string
	Columns []pageColumn
	Lines   []pageLine
	Notes   []string
	Style   template.CSS
	Figures []template.HTML
	Horizon int
}

type pageColumn struct{ Name, On string }

type pageLine struct {
	About, What string
	Cells       []string
}

// drawn calls f for each detector except the baselines, which lie far outside the plot.
func (r *alarmResult) drawn(f func(d *detector)) {
	for i := range r.detectors {
		if d := &r.detectors[i]; d.own || d.parameter != "" {
			f(d)
		}
	}
}

// writePage writes index.html into dir: one file that needs no other.
func (r *alarmResult) writePage(dir string) error {
	data := alarmsPageData{Summary: r.summary(), Notes: r.notes(), Horizon: r.horizon, Style: template.CSS(chart.Style)}
	for _, d := range r.detectors {
		data.Columns = append(data.Columns, pageColumn{d.name, d.on})
	}
	for _, l := range r.lines() {
		data.Lines = append(data.Lines, pageLine{l.about, l.what, l.cells})
	}
	for k, t := range r.trials {
		title := t.fault.name
		if len(r.populations) > 1 {
			title = t.population + ": " + title
		}
		c := r.delayChart(k)
		c.Title, c.Caption = title, t.fault.meaning
		figure, err := c.HTML()
		if err != nil {
			return err
		}
		data.Figures = append(data.Figures, figure)
	}
	return writeIndex(dir, alarmsPage, data)
}

// delayChart shows delay against false alarms for one trial.
func (r *alarmResult) delayChart(k int) *chart.Chart {
	half := 0.5 * 1e5 / float64(r.counted)
	top := 1.25 * float64(r.horizon) // y of a detector without an alarm in time
	least, most := float64(r.horizon)/100, 100*half
	shownRate := func(v float64) float64 { return max(v, half) }
	shownDelay := func(v float64) float64 {
		if math.IsInf(v, 1) {
			return top
		}
		return max(v, 1)
	}
	c := new(chart.Chart)
	r.drawn(func(d *detector) {
		all := append(slices.Clone(d.others), *d)
		slices.SortFunc(all, func(a, b detector) int { return cmp.Compare(a.threshold, b.threshold) })
		var curve []point
		for _, o := range all {
			p := point{shownRate(rate(o.falseAlarms, r.counted).value), shownDelay(o.findings[k].delay.value)}
			curve = append(curve, p)
			least, most = min(least, p.y), max(most, p.x)
		}
		at, f := rate(d.falseAlarms, r.counted), d.findings[k].delay
		least, most = min(least, shownDelay(f.lo)), max(most, shownRate(at.hi))
		// The mark with intervals along both axes. A detector of ours has no line.
		x, y := shownRate(at.value), shownDelay(f.value)
		mark := chart.Series{Kind: chart.Points, X: []float64{x}, Y: []float64{y}, Lo: []float64{shownDelay(f.lo)}, Hi: []float64{shownDelay(f.hi)}}
		name := d.name + ", " + d.on
		if d.own {
			mark.Name = name
		} else {
			c.Series = append(c.Series, curveSeries(name, curve))
		}
		across := curveSeries("", []point{{shownRate(at.lo), y}, {shownRate(at.hi), y}})
		across.Faint = true
		c.Series = append(c.Series, mark, across)
	})
	c.X = logAxis("false alarms per 100,000 events", half/1.3, most*1.3) // room for marks at the edges
	c.X.Named = []chart.Tick{{At: half, Text: "0"}}
	c.Y = logAxis("median delay, events", max(least/1.3, 0.8), top*1.2)
	c.Y.Named = []chart.Tick{{At: top, Text: fmt.Sprintf(">%d", r.horizon)}}
	return c
}
