package incidents

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"hamlet/cmd/internal/process/cli"
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
	for _, i := range shown {
		last := i.Last()
		j := jsonIncident{
			Incident: i.ID(), Open: i.Open(), Kind: last.Kind, State: last.State, Accused: last.Accused, Body: last.Body,
			Model: last.Model, Partition: last.Partition, Opened: i.First().Time, Changed: last.Time,
		}
		for k := range i.Alerts {
			line, err := i.Alerts[k].AppendJSON(nil)
			if err != nil {
				return err
			}
			j.Transitions = append(j.Transitions, line)
		}
		if err := cli.PrintJSON(w, j); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(w io.Writer, shown []*Incident) error {
	if len(shown) == 0 {
		return cli.Print(w, "no such incident\n")
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "incident\topened\tbody\tkind\taccused\tsteps, each at its event\treading")
	for _, i := range shown {
		last := i.Last()
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cli.Cell(i.ID()), i.First().Time.Local().Format(time.DateTime),
			last.Body, last.Kind, cli.Cell(last.Accused), i.Steps(), cli.Cell(i.Reading()))
	}
	return cli.Written(table.Flush())
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
