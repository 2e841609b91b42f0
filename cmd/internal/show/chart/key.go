package chart

import (
	"html/template"
	"strings"
)

const (
	sampleWidth = 26.0 // of the sample of a series in the legend
	sampleGap   = 5.0
)

// A keyEntry is a series in the legend of a page.
type keyEntry struct {
	Name    string
	Drawing template.HTML
}

// htmlKey is the legend of a figure.
func (c *Chart) htmlKey() (all []keyEntry) {
	d := &drawing{Chart: c, styles: c.styles()}
	for i := range c.Series {
		if !d.styles[i].entry {
			continue
		}
		d.out.Reset()
		d.printf(`<svg width="26" height="12" viewBox="0 0 26 12" aria-hidden="true">`)
		d.sample(i, 0, 6)
		d.printf("</svg>")
		all = append(all, keyEntry{c.Series[i].Name, template.HTML(d.out.String())})
	}
	return all
}

// A keyRow is a line of the legend of a drawing: series and where they start.
type keyRow struct {
	series []int
	xs     []float64
	names  []string
}

// keyRows breaks the legend into lines.
func (d *drawing) keyRows() (rows []keyRow) {
	x := margin
	for i := range d.Series {
		if !d.styles[i].entry {
			continue
		}
		name := cut(strings.Join(strings.Fields(d.Series[i].Name), " "), drawingWidth-2*margin-sampleWidth-sampleGap)
		wide := sampleWidth + sampleGap + textWidth(name)
		if len(rows) == 0 || x+wide > drawingWidth-margin {
			rows, x = append(rows, keyRow{}), margin
		}
		row := &rows[len(rows)-1]
		row.series, row.xs, row.names = append(row.series, i), append(row.xs, x), append(row.names, name)
		x += wide + 2*margin
	}
	return rows
}

func (d *drawing) key(rows []keyRow) {
	for r, row := range rows {
		y := d.height - margin - float64(len(rows)-1-r)*lineHeight
		for k, i := range row.series {
			d.sample(i, row.xs[k], y-fontSize*0.36)
			d.text(row.xs[k]+sampleWidth+sampleGap, y, "start", row.names[k])
		}
	}
}

// sample draws a series' look in little.
func (d *drawing) sample(i int, x, y float64) {
	s := &d.Series[i]
	d.open(i)
	left, right := short(x), short(x+sampleWidth)
	switch s.Kind {
	case Bars:
		fill, dash := ".75", ""
		if s.Reference {
			fill, dash = ".08", ` stroke-dasharray="3 2"`
		}
		d.printf(`<path d="M%s %sh10v8h-10Z" fill="currentColor" fill-opacity="%s"%s/>`, short(x+8), short(y-4), fill, dash)
	case Line, Steps:
		wide, dash := "1.8", dashes[d.styles[i].dash]
		if s.Reference {
			wide, dash = "1.2", "3 3"
		}
		d.printf(`<path d="M%s %sH%s" stroke-width="%s"`, left, short(y), right, wide)
		if dash != "" {
			d.printf(` stroke-dasharray="%s"`, dash)
		}
		d.printf("/>")
	}
	if s.Kind == Points || s.Reference && s.Kind != Bars {
		d.mark(i, x+sampleWidth/2, y)
	}
	d.printf("</g>")
}
