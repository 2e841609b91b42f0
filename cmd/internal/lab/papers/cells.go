package papers

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hamlet/cmd/internal/lab/experiment"
)

// cells are a row as text.
type cells struct{ Name, Ours, Interval, Paper, Difference, Verdict string }

func cellsOf(r *experiment.Row) cells {
	digits := digitsOf(r)
	text := func(v float64) string { return strings.Replace(strconv.FormatFloat(v, 'f', digits, 64), "-", "−", 1) }
	c := cells{Name: r.What, Ours: text(r.Ours.Value), Paper: r.Paper, Verdict: string(r.Verdict)}
	if r.Group != "" {
		c.Name = r.Group + ", " + r.What
	}
	if large := math.Abs(r.Ours.Value); large >= 1e7 || large > 0 && large < 1e-7 && r.Ours.SE == 0 {
		text = func(v float64) string { return strings.Replace(strconv.FormatFloat(v, 'g', 4, 64), "-", "−", 1) }
		c.Ours = text(r.Ours.Value)
	}
	if r.Ours.SE > 0 {
		lo, hi := r.Ours.Interval()
		c.Interval = text(lo) + " to " + text(hi)
	}
	if r.Relation == experiment.AtMost || r.Relation == experiment.AtLeast {
		c.Paper = string(r.Relation) + " " + r.Paper
	}
	if r.Slack > 0 && r.Relation != experiment.Alone {
		c.Paper += " ± " + strconv.FormatFloat(r.Slack, 'g', 2, 64)
	}
	if d, ok := r.Difference(); ok && r.Relation == experiment.Equals {
		if c.Difference = text(d); d >= 0 {
			c.Difference = "+" + c.Difference
		}
	}
	return c
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

// writeCSV writes the rows as SOURCE/WHAT.csv.
func writeCSV(folder string, r *experiment.Result) error {
	path := filepath.Join(folder, filepath.FromSlash(r.Name)+".csv")
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := csv.NewWriter(file)
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	lines := [][]string{{"group", "what", "ours", "standard_error", "repetitions", "relation", "source", "verdict", "reason"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		reason := ""
		if row.Verdict == experiment.NotReproduced {
			reason = row.Reason
		}
		lines = append(lines, []string{row.Group, row.What, number(row.Ours.Value), number(row.Ours.SE), strconv.Itoa(row.Ours.N),
			string(row.Relation), row.Paper, string(row.Verdict), reason})
	}
	err = out.WriteAll(lines)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
