package bench

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"

	"hamlet/cmd/internal/chart"
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
	Style   template.CSS
	Figures []template.HTML
}

type pageRow struct {
	Name, Meaning string
	Cells         []string
}

type pagePair struct{ Name, ROCA, CPU string }

// writePage writes index.html, a self-contained file, into dir.
func (r *result) writePage(dir string) error {
	data := pageData{Summary: r.summary(), Notes: strings.Split(r.notes(), "\n"), Style: template.CSS(chart.Style)}
	for _, f := range r.filters {
		data.Names = append(data.Names, f.name)
	}
	for i := range rows {
		line := pageRow{Name: rows[i].name, Meaning: rows[i].meaning}
		for _, f := range r.filters {
			line.Cells = append(line.Cells, rows[i].text(f.figures[rows[i].figure]))
		}
		data.Rows = append(data.Rows, line)
	}
	speed, memory := pageRow{Name: "speed", Meaning: speedMeaning}, pageRow{Name: "memory", Meaning: memoryMeaning}
	for i := range r.filters {
		speed.Cells, memory.Cells = append(speed.Cells, r.filters[i].speedText()), append(memory.Cells, r.filters[i].memoryText())
	}
	data.Rows = append(data.Rows, speed, memory)
	for _, p := range r.pairs {
		data.Pairs = append(data.Pairs, pagePair{hamlet + " / " + p.other, ratioText(p.roca), ratioText(p.cpu)})
	}
	area, wrong := r.learningCharts()
	for _, c := range []*chart.Chart{r.rocChart(), area, wrong, r.reliabilityChart()} {
		if c == nil {
			continue
		}
		figure, err := c.HTML()
		if err != nil {
			return err
		}
		data.Figures = append(data.Figures, figure)
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
