package papers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hamlet/cmd/internal/lab/experiment"
)

// classes are those of verdicts in the pages' style.
var classes = map[experiment.Verdict]string{
	experiment.Reproduced: "same", experiment.Better: "better", experiment.NotReproduced: "differs",
	experiment.NoVerdict: "none",
}

// sectionOf shows a result.
func sectionOf(r *experiment.Result) *experiment.Section {
	s := &experiment.Section{
		ID: filepath.Base(r.Name), Title: experiment.Text{Text: fmt.Sprintf("%s (%s)", r.Title, r.Where)},
		Lead:   []experiment.Text{{Text: r.Claim}, {Text: verdictLine(r), Class: classes[r.Verdict]}},
		Table:  experiment.Table{Head: [][]string{{"", "ours", "95 %", "source", "difference", ""}}},
		Charts: r.Charts,
		Foot: []experiment.Text{
			{Text: fmt.Sprintf("hamlet-lab run %s --seed %d, %s.", r.Name, r.Seed, r.Date)},
			{Text: "CSV", Link: r.Name + ".csv"}, {Text: "JSON", Link: r.Name + ".json"},
		},
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		s.Table.Rows = append(s.Table.Rows, experiment.TableRow{Cells: cellsOf(row), Class: classes[row.Verdict]})
	}
	for _, reason := range reasons(r.Rows) {
		s.Notes = append(s.Notes, experiment.Text{Text: "Not reproduced: " + reason, Class: "differs"})
	}
	s.Notes = append(s.Notes, experiment.Plain(r.Notes...)...)
	return s
}

// cellsOf returns a row as text: its name, our number and its interval, the source's, the
// difference and the verdict.
func cellsOf(r *experiment.Row) []string {
	form, digits := byte('f'), digitsOf(r)
	if large := math.Abs(r.Ours.Value); large >= 1e7 || large > 0 && large < 1e-7 && r.Ours.SE == 0 {
		form, digits = 'g', 4
	}
	text := func(v float64) string {
		return strings.Replace(strconv.FormatFloat(v, form, digits, 64), "-", "−", 1)
	}
	interval, paper, difference := "", r.Paper, ""
	if r.Ours.SE > 0 {
		lo, hi := r.Ours.Interval()
		interval = text(lo) + " to " + text(hi)
	}
	if r.Relation == experiment.AtMost || r.Relation == experiment.AtLeast {
		paper = string(r.Relation) + " " + r.Paper
	}
	if r.Slack > 0 && r.Relation != experiment.Alone {
		paper += " ± " + strconv.FormatFloat(r.Slack, 'g', 2, 64)
	}
	if d, ok := r.Difference(); ok && r.Relation == experiment.Equals {
		if difference = text(d); d >= 0 {
			difference = "+" + difference
		}
	}
	return []string{r.Name(), text(r.Ours.Value), interval, paper, difference, string(r.Verdict)}
}

// digitsOf returns how many decimal places tell our number and the source's apart: one
// more than the source prints, and enough for two digits of the standard error.
func digitsOf(r *experiment.Row) int {
	digits := 0
	if r.Relation != experiment.Alone {
		_, fraction, _ := strings.Cut(strings.TrimSpace(r.Paper), ".")
		digits = len(fraction) + 1
	}
	scale := r.Ours.SE / 10
	if scale <= 0 && r.Relation != experiment.Equals {
		scale = math.Abs(r.Ours.Value) / 1000
	}
	if scale > 0 {
		digits = max(digits, int(math.Ceil(-math.Log10(scale))))
	}
	return min(max(digits, 0), 9)
}

// reasons returns why rows are not reproduced, each once.
func reasons(rows []experiment.Row) []string {
	var all []string
	for _, row := range rows {
		if row.Verdict == experiment.NotReproduced && row.Reason != "" && !slices.Contains(all, row.Reason) {
			all = append(all, row.Reason)
		}
	}
	return all
}

