package bench

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/vg"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// A pageData is what the template shows.
type pageData struct {
	Summary string
	Names   []string
	Rows    []pageRow
	Pairs   []pagePair
	Notes   []string
	Legend  []pageKey
	Charts  []pageChart
}

// A pageKey is an entry of the legend.
type pageKey struct{ Name, Color, Dashes string }

type pageRow struct {
	Name, Meaning string
	Cells         []string
}

type pagePair struct{ Name, ROCA, CPU string }

type pageChart struct {
	Title, Caption string
	SVG            template.HTML
}

// writePage writes index.html, a self-contained file, into dir.
func (r *result) writePage(dir string) error {
	data := pageData{Summary: r.summary(), Notes: strings.Split(r.notes(), "\n")}
	for i, f := range r.filters {
		data.Names = append(data.Names, f.name)
		style := palette[i%len(palette)]
		data.Legend = append(data.Legend, pageKey{f.name, hexOf(style.color), dashesOf(style.dashes)})
	}
	for i := range rows {
		line := pageRow{Name: rows[i].name, Meaning: rows[i].meaning}
		for _, f := range r.filters {
			line.Cells = append(line.Cells, rows[i].text(f.figures[rows[i].figure]))
		}
		data.Rows = append(data.Rows, line)
	}
	for _, p := range r.pairs {
		data.Pairs = append(data.Pairs, pagePair{hamlet + " / " + p.other, ratioText(p.roca), ratioText(p.cpu)})
	}
	area, wrong := r.learningCharts()
	for _, c := range []struct {
		*chart
		title, caption string
	}{
		{r.rocChart(), "ROC", "Every threshold of a filter: lower and further left is better. Both scales are logarithmic; none counts as half a message."},
		{area, "Learning: 1-ROCA%", "Over all messages so far, as each was scored before it was taught. Zero is drawn at the lower edge."},
		{wrong, "Learning: error", "Over all messages so far, by the filter's own class. Zero is drawn at the lower edge."},
		{r.reliabilityChart(), "Reliability", "How often it was spam where a filter answered p. On the diagonal p is right. Scales are those of log-odds, bars are 95 % intervals. Values beyond the edges are drawn on them."},
	} {
		if c.chart == nil {
			continue
		}
		svg, err := c.svg(c.title)
		if err != nil {
			return err
		}
		data.Charts = append(data.Charts, pageChart{c.title, c.caption, template.HTML(svg)})
	}
	return writeIndex(dir, page, data)
}

// writeIndex writes index.html, made by a template, into dir.
func writeIndex(dir string, t *template.Template, data any) error {
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "index.html"), b.Bytes(), 0o644)
}

func hexOf(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// dashesOf writes dashes as the attribute stroke-dasharray.
func dashesOf(dashes []vg.Length) string { return strings.Trim(fmt.Sprint(dashes), "[]") }

// standalone removes the prologue of an SVG, adds a title, and sets common fonts.
func standalone(svg, title string) string {
	if i := strings.Index(svg, "<svg"); i >= 0 {
		svg = svg[i:]
	}
	head, body, _ := strings.Cut(svg, ">")
	head += ` role="img"><title>` + html.EscapeString(title) + "</title>"
	return strings.ReplaceAll(head+body, "font-family:Liberation Sans", "font-family:Helvetica,Arial,Liberation Sans,sans-serif")
}
