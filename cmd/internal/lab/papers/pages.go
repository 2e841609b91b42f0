package papers

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"hamlet/cmd/internal/chart"
	"hamlet/cmd/internal/lab/experiment"
)

//go:embed pages.html
var pagesText string

var pages = template.Must(template.New("").Parse(pagesText))

// A site is what all pages show.
type site struct {
	Style   template.CSS
	Sources []*sourcePage
	Rows    experiment.Count // of all experiments
	Whole   experiment.Count // experiments
	Missing int
	Made    string
}

type sourcePage struct {
	experiment.Source
	Results []*resultPage
	Whole   experiment.Count
	Missing int
	Site    *site
}

type resultPage struct {
	experiment.Result
	ID      string // of its section
	Summary string
	Table   []rowCells
	Reasons []string // why rows are not reproduced
	Figures []template.HTML
	Command string
}

type rowCells struct {
	cells
	Class string
}

// writePages makes index.html and a page for each source of all results in the folder,
// those of earlier runs included.
func writePages(folder string, now time.Time) error {
	s := &site{Style: template.CSS(chart.Style), Made: now.UTC().Format("2006-01-02 15:04 UTC")}
	list := all()
	for _, source := range experiment.Sources {
		page := &sourcePage{Source: source, Site: s}
		for _, e := range list {
			if e.Source() != source.Key {
				continue
			}
			result, err := readResult(folder, e.Name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			r, err := newResultPage(result)
			if err != nil {
				return err
			}
			page.add(r)
		}
		if len(page.Results) > 0 {
			s.Sources = append(s.Sources, page)
		}
	}
	if err := writePage(filepath.Join(folder, "index.html"), "index", s); err != nil {
		return err
	}
	for _, page := range s.Sources {
		if err := writePage(filepath.Join(folder, page.Key+".html"), "source", page); err != nil {
			return err
		}
	}
	return nil
}

func (p *sourcePage) add(r *resultPage) {
	p.Results = append(p.Results, r)
	if r.Missing != "" || r.Failed != "" {
		p.Missing++
		p.Site.Missing++
		return
	}
	p.Whole.Add(r.Verdict)
	p.Site.Whole.Add(r.Verdict)
	p.Site.Rows.Reproduced += r.Count.Reproduced
	p.Site.Rows.Better += r.Count.Better
	p.Site.Rows.NotReproduced += r.Count.NotReproduced
}

func readResult(folder, name string) (*experiment.Result, error) {
	path := filepath.Join(folder, filepath.FromSlash(name)+".json")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r experiment.Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r, nil
}

func newResultPage(result *experiment.Result) (*resultPage, error) {
	r := &resultPage{Result: *result, ID: filepath.Base(result.Name), Summary: "not computed",
		Command: fmt.Sprintf("hamlet lab run %s --seed %d", result.Name, result.Seed)}
	if result.Missing == "" && result.Failed == "" {
		r.Summary = verdictLine(result)
	}
	for i := range result.Rows {
		row := &result.Rows[i]
		r.Table = append(r.Table, rowCells{cells: cellsOf(row), Class: classOf(row.Verdict)})
	}
	r.Reasons = reasons(result.Rows)
	for i := range result.Charts {
		figure, err := result.Charts[i].HTML()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", result.Name, err)
		}
		r.Figures = append(r.Figures, figure)
	}
	return r, nil
}

// Class returns the class of the experiment's verdict in the pages' style.
func (r *resultPage) Class() string { return classOf(r.Verdict) }

func classOf(v experiment.Verdict) string {
	switch v {
	case experiment.Reproduced:
		return "same"
	case experiment.Better:
		return "better"
	case experiment.NotReproduced:
		return "differs"
	}
	return "none"
}

func writePage(path, name string, data any) error {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// writePictures writes each chart into a file of its own: SOURCE/WHAT-1.svg and so on.
func writePictures(folder string, r *experiment.Result) error {
	for i := range r.Charts {
		var b bytes.Buffer
		if err := r.Charts[i].WriteSVG(&b); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		path := filepath.Join(folder, filepath.FromSlash(r.Name)+fmt.Sprintf("-%d.svg", i+1))
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
