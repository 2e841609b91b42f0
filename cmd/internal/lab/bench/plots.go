package bench

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// palette has the colours of Okabe and Ito, for the colour-blind, and dashes for paper.
var palette = []struct {
	color  color.RGBA
	dashes []vg.Length
}{
	{color.RGBA{0, 114, 178, 255}, nil},
	{color.RGBA{213, 94, 0, 255}, []vg.Length{6, 3}},
	{color.RGBA{0, 158, 115, 255}, []vg.Length{2, 2}},
	{color.RGBA{204, 121, 167, 255}, []vg.Length{8, 2, 2, 2}},
	{color.RGBA{230, 159, 0, 255}, []vg.Length{4, 2}},
	{color.RGBA{86, 180, 233, 255}, []vg.Length{1, 2}},
}

var faint = color.Gray{Y: 222}

const (
	plotWidth  = 5.4 * vg.Inch
	plotHeight = 4.0 * vg.Inch
)

// A chart is a plot that will be rendered as SVG.
type chart struct {
	plot *plot.Plot
	err  error // the first
}

func newChart(x, y string) *chart {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, style := range []*draw.TextStyle{&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Variant, style.Font.Size = "Sans", 10
	}
	p.X.Label.Padding, p.Y.Label.Padding = 4, 4
	p.X.Padding, p.Y.Padding = 0, 0
	c := &chart{plot: p}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	p.Add(grid)
	return c
}

// line draws a curve.
func (c *chart) line(name string, curve []point, style draw.LineStyle) {
	if len(curve) == 0 {
		return
	}
	l, err := plotter.NewLine(toXYs(curve))
	if err != nil {
		c.fail(name, err)
		return
	}
	l.LineStyle = style
	c.plot.Add(l)
}

// points draws a mark at each of the points.
func (c *chart) points(name string, at []point, style draw.GlyphStyle) {
	s, err := plotter.NewScatter(toXYs(at))
	if err != nil {
		c.fail(name, err)
		return
	}
	s.GlyphStyle = style
	c.plot.Add(s)
}

// lineOf is the style of filter f's curves.
func lineOf(f int) draw.LineStyle {
	style := palette[f%len(palette)]
	return draw.LineStyle{Color: style.color, Width: 1.6, Dashes: style.dashes}
}

func (c *chart) fail(what string, err error) {
	if c.err == nil {
		c.err = fmt.Errorf("draw %s: %w", what, err)
	}
}

func toXYs(curve []point) plotter.XYs {
	xys := make(plotter.XYs, len(curve))
	for i, p := range curve {
		xys[i] = plotter.XY{X: p.x, Y: p.y}
	}
	return xys
}

// svg renders the chart as an element of a page. title is for screen readers.
func (c *chart) svg(title string) (string, error) {
	if c.err != nil {
		return "", c.err
	}
	canvas := vgsvg.NewWith(vgsvg.UseWH(plotWidth, plotHeight))
	c.plot.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", fmt.Errorf("draw %s: %w", title, err)
	}
	return standalone(b.String(), title), nil
}

// rocChart shows ham lost against spam missed. Logarithmic scales show how filters
// differ.
func (r *result) rocChart() *chart {
	c := newChart("ham lost, %", "spam missed, %")
	least := 100.0
	for f, o := range r.outcomes {
		curve := newRanking(r.truth, o, r.from).rocCurve()
		for _, p := range curve {
			least = min(least, p.x, p.y)
		}
		c.line(o.name, curve, lineOf(f))
	}
	logAxis(&c.plot.X, least, 100)
	logAxis(&c.plot.Y, least, 100)
	return c
}

// learningCharts show 1-ROCA% and the error over all messages so far.
func (r *result) learningCharts() (area, wrong *chart) {
	area = newChart("messages so far", "1-ROCA%")
	wrong = newChart("messages so far", "error, %")
	curves := make([]learning, len(r.outcomes))
	for f, o := range r.outcomes {
		curves[f] = learningCurve(r.truth, o)
	}
	show := func(c *chart, of func(*learning) []point) {
		least, most := math.Inf(1), 0.0
		for f := range curves {
			for _, p := range of(&curves[f]) {
				if p.y > 0 {
					least, most = min(least, p.y), max(most, p.y)
				}
			}
		}
		if most == 0 {
			least, most = 0.1, 100 // without any error
		}
		floor := decadeBelow(least)
		for f, o := range r.outcomes {
			curve := of(&curves[f])
			for i := range curve {
				curve[i].y = max(curve[i].y, floor)
			}
			c.line(o.name, curve, lineOf(f))
		}
		logAxis(&c.plot.X, firstLearning, max(float64(len(r.truth)), 2*firstLearning))
		logAxis(&c.plot.Y, floor, min(2*most, 100))
	}
	show(area, func(l *learning) []point { return l.roca })
	show(wrong, func(l *learning) []point { return l.wrong })
	return area, wrong
}

