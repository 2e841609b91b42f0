package incidents

import (
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/service/answered"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// An Incident is its alerts in the order of their transitions; at least one.
type Incident struct{ Alerts []stream.Alert }

// First returns the alert that opened the incident.
func (i *Incident) First() *stream.Alert { return &i.Alerts[0] }

// Last returns the newest alert.
func (i *Incident) Last() *stream.Alert { return &i.Alerts[len(i.Alerts)-1] }

// ID returns stream.Alert.IncidentID: "" for an alert of a program without incidents.
func (i *Incident) ID() string { return i.Last().IncidentID() }

// Open reports whether the incident is suspected or raised, and not over.
func (i *Incident) Open() bool {
	s := i.Last().State
	return s == stream.AlertSuspected || s == stream.AlertRaised
}

// Reading returns what the last alert that was not an end says.
func (i *Incident) Reading() string {
	for k := len(i.Alerts) - 1; k >= 0; k-- {
		if a := &i.Alerts[k]; a.State == stream.AlertSuspected || a.State == stream.AlertRaised {
			return a.Reading
		}
	}
	return ""
}

// doubts returns the times in which the incident says that p may be wrong by more than its interval: while it
// is suspected, or named anything but covariate. Mail unlike anything learnt makes intervals wide, as it should. A
// suspicion that came to nothing, or to covariate, was none.
func (i *Incident) doubts() (all answered.Doubts) {
	var open *answered.Doubt
	for k := range i.Alerts {
		a := &i.Alerts[k]
		switch {
		case a.State == stream.AlertWithdrawn, a.State == stream.AlertRaised && a.Kind == stream.AlertCovariate:
			open = nil
		case a.State == stream.AlertSuspected || a.State == stream.AlertRaised:
			if open == nil {
				open = &answered.Doubt{From: a.Time}
			}
			open.Kind = a.Kind
		case open != nil:
			open.To = a.Time
			all = append(all, *open)
			open = nil
		}
	}
	if open != nil {
		all = append(all, *open)
	}
	return all
}

// Doubts returns the times in which p was in doubt, by the incidents of its model.
func Doubts(all []*Incident) (doubts answered.Doubts) {
	for _, i := range all {
		doubts = append(doubts, i.doubts()...)
	}
	return doubts
}

// Read returns the incidents of a model that NATS keeps, in the order in which they were
// opened. Without a stream of alerts there are none. damaged counts alerts that cannot be
// read.
func Read(ctx context.Context, conn *natsgo.Conn, model string) (all []*Incident, damaged int, err error) {
	var n incidents
	for a, err := range nats.ReadAlerts(ctx, conn, model, time.Time{}) {
		switch {
		case errors.As(err, new(*nats.MessageError)):
			damaged++
		case err != nil:
			return nil, damaged, err
		default:
			n.add(&a)
		}
	}
	return n.all, damaged, nil
}

// incidents are those of one model, in the order in which they were opened.
type incidents struct {
	all  []*Incident
	byID map[string]*Incident
}

// add joins an alert to its incident. A copy is dropped: the server knows copies for 30 days
// only. An alert of a program without incidents is one alone, unless it clears one.
func (n *incidents) add(a *stream.Alert) {
	if n.byID == nil {
		n.byID = map[string]*Incident{}
	}
	id := a.IncidentID()
	if id == "" {
		id = fmt.Sprintf("%d %s %s", a.Partition, a.Kind, a.Body)
	}
	i := n.byID[id]
	switch {
	case i == nil, a.Incident == 0 && !i.Open():
		i = &Incident{Alerts: []stream.Alert{*a}}
		n.byID[id], n.all = i, append(n.all, i)
	case a.Incident == 0 || a.Transition > i.Last().Transition:
		i.Alerts = append(i.Alerts, *a)
	}
}

// newest returns the last limit of the wanted incidents, or all if limit is 0.
func newest(all []*Incident, limit int, wanted func(*Incident) bool) (shown []*Incident) {
	for _, i := range all {
		if wanted(i) {
			shown = append(shown, i)
		}
	}
	if limit > 0 && len(shown) > limit {
		shown = shown[len(shown)-limit:]
	}
	return shown
}
