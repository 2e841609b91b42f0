package incidents

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/answered"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
)

// alertOf returns a transition of an incident of partition 0.
func alertOf(incident uint64, transition int, kind, state string, event uint64) stream.Alert {
	return stream.Alert{
		Incident: incident, Transition: transition, Kind: kind, State: state, Event: event,
		Body: stream.AlertText, Reading: "reading of " + kind, Model: "default",
	}
}

func shown(t *testing.T, alerts []stream.Alert, limit int, wanted func(*Incident) bool) []string {
	t.Helper()
	var all incidents
	for i := range alerts {
		all.add(&alerts[i])
	}
	var table strings.Builder
	if err := writeTable(&table, newest(all.all, limit, wanted)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(table.String()), "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return lines
}

func every(*Incident) bool { return true }

// Transitions of two incidents that take turns are joined by incident, and copies are dropped.
func TestAlertsAreJoinedToIncidents(t *testing.T) {
	source := alertOf(300, 1, stream.AlertSource, stream.AlertRaised, 300)
	source.Accused, source.Body = "desk\x1b[2J", stream.AlertVector
	got := shown(t, []stream.Alert{
		alertOf(100, 1, stream.AlertUnknown, stream.AlertSuspected, 100),
		source,
		alertOf(100, 2, stream.AlertConcept, stream.AlertRaised, 190),
		alertOf(100, 1, stream.AlertUnknown, stream.AlertSuspected, 100), // a copy, after 30 days
		alertOf(100, 3, stream.AlertConcept, stream.AlertCleared, 900),
	}, 0, every)
	for i, want := range []string{
		"incident opened body kind accused steps, each at its event reading",
		"default.0.100 0001-01-01 00:00:00 text concept - suspected 100, raised 190, cleared 900 reading of concept",
		"default.0.300 0001-01-01 00:00:00 vector source desk\ufffd[2J raised 300, open reading of source",
	} {
		if got[i] != want && !(i > 0 && strings.HasSuffix(got[i], want[strings.Index(want, "00:00:00")+8:])) {
			t.Errorf("line %d: %q, want %q", i, got[i], want)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d lines", len(got))
	}
}

// What a program without incidents published is joined where a name was cleared.
func TestAlertsWithoutIncidents(t *testing.T) {
	got := shown(t, []stream.Alert{
		alertOf(0, 0, stream.AlertConcept, stream.AlertRaised, 10), alertOf(0, 0, stream.AlertCovariate, stream.AlertRaised, 11),
		alertOf(0, 0, stream.AlertConcept, stream.AlertCleared, 20), alertOf(0, 0, stream.AlertConcept, stream.AlertRaised, 30),
	}, 0, every)
	for i, want := range []string{"raised 10, cleared 20 reading of concept", "raised 11, open reading of covariate", "raised 30, open reading of concept"} {
		if !strings.HasPrefix(got[i+1], "- ") || !strings.HasSuffix(got[i+1], want) {
			t.Errorf("line %d: %q, want %q", i+1, got[i+1], want)
		}
	}
}

// The command reads what a learner published, in words and as JSON.
func TestAlarms(t *testing.T) {
	server, err := embedded.StartNATS(embedded.NATSOptions{Dir: t.TempDir(), Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	alarms := func(args ...string) string {
		t.Helper()
		c := Command{Limit: 50, Server: server.URL()}
		c.Model = "default"
		for _, a := range args {
			switch a {
			case "--open":
				c.Open = true
			case "--json":
				c.JSON = true
			case "--since":
				c.Since = "1h"
			}
		}
		var out, errs bytes.Buffer
		if err := c.Run(t.Context(), cli.IO{Out: &out, Err: &errs}); err != nil || errs.Len() > 0 {
			t.Fatal(err, errs.String())
		}
		return out.String()
	}
	if got := alarms(); got != "no such incident\n" {
		t.Errorf("without a stream: %q", got)
	}
	conn, err := nats.Connect(nats.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	publisher, err := nats.NewAlerts(conn, nats.AlertsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := publisher.Publish(t.Context(),
		alertOf(100, 1, stream.AlertUnknown, stream.AlertSuspected, 100), alertOf(100, 2, stream.AlertUnknown, stream.AlertWithdrawn, 500),
		alertOf(700, 1, stream.AlertUnknown, stream.AlertSuspected, 700), alertOf(700, 2, stream.AlertConcept, stream.AlertRaised, 790)); err != nil {
		t.Fatal(err)
	}
	if got := alarms("--since"); strings.Count(got, "\n") != 3 || !strings.Contains(got, "suspected 100, withdrawn 500     reading of unknown") ||
		!strings.Contains(got, "suspected 700, raised 790, open") {
		t.Errorf("alarms:\n%s", got)
	}
	var one struct {
		Incident, Kind, State string
		Open                  bool
		Transitions           []json.RawMessage
	}
	if got := alarms("--open", "--json"); json.Unmarshal([]byte(got), &one) != nil || one.Incident != "default.0.700" || !one.Open ||
		one.Kind != stream.AlertConcept || one.State != stream.AlertRaised || len(one.Transitions) != 2 {
		t.Errorf("alarms --open --json: %s", got)
	} else if a, err := stream.DecodeAlert(one.Transitions[1]); err != nil || a.Event != 790 {
		t.Errorf("its second transition is %s, %v", one.Transitions[1], err)
	}
	for _, wrong := range []Command{{Limit: -1}, {Since: "yesterday"}} {
		if err := wrong.Run(t.Context(), cli.IO{Out: nil, Err: nil}); cli.Status(err) != cli.StatusUsage {
			t.Errorf("%+v: %v, want wrong usage", wrong, err)
		}
	}
}

// p is in doubt while something is suspected, or has a name that says that labels or their meaning changed.
func TestDoubts(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 11, 20, hour, 0, 0, 0, time.UTC) }
	step := func(hour int, incident uint64, transition int, kind, state string) stream.Alert {
		a := alertOf(incident, transition, kind, state, uint64(1000*hour))
		a.Time = at(hour)
		return a
	}
	var all incidents
	for _, a := range []stream.Alert{
		step(1, 1, 1, stream.AlertUnknown, stream.AlertSuspected), step(2, 1, 2, stream.AlertConcept, stream.AlertRaised),
		step(3, 1, 3, stream.AlertConcept, stream.AlertCleared),
		step(5, 2, 1, stream.AlertUnknown, stream.AlertSuspected), step(6, 2, 2, stream.AlertUnknown, stream.AlertWithdrawn),
		step(7, 3, 1, stream.AlertUnknown, stream.AlertSuspected), step(8, 3, 2, stream.AlertCovariate, stream.AlertRaised),
		step(9, 3, 3, stream.AlertCovariate, stream.AlertCleared),
		step(10, 4, 1, stream.AlertLabelNoise, stream.AlertRaised), step(11, 4, 2, stream.AlertLabelNoise, stream.AlertCleared),
	} {
		all.add(&a)
	}
	doubts := Doubts(all.all)
	if len(doubts) != 2 || doubts[0] != (answered.Doubt{Kind: stream.AlertConcept, From: at(1), To: at(3)}) ||
		doubts[1] != (answered.Doubt{Kind: stream.AlertLabelNoise, From: at(10), To: at(11)}) || doubts.Open() != "" {
		t.Errorf("%+v", doubts)
	}
	for hour, want := range map[int]bool{0: false, 1: true, 2: true, 3: true, 4: false, 5: false, 8: false, 10: true, 12: false} {
		if doubts.During(at(hour), at(hour)) != want {
			t.Errorf("at %d: not %v", hour, want)
		}
	}
	a := step(20, 5, 1, stream.AlertUnknown, stream.AlertSuspected)
	all.add(&a)
	if doubts = Doubts(all.all); doubts.Open() != "a suspicion that something changed is open since 2026-11-20 20:00 UTC" ||
		!doubts.During(at(22), at(22)) || !doubts.During(at(4), at(22)) || doubts.During(at(4), at(9)) {
		t.Errorf("%q: %+v", doubts.Open(), doubts)
	}
}