// The ends of the reliability diagram's axes.
const leastShown, mostShown = 0.0003, 0.9997

// reliabilityChart shows the fraction of spam against a filter's probability, on
// log-odds scales, with 95 % intervals. It returns nil if no filter gives probabilities.
func (r *result) reliabilityChart() *chart {
	c := newChart("probability that was given", "fraction of spam")
	diagonal := []point{{leastShown, leastShown}, {mostShown, mostShown}}
	c.line("reliability", diagonal, draw.LineStyle{Color: color.Gray{Y: 150}, Width: 1})
	shown := func(v float64) float64 { return min(max(v, leastShown), mostShown) }
	some := false
	for f, o := range r.outcomes {
		if !o.proper {
			continue
		}
		some = true
		var curve []point
		var bars errorBars
		for _, b := range newRanking(r.truth, o, r.from).reliability() {
			p := point{shown(b.p), shown(b.fraction)}
			curve = append(curve, p)
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{p.y - shown(b.lo), shown(b.hi) - p.y})
		}
		c.line(o.name, curve, lineOf(f))
		bars.XYs = toXYs(curve)
		c.bars(f, o.name, bars)
		c.points(o.name, curve, draw.GlyphStyle{Color: palette[f%len(palette)].color, Radius: 2.5, Shape: draw.CircleGlyph{}})
	}
	if !some {
		return nil
	}
	for _, axis := range []*plot.Axis{&c.plot.X, &c.plot.Y} {
		axis.Min, axis.Max, axis.Scale = leastShown, mostShown, logitScale{}
		axis.Tick.Marker = plot.ConstantTicks(probabilityTicks())
	}
	return c
}

type errorBars struct {
	plotter.XYs
	plotter.YErrors
}

func (c *chart) bars(f int, name string, bars errorBars) {
	e, err := plotter.NewYErrorBars(bars)
	if err != nil {
		c.fail(name, err)
		return
	}
	e.Color, e.Width, e.CapWidth = palette[f%len(palette)].color, 1, 4
	c.plot.Add(e)
}

// logAxis makes an axis logarithmic, with ticks at the decades.
func logAxis(a *plot.Axis, low, high float64) {
	a.Min, a.Max, a.Scale = low, high, plot.LogScale{}
	var ticks []plot.Tick
	for d := decadeBelow(low); d <= high*1.0001; d *= 10 {
		for k := 1.0; k < 10; k++ {
			t := plot.Tick{Value: k * d}
			if k == 1 || high/low < 30 && (k == 2 || k == 5) {
				t.Label = strconv.FormatFloat(k*d, 'g', 3, 64)
				if k*d >= 1000 {
					t.Label = strconv.FormatFloat(k*d, 'f', 0, 64)
				}
			}
			if t.Value >= low*0.9999 && t.Value <= high*1.0001 {
				ticks = append(ticks, t)
			}
		}
	}
	a.Tick.Marker = plot.ConstantTicks(ticks)
}

func decadeBelow(v float64) float64 { return math.Pow(10, math.Floor(math.Log10(v)+1e-9)) }

// A logitScale spaces probabilities by their log-odds.
type logitScale struct{}

func (logitScale) Normalize(low, high, x float64) float64 {
	logit := func(p float64) float64 { return math.Log(p / (1 - p)) }
	return (logit(x) - logit(low)) / (logit(high) - logit(low))
}

func probabilityTicks() (ticks []plot.Tick) {
	for _, p := range []float64{0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999} {
		ticks = append(ticks, plot.Tick{Value: p, Label: strconv.FormatFloat(p, 'g', -1, 64)})
	}
	return ticks
}
