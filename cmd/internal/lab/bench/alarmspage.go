package bench

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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
	Legend  []pageMark
	Charts  []pageChart
	Horizon int
}

type pageColumn struct{ Name, On string }

type pageLine struct {
	About, What string
	Cells       []string
}

// A pageMark is an entry of the legend.
type pageMark struct {
	Name, Color, Dashes string
	Line                bool
	Glyph               template.HTML
}

// A mark is how a detector is drawn.
type mark struct {
	color  color.Color
	dashes []vg.Length
	line   bool
	glyph  draw.GlyphDrawer
	svg    string // the glyph in the legend, centred at the origin
}

// markOf returns how a detector is drawn. Peer i has a line of the palette and a round
// mark; the model's nth alarm has a black mark of its own shape.
func markOf(i int, own bool, nth int) mark {
	if own {
		shapes := []struct {
			glyph draw.GlyphDrawer
			svg   string
		}{
			{draw.CircleGlyph{}, `<circle r="4"/>`},
			{draw.BoxGlyph{}, `<rect x="-4" y="-4" width="8" height="8"/>`},
			{draw.PyramidGlyph{}, `<path d="M0-5 5 4H-5z"/>`},
			{draw.CrossGlyph{}, `<path d="M-4-4 4 4M-4 4 4-4" stroke="#000" stroke-width="1.6"/>`},
		}
		s := shapes[nth%len(shapes)]
		return mark{color: color.Black, glyph: s.glyph, svg: s.svg}
	}
	style := palette[i%len(palette)]
	return mark{color: style.color, dashes: style.dashes, line: true, glyph: draw.CircleGlyph{},
		svg: fmt.Sprintf(`<circle r="3.5" fill="%s"/>`, hexOf(style.color))}
}

// drawn calls f for each detector except the baselines, which lie far outside the plot.
func (r *alarmResult) drawn(f func(d *detector, m mark)) {
	peer, own := 0, 0
	for i := range r.detectors {
		d := &r.detectors[i]
		switch {
		case d.own:
			f(d, markOf(0, true, own))
			own++
		case d.parameter != "":
			f(d, markOf(peer, false, 0))
			peer++
		}
	}
}

// writePage writes index.html into dir: one file that needs no other.
func (r *alarmResult) writePage(dir string) error {
	data := alarmsPageData{Summary: r.summary(), Notes: r.notes(), Horizon: r.horizon}
	for _, d := range r.detectors {
		data.Columns = append(data.Columns, pageColumn{d.name, d.on})
	}
	for _, l := range r.lines() {
		data.Lines = append(data.Lines, pageLine{l.about, l.what, l.cells})
	}
	r.drawn(func(d *detector, m mark) {
		key := pageMark{Name: d.name + ", " + d.on, Line: m.line, Glyph: template.HTML(m.svg), Dashes: dashesOf(m.dashes)}
		if c, ok := m.color.(color.RGBA); ok {
			key.Color = hexOf(c)
		}
		data.Legend = append(data.Legend, key)
	})
	for k, t := range r.trials {
		title := t.fault.name
		if len(r.populations) > 1 {
			title = t.population + ": " + title
		}
		svg, err := r.delayChart(k).svg(title)
		if err != nil {
			return err
		}
		data.Charts = append(data.Charts, pageChart{title, t.fault.meaning, template.HTML(svg)})
	}
	return writeIndex(dir, alarmsPage, data)
}

// delayChart shows delay against false alarms for one trial.
func (r *alarmResult) delayChart(k int) *chart {
	c := newChart("false alarms per 100,000 events", "median delay, events")
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
	r.drawn(func(d *detector, m mark) {
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
		if m.line {
			c.line(d.name, curve, draw.LineStyle{Color: m.color, Width: 1.4, Dashes: m.dashes})
		}
		c.cross(d.name, m, point{shownRate(at.value), shownDelay(f.value)},
			[2]float64{shownRate(at.lo), shownRate(at.hi)}, [2]float64{shownDelay(f.lo), shownDelay(f.hi)})
	})
	logAxis(&c.plot.X, half/1.3, most*1.3) // room for marks at the edges
	logAxis(&c.plot.Y, max(least/1.3, 0.8), top*1.2)
	edgeTick(&c.plot.X, half, "0", func(v float64) bool { return v > 1.5*half })
	edgeTick(&c.plot.Y, top, fmt.Sprintf(">%d", r.horizon), func(v float64) bool { return v < float64(r.horizon) })
	return c
}

// edgeTick adds a tick for values that are off the scale and drawn at its edge. It keeps
// the other ticks for which keep is true.
func edgeTick(a *plot.Axis, at float64, label string, keep func(float64) bool) {
	ticks := plot.ConstantTicks{{Value: at, Label: label}}
	for _, t := range a.Tick.Marker.Ticks(a.Min, a.Max) {
		if keep(t.Value) {
			ticks = append(ticks, t)
		}
	}
	a.Tick.Marker = ticks
}

// cross draws a mark with intervals along both axes.
func (c *chart) cross(name string, m mark, at point, xs, ys [2]float64) {
	for _, ends := range [][]point{{{xs[0], at.y}, {xs[1], at.y}}, {{at.x, ys[0]}, {at.x, ys[1]}}} {
		c.line(name, ends, draw.LineStyle{Color: m.color, Width: 0.7})
	}
	c.points(name, []point{at}, draw.GlyphStyle{Color: m.color, Radius: 3.5, Shape: m.glyph})
}
