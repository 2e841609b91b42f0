package chart

import (
	"math"
	"slices"
	"strings"
)

// A style is how one series is drawn.
type style struct {
	colour, dash, mark int // numbers of the tables below
	entry              bool
}

// The colours of Okabe and Ito (2008), for the colour-blind. colourStyle has those for
// dark pages. Yellow is left out: it is invisible on white.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"}

// Each colour has a dash, so that lines differ on paper too.
var dashes = []string{"", "7 3", "2 2", "9 2 2 2", "4 2", "1 2", "12 3"}

// marks are drawn around the origin, about 3 units to each side.
var marks = []string{
	"M-3 0A3 3 0 1 0 3 0A3 3 0 1 0-3 0Z",     // circle
	"M-2.7-2.7H2.7V2.7H-2.7Z",                // square
	"M0-3.6 3.4 2.6H-3.4Z",                   // triangle
	"M0-3.8 3.8 0 0 3.8-3.8 0Z",              // diamond
	"M-3-3 3 3M-3 3 3-3",                     // cross
	"M0 3.6 3.4-2.6H-3.4Z",                   // triangle, upside down
	"M0-3.6V3.6M-3.6 0H3.6M-2.5-2.5 2.5 2.5", // star
}

// styles gives each name a colour, a dash and a mark.
func (c *Chart) styles() []style {
	all := make([]style, len(c.Series))
	names := c.names()
	last := 0
	seen := map[string]bool{}
	for i, s := range c.Series {
		if s.Name != "" {
			last = slices.Index(names, s.Name)
		}
		n := len(colours)
		// The second round of colours has other dashes and marks.
		all[i] = style{last % n, (last + last/n) % n, (last + last/n) % n, false}
		key := s.Name + "\x00" + string(s.Kind)
		if s.Reference {
			key += "\x00reference"
		}
		all[i].entry = s.Name != "" && !seen[key]
		seen[key] = true
	}
	return all
}

// series draws all series: areas first, then lines, then marks.
func (d *drawing) series() {
	layers := []func(int){
		func(i int) {
			if s := &d.Series[i]; (s.Kind == Line || s.Kind == Steps) && len(s.Lo) > 0 {
				d.band(s)
			}
		},
		func(i int) {
			if s := &d.Series[i]; s.Kind == Bars {
				d.bars(i)
			}
		},
		func(i int) {
			if s := &d.Series[i]; s.Kind == Line || s.Kind == Steps {
				d.line(i)
			}
		},
		func(i int) {
			if s := &d.Series[i]; s.Kind == Points {
				d.points(i)
			}
		},
	}
	for _, draw := range layers {
		for i := range d.Series {
			start := d.out.Len()
			d.open(i)
			inside := d.out.Len()
			if draw(i); d.out.Len() == inside {
				d.out.Truncate(start)
				continue
			}
			d.printf("</g>")
		}
	}
}

// open starts the group of a series, which has its colour.
func (d *drawing) open(i int) {
	d.printf(`<g class="chart-c%d" color="%s"`, d.styles[i].colour, colours[d.styles[i].colour])
	if d.Series[i].Faint {
		d.printf(` opacity=".65"`)
	}
	d.printf(` stroke="currentColor" fill="none">`)
}

// band fills the area between Lo and Hi, in parts where there are gaps.
func (d *drawing) band(s *Series) {
	for from := 0; from < s.len(); from++ {
		to := from
		for to < s.len() && !math.IsNaN(s.Lo[to]) && !math.IsNaN(s.Hi[to]) {
			to++
		}
		if to == from {
			continue
		}
		var path strings.Builder
		command := "M"
		point := func(i int, v float64) {
			path.WriteString(command + short(d.px(s.x(i))) + " " + short(d.py(v)))
			command = "L"
		}
		for i := from; i < to; i++ {
			if s.Kind == Steps && i > from {
				path.WriteString("H" + short(d.px(s.x(i))))
			}
			point(i, s.Hi[i])
		}
		for i := to - 1; i >= from; i-- {
			point(i, s.Lo[i])
			if s.Kind == Steps && i > from {
				path.WriteString("V" + short(d.py(s.Lo[i-1])))
			}
		}
		d.printf(`<path d="%sZ" fill="currentColor" fill-opacity=".18" stroke="none"/>`, path.String())
		from = to
	}
}

// line joins the values. A value between two gaps is a dot.
func (d *drawing) line(i int) {
	s := &d.Series[i]
	var path, dots strings.Builder
	for k := range s.len() {
		if math.IsNaN(s.Y[k]) {
			continue
		}
		x, y := short(d.px(s.x(k))), short(d.py(s.Y[k]))
		before := k > 0 && !math.IsNaN(s.Y[k-1])
		after := k+1 < s.len() && !math.IsNaN(s.Y[k+1])
		switch {
		case before && s.Kind == Steps:
			path.WriteString("H" + x + "V" + y)
		case before:
			path.WriteString("L" + x + " " + y)
		case after:
			path.WriteString("M" + x + " " + y)
		default:
			dots.WriteString("M" + x + " " + y + "h0")
		}
	}
	wide, dash := "1.8", dashes[d.styles[i].dash]
	if s.Reference {
		wide, dash = "1.2", "3 3"
	}
	if s.Faint {
		wide = "1"
	}
	if path.Len() > 0 {
		d.printf(`<path d="%s" stroke-width="%s" stroke-linejoin="round"`, path.String(), wide)
		if dash != "" {
			d.printf(` stroke-dasharray="%s"`, dash)
		}
		d.printf("/>")
	}
	if dots.Len() > 0 {
		d.printf(`<path d="%s" stroke-width="5" stroke-linecap="round"/>`, dots.String())
	}
	if s.Reference && s.len() <= 60 {
		d.points(i)
	}
}

