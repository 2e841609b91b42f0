package incidents

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/report"
)

// jsonIncident is a line of --json.
type jsonIncident struct {
	Incident    string            `json:"incident,omitempty"` // none of a program without incidents
	Open        bool              `json:"open"`
	Kind        string            `json:"kind"` // of the last transition, as state
	State       string            `json:"state"`
	Accused     string            `json:"accused,omitempty"`
	Body        string            `json:"body"`
	Model       string            `json:"model"`
	Partition   int               `json:"partition"`
	Opened      time.Time         `json:"opened"`
	Changed     time.Time         `json:"changed"`
	Transitions []json.RawMessage `json:"transitions"` // the alerts
}

func writeJSON(w io.Writer, shown []*Incident) error {
	all := make([]jsonIncident, len(shown))
	for k, i := range shown {
		last := i.Last()
		all[k] = jsonIncident{
			Incident: i.ID(), Open: i.Open(), Kind: last.Kind, State: last.State, Accused: last.Accused, Body: last.Body,
			Model: last.Model, Partition: last.Partition, Opened: i.First().Time, Changed: last.Time,
		}
		for n := range i.Alerts {
			line, err := i.Alerts[n].AppendJSON(nil)
			if err != nil {
				return err
			}
			all[k].Transitions = append(all[k].Transitions, line)
		}
	}
	return report.PrintLines(w, all)
}

func writeTable(w io.Writer, shown []*Incident) error {
	if len(shown) == 0 {
		return cli.Print(w, "no such incident\n")
	}
	table := report.NewTable("incident", "opened", "body", "kind", "accused", "steps, each at its event", "reading")
	for _, i := range shown {
		last := i.Last()
		table.Add(cli.Cell(i.ID()), i.First().Time.Local().Format(time.DateTime), last.Body, last.Kind,
			cli.Cell(last.Accused),
			i.Steps(), cli.Cell(i.Reading()))
	}
	return cli.Print(w, table.String())
}

// Steps returns the states of an incident in order, each with its event count. What is open
// says so at the end.
func (i *Incident) Steps() string {
	var all []string
	for k := range i.Alerts {
		all = append(all, fmt.Sprintf("%s %d", i.Alerts[k].State, i.Alerts[k].Event))
	}
	if i.Open() {
		all = append(all, "open")
	}
	return strings.Join(all, ", ")
}
