package history_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/operate/history"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/answered"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// stats returns what `hamlet history --stats` prints.
func stats(t *testing.T, conn *natsgo.Conn, asJSON bool) string {
	t.Helper()
	c := history.Command{Stats: true, JSON: asJSON, Server: conn.ConnectedUrl()}
	c.Model = "default"
	var out, errs bytes.Buffer
	if err := c.Run(patience(t), cli.IO{Out: &out, Err: &errs}); err != nil || errs.Len() > 0 {
		t.Fatal(err, errs.String())
	}
	return out.String()
}

// expectedOf returns what is expected of all answers.
func expectedOf(t *testing.T, conn *natsgo.Conn) *answered.Expected {
	t.Helper()
	var all answered.Figures
	if err := json.NewDecoder(strings.NewReader(stats(t, conn, true))).Decode(&all); err != nil || all.Expected == nil {
		t.Fatal(err, all)
	}
	return all.Expected
}

// Expected errors stand beside what labels said, and an open incident of any model that answers withdraws them: in the
// table, in JSON and on the page. What it answered in an incident that is over is counted apart.
func TestExpectedErrors(t *testing.T) {
	conn := startNATS(t)
	begin := time.Now().UTC().Truncate(time.Second).Add(-10 * time.Hour)
	var lines []stream.JournalEntry
	for i := range 400 {
		e := stream.JournalEntry{Time: begin.Add(time.Duration(i) * time.Minute), ID: identity(i), Verdict: stream.DecideHam, P: 0.01, Low: 0.005, High: 0.02,
			Model: "default/0123456789ab", Door: "milter", Tenant: "default"}
		switch {
		case i%2 == 0:
			e.Verdict, e.P, e.Low, e.High, e.Door = stream.DecideSpam, 0.99, 0.98, 0.995, "spamd"
		case i >= 200:
			e.Model = "shadow/0123456789ab" // promoted since
		}
		lines = append(lines, e)
	}
	for i := 0; i < len(lines); i += 100 {
		write(t, conn, false, fmt.Sprint(i), lines[i:i+100]...)
	}
	write(t, conn, true, "l", stream.JournalEntry{Time: begin.Add(time.Hour), ID: identity(0), Label: stream.Ham, Source: "users", Model: "default"},
		stream.JournalEntry{Time: begin.Add(time.Hour), ID: identity(1), Label: stream.Spam, Source: "users", Model: "default"})

	const unknown = "neither NATS nor a scorer says whether an incident is open"
	if x := expectedOf(t, conn); x.Withdrawn != unknown {
		t.Errorf("without alerts and scorers: %q", x.Withdrawn)
	}
	alerts, err := nats.NewAlerts(conn, nats.AlertsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := alerts.Publish(patience(t), stream.Alert{Incident: 1, Transition: 1, Kind: stream.AlertConcept, State: stream.AlertRaised, Event: 1,
		Body: stream.AlertText, Reading: "something", Model: "another"}); err != nil { // there are alerts
		t.Fatal(err)
	}
	x := expectedOf(t, conn)
	if x.Answers != 400 || x.Withdrawn != "" || fmt.Sprintf("%.2f %g %g %.2f", x.Lost.Value, x.Lost.Low, x.Lost.High, x.Missed.Value) != "2.00 0 5 2.00" {
		t.Errorf("%+v", x)
	}
	page := newReader(t, history.Config{NATS: conn})
	_, text := page.get("/history?figures=1")
	for name, got := range map[string]string{"table": stats(t, conn, false), "page": text} {
		if !strings.Contains(got, "am lost: labelled") || !strings.Contains(got, "2 (0 to 5)") || strings.Contains(got, "is open since") || strings.Contains(got, "contradict it:") {
			t.Errorf("the %s is\n%s", name, got)
		}
	}

	publish := func(model string, transition int, kind, state string, after time.Duration) {
		t.Helper()
		a := stream.Alert{Incident: 100, Transition: transition, Kind: kind, State: state, Event: 100 + uint64(transition),
			Body: stream.AlertText, Reading: "something", Model: model, Time: begin.Add(after)}
		line, err := a.AppendJSON(nil)
		if err == nil { // a publisher would write the present time
			_, err = conn.Request(nats.IncidentSubject(model), line, 30*time.Second)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// The answers from 100 to 160 minutes are of an incident that is over.
	publish("default", 1, stream.AlertUnknown, stream.AlertSuspected, 100*time.Minute)
	publish("default", 2, stream.AlertConcept, stream.AlertRaised, 130*time.Minute)
	publish("default", 3, stream.AlertConcept, stream.AlertCleared, 160*time.Minute)
	if x := expectedOf(t, conn); x.Answers != 339 || x.LeftOut != 61 || x.Withdrawn != "" {
		t.Errorf("an incident that is over: %+v", x)
	}
	if got := stats(t, conn, false); !strings.Contains(got, "  61") {
		t.Errorf("the table is\n%s", got)
	}

	publish("shadow", 1, stream.AlertConcept, stream.AlertRaised, 390*time.Minute)
	x = expectedOf(t, conn)
	if !strings.HasPrefix(x.Withdrawn, "an incident of concept is open since ") || x.Lost.Value.Defined() || x.LeftOut != 66 {
		t.Errorf("an open incident: %+v", x)
	}
	_, text = page.get("/history?figures=1")
	for name, got := range map[string]string{"table": stats(t, conn, false), "page": text} {
		if strings.Count(got, "an incident of concept is open since") != 2 || !strings.Contains(got, "2 (0 to 5)") {
			t.Errorf("the %s is\n%s", name, got)
		}
	}
}

// A late is a context whose deadline passes when it is cancelled.
type late struct{ context.Context }

func (l late) Err() error {
	if l.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// Where the time is over before incidents are read, the figures that are known are shown, and no others.
func TestTimeIsOverBeforeIncidentsAreRead(t *testing.T) {
	conn := startNATS(t)
	write(t, conn, false, "1", stream.JournalEntry{Time: time.Now(), ID: identity(1), Verdict: stream.DecideHam, P: 0.01, Low: 0.005, High: 0.02,
		Model: "default/0123456789ab", Door: "milter", Tenant: "default"})
	ctx, over := context.WithCancel(patience(t))
	if _, err := conn.Subscribe(nats.Subject(questions.Info, "default"), func(*natsgo.Msg) { over() }); err != nil {
		t.Fatal(err)
	}
	table, err := history.ReadFigures(late{ctx}, conn, "default", &history.Filter{}, 10)
	if err != nil || !table.Stopped || len(table.Figures) != 2 || table.Figures[0].Answers != 1 {
		t.Fatalf("%+v, %v", table, err)
	}
	if got := table.Figures[0].Expected.Withdrawn; got != "neither NATS nor a scorer says whether an incident is open" {
		t.Errorf("%q", got)
	}
}