func (d *drawing) points(i int) {
	s := &d.Series[i]
	sideways := len(d.Y.Categories) > 0
	if s.Kind == Points {
		var path strings.Builder
		for k := range s.len() {
			lo, hi := at(s.Lo, k), at(s.Hi, k)
			if math.IsNaN(lo) || math.IsNaN(hi) || math.IsNaN(s.Y[k]) {
				continue
			}
			if sideways {
				path.WriteString(errorBar(d.py(s.Y[k]), d.px(lo), d.px(hi), true))
			} else {
				path.WriteString(errorBar(d.px(s.x(k)), d.py(lo), d.py(hi), false))
			}
		}
		if path.Len() > 0 {
			d.printf(`<path d="%s"/>`, path.String())
		}
	}
	for k := range s.len() {
		if !math.IsNaN(s.Y[k]) {
			d.mark(i, d.px(s.x(k)), d.py(s.Y[k]))
		}
	}
}

// mark draws a series' mark: filled, or hollow for a reference.
func (d *drawing) mark(i int, x, y float64) {
	fill := "currentColor"
	if d.Series[i].Reference {
		fill = "none"
	}
	d.printf(`<path transform="translate(%s %s)" d="%s" fill="%s" stroke-width="1.3"/>`,
		short(x), short(y), marks[d.styles[i].mark], fill)
}

// errorBar is the path of an interval with caps.
func errorBar(at, lo, hi float64, sideways bool) string {
	a, l, h := short(at), short(lo), short(hi)
	if sideways {
		return "M" + l + " " + a + "H" + h + "m0-2v4M" + l + " " + a + "m0-2v4"
	}
	return "M" + a + " " + l + "V" + h + "m-2 0h4M" + a + " " + l + "m-2 0h4"
}

// groups is how many series of bars stand side by side.
func (d *drawing) groups() (n int) {
	for i := range d.Series {
		if d.Series[i].Kind == Bars {
			n++
		}
	}
	return n
}

// barSlot is the room of a bar, or of a group of them, in the axis's own units.
func (d *drawing) barSlot(s *Series) float64 {
	if len(d.X.Categories) > 0 || len(d.Y.Categories) > 0 || s.len() < 2 {
		return 1
	}
	xs := make([]float64, s.len())
	for i := range xs {
		xs[i] = s.x(i)
	}
	slices.Sort(xs)
	slot := math.Inf(1)
	for i := range xs[1:] {
		if gap := xs[i+1] - xs[i]; gap > 0 {
			slot = min(slot, gap)
		}
	}
	if math.IsInf(slot, 1) {
		return 1
	}
	return slot
}

// bars draws bars side by side with those of the other series.
func (d *drawing) bars(i int) {
	s := &d.Series[i]
	groups, nth := d.groups(), 0
	for k := range i {
		if d.Series[k].Kind == Bars {
			nth++
		}
	}
	sideways := len(d.Y.Categories) > 0
	slot := d.barSlot(s)
	fill, more := ".75", ""
	if s.Reference {
		fill, more = ".08", ` stroke-dasharray="3 2"`
	}
	for k := range s.len() {
		if math.IsNaN(s.Y[k]) {
			continue
		}
		// Where the bar's sides are, across its axis, and its ends along the other.
		var near, far, from, to, lo, hi float64
		if sideways {
			near, far = d.py(s.Y[k]+slot/2), d.py(s.Y[k]-slot/2)
			from, to = d.left+d.x.base()*(d.right-d.left), d.px(s.x(k))
			lo, hi = d.px(at(s.Lo, k)), d.px(at(s.Hi, k))
		} else {
			near, far = d.px(s.x(k)-slot/2), d.px(s.x(k)+slot/2)
			from, to = d.bottom-d.y.base()*(d.bottom-d.top), d.py(s.Y[k])
			lo, hi = d.py(at(s.Lo, k)), d.py(at(s.Hi, k))
		}
		wide := (far - near) * 0.8 / float64(groups)
		start := near + (far-near)*0.1 + float64(nth)*wide
		if sideways {
			d.printf(`<path d="M%s %sH%sv%sH%sZ" fill="currentColor" fill-opacity="%s"%s/>`,
				short(from), short(start), short(to), short(wide), short(from), fill, more)
		} else {
			d.printf(`<path d="M%s %sV%sh%sV%sZ" fill="currentColor" fill-opacity="%s"%s/>`,
				short(start), short(from), short(to), short(wide), short(from), fill, more)
		}
		if !math.IsNaN(lo) && !math.IsNaN(hi) {
			d.printf(`<path d="%s" stroke-width="1.4" class="chart-error"/>`, errorBar(start+wide/2, lo, hi, sideways))
		}
	}
}