// writePages makes index.html and a page for each source of all results in the folder,
// those of earlier runs included.
func writePages(folder string, now time.Time) error {
	foot := "Made by hamlet-lab run, " + now.UTC().Format("2006-01-02 15:04 UTC") + "."
	index := experiment.Page{Title: "The sources' tables and figures, computed again", Foot: foot}
	var all tally
	for _, source := range experiment.Sources {
		results, err := readResults(folder, source.Key)
		if err != nil {
			return err
		}
		if len(results) == 0 {
			continue
		}
		about := experiment.Text{Text: fmt.Sprintf("%s. %s.", source.Title, source.Authors), Class: "soft"}
		link := source.Key + ".html"
		entry := &experiment.Section{Title: experiment.Text{Text: source.Name, Link: link},
			Lead:  []experiment.Text{about},
			Table: experiment.Table{Head: [][]string{{"experiment", "rows", "verdict"}}}}
		page := experiment.Page{Title: source.Name, Foot: foot}
		var own tally
		for _, r := range results {
			own.add(r)
			all.add(r)
			s := sectionOf(r)
			page.Sections = append(page.Sections, s)
			entry.Table.Rows = append(entry.Table.Rows, experiment.TableRow{
				Cells: []string{r.Title, fmt.Sprint(r.Count.Judged()), verdictOf(r)}, Class: classes[r.Verdict],
				Link: link + "#" + s.ID,
			})
		}
		page.Lead = []experiment.Text{{Text: "All sources", Link: "index.html"}, about, {Text: own.String()}}
		if err := page.Write(filepath.Join(folder, link)); err != nil {
			return err
		}
		index.Sections = append(index.Sections, entry)
	}
	index.Lead = []experiment.Text{{Text: all.String()},
		{Class: "soft", Text: "A number is reproduced if it agrees with the " +
			"printed one within rounding and Monte Carlo error. It is better if it differs to the better side. " +
			"An experiment is not reproduced if one of its rows is not."}}
	return index.Write(filepath.Join(folder, "index.html"))
}

// readResults returns a source's results in the folder.
func readResults(folder, source string) (results []*experiment.Result, err error) {
	for _, e := range all() {
		if e.Source() != source {
			continue
		}
		path := filepath.Join(folder, filepath.FromSlash(e.Name)+".json")
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r := new(experiment.Result)
		if err := json.Unmarshal(text, r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		results = append(results, r)
	}
	return results, nil
}

// A tally counts the verdicts of experiments and of rows.
type tally struct {
	whole, rows            experiment.Count
	shown, missing, failed int
}

func (t *tally) add(r *experiment.Result) {
	switch {
	case r.Missing != "":
		t.missing++
	case r.Failed != "":
		t.failed++
	default:
		t.whole.Add(r.Verdict)
		t.rows.Merge(r.Count)
		if r.Verdict == experiment.NoVerdict {
			t.shown++
		}
	}
}

// String is the counts in two sentences.
func (t *tally) String() string {
	all := t.whole.Judged() + t.shown + t.missing + t.failed
	text := fmt.Sprintf("%d experiments: %v", all, t.whole)
	for _, more := range []struct {
		n    int
		what string
	}{{t.shown, "without a verdict"}, {t.missing, "without their data"}, {t.failed, "failed"}} {
		if more.n > 0 {
			text += fmt.Sprintf(", %d %s", more.n, more.what)
		}
	}
	return text + fmt.Sprintf(".\nTheir rows: %v.", t.rows)
}

// verdictOf says the verdict in two words.
func verdictOf(r *experiment.Result) string {
	switch {
	case r.Missing != "":
		return "data missing"
	case r.Failed != "":
		return "failed"
	case r.Verdict == experiment.NoVerdict:
		return "no verdict"
	}
	return string(r.Verdict)
}

// verdictLine says the verdict with the counts of rows, or why the result has no verdict.
func verdictLine(r *experiment.Result) string {
	switch {
	case r.Missing != "":
		return "not computed: " + r.Missing
	case r.Failed != "":
		return "failed: " + r.Failed
	case r.Count.Judged() == 0:
		return fmt.Sprintf("no verdict: the source gives no number (%.1f s, summed over its steps)", r.Seconds)
	}
	text := fmt.Sprintf("%s: %d of %d rows reproduced", r.Verdict, r.Count.Reproduced, r.Count.Judged())
	if r.Count.Better > 0 {
		text += fmt.Sprintf(", %d better", r.Count.Better)
	}
	if r.Count.NotReproduced > 0 {
		text += fmt.Sprintf(", %d not reproduced", r.Count.NotReproduced)
	}
	return text + fmt.Sprintf(" (%.1f s, summed over its steps)", r.Seconds)
}
