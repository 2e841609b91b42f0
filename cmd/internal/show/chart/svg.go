package chart

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The drawing, in its own units.
const (
	drawingWidth = 400.0
	plotHeight   = 190.0
	margin       = 6.0 // between things and at the edges
	rowHeight    = 18.0
	tickDrop     = lineHeight + 3 // from the axis to the text below its ticks
)

// A drawing is a chart that is being drawn. The plot is the area between the axes.
type drawing struct {
	*Chart
	out                      bytes.Buffer
	x, y                     *scale
	left, right, top, bottom float64 // the plot's edges; top < bottom
	height, label            float64 // of the whole drawing; the last line of X's label
	xTicks, yTicks           []Tick
	tilted                   bool // the names below X are
	styles                   []style
}

// WriteSVG writes one <svg> element that needs no page: it has its legend and its colours.
func (c *Chart) WriteSVG(w io.Writer) error {
	svg, err := c.svg(true)
	if err != nil {
		return err
	}
	if _, err := w.Write(svg); err != nil {
		return fmt.Errorf("chart %q: %w", c.Title, err)
	}
	return nil
}

// svg draws the chart, by itself or for a figure that has the legend and the style.
func (c *Chart) svg(alone bool) ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	d := &drawing{Chart: c, styles: c.styles()}
	d.scales()
	d.layout()
	var key []keyRow
	if alone {
		key = d.keyRows()
	}
	if len(key) > 0 {
		d.height += margin + float64(len(key))*lineHeight
	}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="chart-svg" viewBox="0 0 %s %s" role="img"`+
		` font-size="%s" fill="currentColor"`,
		short(drawingWidth), short(d.height), short(fontSize))
	if alone {
		d.printf(` width="640" font-family="system-ui, Helvetica, Arial, sans-serif"`)
	}
	d.printf(`><title>%s</title><desc>%s</desc>`, escape(c.Title), escape(c.description()))
	if alone {
		d.printf("<style>%s%s</style>", aloneStyle, colourStyle)
	}
	d.axes()
	d.series()
	d.key(key)
	d.printf("</svg>")
	return d.out.Bytes(), nil
}

// description says in words what the drawing shows.
func (c *Chart) description() string {
	var parts []string
	if c.Caption != "" {
		parts = append(parts, c.Caption)
	}
	parts = append(parts, "Across: "+cmp.Or(c.X.Label, "x")+".", "Upward: "+cmp.Or(c.Y.Label, "y")+".")
	if names := c.names(); len(names) > 0 {
		parts = append(parts, "Series: "+strings.Join(names, "; ")+".")
	}
	return strings.Join(parts, " ")
}

// names are the names of the series, each once.
func (c *Chart) names() (all []string) {
	for _, s := range c.Series {
		if s.Name != "" && !slices.Contains(all, s.Name) {
			all = append(all, s.Name)
		}
	}
	return all
}

// scales finds the ends of both axes.
func (d *drawing) scales() {
	var xs, ys []float64
	barsX, barsY := false, false
	sideways := len(d.Y.Categories) > 0
	for i := range d.Series {
		s := &d.Series[i]
		for k := range s.len() {
			values := []float64{at(s.Y, k), at(s.Lo, k), at(s.Hi, k)}
			if sideways {
				// Names are on Y, so intervals lie along X.
				xs = append(append(xs, s.x(k)), values[1:]...)
				continue
			}
			xs, ys = append(xs, s.x(k)), append(ys, values...)
		}
		if s.Kind == Bars {
			barsX, barsY = barsX || sideways, barsY || !sideways
			if half := d.barSlot(s) / 2; !sideways && len(d.X.Categories) == 0 && s.len() > 0 {
				xs = append(xs, slices.Min(xs)-half, slices.Max(xs)+half)
			}
		}
	}
	d.x, d.y = newScale(&d.X, xs, barsX), newScale(&d.Y, ys, barsY)
}

// layout places the plot, so that every text has room.
func (d *drawing) layout() {
	labels := wrap(d.Y.Label, drawingWidth-2*margin, 3)
	d.top = margin + float64(len(labels))*lineHeight + lineHeight/2
	height := plotHeight
	if n := len(d.Y.Categories); n > 0 {
		height = rowHeight * float64(n) * max(1, float64(d.groups())*0.6)
		height = min(max(height, 4*rowHeight), 4000)
	}
	d.bottom = d.top + height

	d.yTicks = d.y.ticks(5)
	if len(d.Y.Categories) > 0 {
		d.yTicks = thin(d.yTicks, int(height/lineHeight))
	}
	room := drawingWidth * 0.42
	d.yTicks = d.withNamed(d.yTicks, &d.Y, func(a, b Tick) bool {
		return math.Abs(d.y.at(a.At)-d.y.at(b.At))*height < lineHeight
	})
	d.left = margin
	for i, t := range d.yTicks {
		d.yTicks[i].Text = cut(t.Text, room)
		d.left = max(d.left, 2*margin+textWidth(d.yTicks[i].Text))
	}
	d.right = drawingWidth - 2*margin
	below := d.layoutX()
	d.height = d.bottom + below + float64(len(wrap(d.X.Label, drawingWidth-2*margin, 3)))*lineHeight + margin
	d.label = d.height - margin
}

// layoutX chooses the ticks of X, makes room for their text at both sides, and returns
// the height that they need below the plot.
func (d *drawing) layoutX() float64 {
	touch := func(a, b Tick) bool {
		apart := math.Abs(d.x.at(a.At)-d.x.at(b.At)) * (d.right - d.left)
		return apart < (textWidth(a.Text)+textWidth(b.Text))/2+margin
	}
	left, right := d.left, d.right
	for n := 7; n > 0; n-- {
		d.left, d.right = left, right
		d.xTicks = d.withNamed(d.x.ticks(n), &d.X, touch)
		for range 3 { // more room on one side moves the ticks of the other
			for _, t := range d.xTicks {
				at, half := d.x.at(t.At), textWidth(t.Text)/2
				d.left = max(d.left, margin+half-at*(d.right-d.left))
				d.right = min(d.right, drawingWidth-margin-half+(1-at)*(d.right-d.left))
			}
		}
		fits := d.right-d.left > drawingWidth/4
		for i := range d.xTicks[:max(0, len(d.xTicks)-1)] {
			fits = fits && !touch(d.xTicks[i], d.xTicks[i+1])
		}
		if fits {
			return tickDrop + margin
		}
		if len(d.X.Categories) > 0 {
			break
		}
	}
	d.left, d.right = left, right
	if len(d.X.Categories) == 0 {
		// No number of ticks fits: the ends alone, cut.
		d.xTicks = d.xTicks[:min(1, len(d.xTicks))]
		for i := range d.xTicks {
			d.xTicks[i].Text = cut(d.xTicks[i].Text, (d.right-d.left)/3)
		}
		d.left, d.right = left+(d.right-d.left)/6, right-(d.right-d.left)/6
		return tickDrop + margin
	}
	return d.tilt()
}

// tilt turns the names below X, so that they end at their ticks. It returns their height.
func (d *drawing) tilt() float64 {
	d.tilted = true
	d.xTicks = thin(d.xTicks, int((d.right-d.left)/lineHeight))
	longest := 0.0
	for i := range d.xTicks {
		t := &d.xTicks[i]
		// The text runs down to the left; it must not leave the drawing there.
		x := d.left + d.x.at(t.At)*(d.right-d.left)
		t.Text = cut(t.Text, min(110, (x-margin)/math.Cos(tiltAngle)-lineHeight))
		longest = max(longest, textWidth(t.Text))
	}
	return longest*math.Sin(tiltAngle) + tickDrop + margin
}

const tiltAngle = math.Pi / 4

// thin keeps at most n ticks, evenly.
func thin(ticks []Tick, n int) []Tick {
	every := (len(ticks) + max(n, 1) - 1) / max(n, 1)
	var kept []Tick
	for i := 0; i < len(ticks); i += max(every, 1) {
		kept = append(kept, ticks[i])
	}
	return kept
}

// withNamed adds an axis's own ticks to the computed ones, which make way. It sorts them.
func (d *drawing) withNamed(ticks []Tick, a *Axis, touch func(a, b Tick) bool) []Tick {
	all := slices.Clone(a.Named)
	for _, t := range ticks {
		if !slices.ContainsFunc(a.Named, func(own Tick) bool { return touch(t, own) }) {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b Tick) int { return cmp.Compare(a.At, b.At) })
	return all
}

// px and py are where values stand in the drawing.
func (d *drawing) px(x float64) float64 { return d.left + d.x.at(x)*(d.right-d.left) }
func (d *drawing) py(y float64) float64 { return d.bottom - d.y.at(y)*(d.bottom-d.top) }

func (d *drawing) axes() {
	d.printf(`<path d="`)
	if len(d.X.Categories) == 0 {
		for _, t := range d.xTicks {
			d.printf("M%s %sV%s", short(d.px(t.At)), short(d.top), short(d.bottom))
		}
	}
	if len(d.Y.Categories) == 0 {
		for _, t := range d.yTicks {
			d.printf("M%s %sH%s", short(d.left), short(d.py(t.At)), short(d.right))
		}
	}
	d.printf(`" stroke="currentColor" stroke-opacity=".15" fill="none"/>`)
	d.printf(`<path d="M%s %sV%sH%s" stroke="currentColor" stroke-opacity=".6" fill="none"/>`,
		short(d.left), short(d.top), short(d.bottom), short(d.right))

	for _, t := range d.yTicks {
		d.text(d.left-margin, d.py(t.At)+fontSize*0.36, "end", t.Text)
	}
	below := d.bottom + tickDrop
	for _, t := range d.xTicks {
		if d.tilted {
			x, y := short(d.px(t.At)+fontSize*0.3), short(d.bottom+tickDrop-2)
			d.printf(`<text x="%s" y="%s" text-anchor="end" transform="rotate(-45 %s %s)">%s</text>`, x, y, x, y, escape(t.Text))
			continue
		}
		d.text(d.px(t.At), below, "middle", t.Text)
	}
	for i, line := range wrap(d.Y.Label, drawingWidth-2*margin, 3) {
		d.text(margin, margin+float64(i)*lineHeight+fontSize*0.8, "start", line)
	}
	labels := wrap(d.X.Label, drawingWidth-2*margin, 3)
	for i, line := range labels {
		y := d.label - float64(len(labels)-1-i)*lineHeight
		middle := (d.left + d.right) / 2
		half := textWidth(line) / 2
		d.text(min(max(middle, margin+half), drawingWidth-margin-half), y, "middle", line)
	}
}

func (d *drawing) text(x, y float64, anchor, text string) {
	d.printf(`<text x="%s" y="%s" text-anchor="%s">%s</text>`, short(x), short(y), anchor, escape(text))
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.out, format, args...) }

func short(v float64) string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
