package evalpage

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"hamlet/cmd/internal/show/chart"
	"hamlet/cmd/internal/show/report"
)

//go:embed page.html
var pageText string

var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Parse(pageText))
})

// A pageData is what the template shows.
type pageData struct {
	Style         template.CSS
	Summary, Made string
	Rows          []report.Row
	Figures       []template.HTML
	Alerts        [][]string
	Unlisted      int
	Sources       [][]string
	OtherSources  int
}

// Write writes index.html into dir: one file that needs no other. command made it.
func (r *Recorder) Write(dir string, result *report.Result, command string, now time.Time) error {
	if last := r.windows.all; len(last) > 0 {
		r.check(last[len(last)-1].to)
	}
	data := pageData{
		Style: template.CSS(chart.Style),
		Summary: fmt.Sprintf("%d events, %d spam and %d ham. Each was scored before it was learnt.",
			result.Events, result.Spam, result.Ham),
		Made:     fmt.Sprintf("Made by %s on %s.", command, now.UTC().Format("2006-01-02 15:04 UTC")),
		Rows:     result.Rows(),
		Unlisted: r.unlisted,
	}
	for _, c := range r.charts() {
		if c == nil || len(c.Series[0].X) == 0 {
			continue
		}
		figure, err := c.HTML()
		if err != nil {
			return err
		}
		data.Figures = append(data.Figures, figure)
	}
	for _, a := range r.alerts {
		data.Alerts = append(data.Alerts,
			[]string{strconv.FormatUint(a.event, 10), a.kind, a.state, a.body, a.accused, a.reading})
	}
	for _, s := range result.Sources {
		data.Sources = append(data.Sources, []string{s.Source, strconv.Itoa(s.Learnt), strconv.Itoa(s.Doubtful),
			fmt.Sprintf("%.2f %%", 100*float64(s.Doubtful)/float64(s.Learnt))})
	}
	data.OtherSources = r.others.events
	var b bytes.Buffer
	if err := page().Execute(&b, data); err != nil {
		return fmt.Errorf("page of the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "index.html"), b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
