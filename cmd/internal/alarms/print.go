package alarms

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"hamlet/cmd/internal/cli"
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
		line, err := json.Marshal(j)
		if err != nil {
			return fmt.Errorf("incident %s in JSON: %w", j.Incident, err)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("write the incidents: %w", err)
		}
	}
	return nil
}

func writeTable(w io.Writer, shown []*Incident) error {
	if len(shown) == 0 {
		_, err := fmt.Fprintln(w, "no such incident")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "incident\topened\tbody\tkind\taccused\tsteps, each at its event\treading")
	for _, i := range shown {
		last := i.Last()
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cli.Cell(i.ID()), i.First().Time.Local().Format("2006-01-02 15:04:05"),
			last.Body, last.Kind, cli.Cell(last.Accused), i.Steps(), cli.Cell(i.Reading()))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the incidents: %w", err)
	}
	return nil
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
