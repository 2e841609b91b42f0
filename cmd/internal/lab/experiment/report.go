package experiment

import (
	"errors"

	"hamlet/cmd/internal/chart"
)

// A Report is what an experiment found.
type Report struct {
	Rows   []Row         `json:"rows"`
	Charts []chart.Chart `json:"charts,omitempty"`
	Notes  []string      `json:"notes,omitempty"` // sentences below the table: protocol, departures, what a number means
}

// Figure adds a row for a number that the source prints.
func (p *Report) Figure(group, what string, ours Estimate, paper string, better Direction) *Row {
	return p.add(Row{Group: group, What: what, Ours: ours, Relation: Equals, Paper: paper, Better: better})
}

// Claim adds a row for a claim: ours is AtMost or AtLeast the bound.
func (p *Report) Claim(group, what string, ours Estimate, relation Relation, bound string) *Row {
	return p.add(Row{Group: group, What: what, Ours: ours, Relation: relation, Paper: bound})
}

// Show adds a row without a verdict.
func (p *Report) Show(group, what string, ours Estimate) *Row {
	return p.add(Row{Group: group, What: what, Ours: ours, Relation: Alone})
}

// add returns the row, so that its caller sets Reason, PaperSE or Slack before the next
// row is added.
func (p *Report) add(r Row) *Row {
	p.Rows = append(p.Rows, r)
	return &p.Rows[len(p.Rows)-1]
}

// Chart adds a picture.
func (p *Report) Chart(c chart.Chart) { p.Charts = append(p.Charts, c) }

// Note adds a sentence below the table.
func (p *Report) Note(sentence string) { p.Notes = append(p.Notes, sentence) }

// Judge sets the verdict of every row and returns that of all: NoVerdict if the source
// says nothing that could be compared.
func (p *Report) Judge() (Verdict, error) {
	random := 0
	for i := range p.Rows {
		if p.Rows[i].random() {
			random++
		}
	}
	within := bonferroni(random)
	for i := range p.Rows {
		if err := p.Rows[i].judge(within); err != nil {
			return NoVerdict, err
		}
	}
	for i := range p.Charts {
		if err := p.Charts[i].Validate(); err != nil {
			return NoVerdict, err
		}
	}
	count := p.Count()
	switch {
	case len(p.Rows) == 0:
		return NoVerdict, errors.New("nothing was computed")
	case count.Judged() == 0:
		return NoVerdict, nil
	case count.NotReproduced > 0:
		return NotReproduced, nil
	case count.Better > 0:
		return Better, nil
	}
	return Reproduced, nil
}

// A Count says how many rows have each verdict.
type Count struct {
	Reproduced    int `json:"reproduced"`
	Better        int `json:"better"`
	NotReproduced int `json:"not_reproduced"`
}

// Judged returns how many rows have a verdict.
func (c Count) Judged() int { return c.Reproduced + c.Better + c.NotReproduced }

// Add counts a verdict.
func (c *Count) Add(v Verdict) {
	switch v {
	case Reproduced:
		c.Reproduced++
	case Better:
		c.Better++
	case NotReproduced:
		c.NotReproduced++
	}
}

// Count counts the rows' verdicts.
func (p *Report) Count() (c Count) {
	for i := range p.Rows {
		c.Add(p.Rows[i].Verdict)
	}
	return c
}
