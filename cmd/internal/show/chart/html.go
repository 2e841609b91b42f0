package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// colourStyle has the colours on dark pages. Those on light ones are in the drawing.
const colourStyle = `@media (prefers-color-scheme:dark){` +
	`.chart-c0{color:#56b4e9}.chart-c1{color:#e69f00}.chart-c2{color:#14b88a}.chart-c3{color:#cc79a7}` +
	`.chart-c4{color:#f0e442}.chart-c5{color:#e8743b}.chart-c6{color:#bbb}}`

// aloneStyle is for a drawing outside of a page.
const aloneStyle = `.chart-svg{background:#fff;color:#222}` +
	`@media (prefers-color-scheme:dark){.chart-svg{background:#16181c;color:#ddd}}`

// Style is the CSS that a page with figures must hold. The page's own colours are its own
// business; the figures follow its text.
const Style = `:root{color-scheme:light dark}
.chart{margin:0;max-width:640px;min-width:0}
.chart-svg{display:block;width:100%;height:auto}
.chart-title{font-weight:bold;margin:0 0 .3em}
.chart-key{margin:0 0 .4em;font-size:.85em}
.chart-key span{display:inline-block;margin-right:1.2em}
.chart-key svg{vertical-align:middle;margin-right:.35em}
.chart figcaption{font-size:.85em}
.chart figcaption p{margin:.3em 0}
.chart-scroll{overflow:auto;max-height:24em}
.chart table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.chart th,.chart td{padding:.1em .9em .1em 0;text-align:right;white-space:nowrap}
.chart th:first-child{text-align:left}
.chart tbody th{font-weight:normal}
` + colourStyle

// tableRows bounds the rows of a figure's table. A longer series is thinned out evenly.
const tableRows = 200

var figure = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("figure").Parse(figureText))
})

const figureText = `<figure class="chart">
{{- with .Title}}<p class="chart-title">{{.}}</p>{{end}}
{{- with .Key}}<p class="chart-key">{{range .}}<span>{{.Drawing}}{{.Name}}</span> {{end}}</p>{{end}}
{{- .SVG}}<figcaption>
{{- with .Caption}}<p>{{.}}</p>{{end}}
{{- if .Rows}}<details><summary>Numbers</summary><div class="chart-scroll" tabindex="0" role="region"
 {{- ""}} aria-label="Numbers{{with .Title}} of {{.}}{{end}}"><table><thead><tr>
 {{- range .Head}}<th scope="col">{{.}}</th>{{end}}</tr></thead><tbody>
{{range .Rows}}<tr>{{range $i, $text := .}}
 {{- if $i}}<td>{{$text}}</td>{{else}}<th scope="row">{{$text}}</th>{{end}}{{end}}</tr>
{{end}}</tbody></table></div>{{with .Note}}<p>{{.}}</p>{{end}}</details>{{end -}}
</figcaption></figure>
`

// HTML draws the chart as a <figure> for a page that holds Style.
func (c *Chart) HTML() (template.HTML, error) {
	svg, err := c.svg(false)
	if err != nil {
		return "", err
	}
	head, rows, note := c.table()
	var text strings.Builder
	err = figure().Execute(&text, map[string]any{
		"Title": c.Title, "Caption": c.Caption, "SVG": template.HTML(svg),
		"Key": c.htmlKey(), "Head": head, "Rows": rows, "Note": note,
	})
	if err != nil {
		return "", fmt.Errorf("chart %q: %w", c.Title, err)
	}
	return template.HTML(text.String()), nil
}

// table lists the numbers: a column for each series if they share X, otherwise a row for
// each value. A row of an axis with categories starts with its category. The note says what
// is left out.
func (c *Chart) table() (head []string, rows [][]string, note string) {
	var shown []*Series
	for i := range c.Series {
		if c.Series[i].len() > 0 {
			shown = append(shown, &c.Series[i])
		}
	}
	if len(shown) == 0 {
		return nil, nil, ""
	}
	x, y := cmp.Or(c.X.Label, "x"), cmp.Or(c.Y.Label, "y")
	if c.Y.Label == "" && len(c.Y.Categories) > 0 {
		y = "name"
	}
	if c.X.Label == "" && len(c.X.Categories) > 0 {
		x = "name"
	}
	every := 1
	for _, s := range shown {
		every = max(every, (s.len()+tableRows-1)/tableRows)
	}
	if every > 1 {
		note = fmt.Sprintf("One value in %d is listed.", every)
	}
	sharesX := func(s *Series) bool {
		if s.len() != shown[0].len() {
			return false
		}
		for i := range s.len() {
			if s.x(i) != shown[0].x(i) {
				return false
			}
		}
		return true
	}
	if len(c.Y.Categories) == 0 && !slices.ContainsFunc(shown, func(s *Series) bool { return !sharesX(s) }) {
		head = []string{x}
		for _, s := range shown {
			head = append(head, cmp.Or(s.Name, y))
		}
		for i := 0; i < shown[0].len(); i += every {
			row := []string{c.X.text(shown[0].x(i))}
			for _, s := range shown {
				row = append(row, strings.TrimSpace(c.Y.text(at(s.Y, i))+interval(s, i)))
			}
			rows = append(rows, row)
		}
		return head, rows, note
	}
	sideways := len(c.Y.Categories) > 0
	head = []string{"series", x, y}
	if sideways {
		head = []string{y, "series", x}
	}
	name, names := "", map[string]bool{}
	for _, s := range shown {
		name = cmp.Or(s.Name, name)
		names[name] = true
		for i := 0; i < s.len(); i += every {
			if sideways {
				rows = append(rows, []string{c.Y.text(at(s.Y, i)), name, c.X.text(s.x(i)) + interval(s, i)})
			} else {
				rows = append(rows, []string{name, c.X.text(s.x(i)), strings.TrimSpace(c.Y.text(at(s.Y, i)) + interval(s, i))})
			}
		}
	}
	if sideways && len(names) == 1 {
		head = slices.Delete(head, 1, 2)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 1, 2)
		}
	}
	return head, rows, note
}

// text writes a value of the axis: its category, or a number.
func (a *Axis) text(v float64) string {
	if i := int(v); v >= 0 && i < len(a.Categories) && float64(i) == v {
		return a.Categories[i]
	}
	if math.IsNaN(v) {
		return ""
	}
	return figures(v, 5)
}

// figures writes v with n digits and a true minus.
func figures(v float64, n int) string {
	return strings.ReplaceAll(strconv.FormatFloat(v, 'g', n, 64), "-", "−")
}

func interval(s *Series, i int) string {
	lo, hi := at(s.Lo, i), at(s.Hi, i)
	if math.IsNaN(lo) || math.IsNaN(hi) {
		return ""
	}
	return fmt.Sprintf(" (%s to %s)", figures(lo, 4), figures(hi, 4))
}
