package nats_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
	"hamlet/stream/nats"
)

// readAlerts returns the ids of a model's alerts; "?" stands for one that cannot be read.
func readAlerts(t *testing.T, conn *natsgo.Conn, model string, since time.Time) (ids []string) {
	t.Helper()
	for a, err := range nats.ReadAlerts(patience(t), conn, model, since) {
		switch {
		case errors.As(err, new(*nats.MessageError)):
			ids = append(ids, "?")
		case err != nil:
			t.Fatal(err)
		case a.Incident == 0:
			ids = append(ids, a.Kind+" "+a.State)
		default:
			ids = append(ids, a.MessageID())
		}
	}
	return ids
}

// Each transition is read once, though named ones stand under two subjects. What an older
// program published is read too, and what nobody can read is passed over.
func TestReadAlerts(t *testing.T) {
	file, err := server.ProcessConfigFile("../../deploy/nats/hamlet.conf")
	if err != nil {
		t.Fatal(err)
	}
	s := startJetStream(t, t.TempDir(), -1, func(o *server.Options) { o.Accounts, o.Users, o.AuthTimeout = file.Accounts, file.Users, 30 })
	as := func(user string) *natsgo.Conn {
		t.Helper()
		conn, err := nats.Connect(nats.Config{URL: s.ClientURL(), User: user, Password: strings.ToUpper(user) + "_PASSWORD", Timeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		return conn
	}
	operator := as("operator")
	if got := readAlerts(t, operator, "newsletters", time.Time{}); got != nil {
		t.Errorf("without a stream %v are read", got)
	}
	if end, kept, err := nats.AlertsEnd(patience(t), operator); err != nil || end != 0 || kept {
		t.Errorf("without a stream its end is %d, %v", end, err)
	}
	learner := as("learner")
	a := alerts(t, learner)
	if err := a.Prepare(patience(t)); err != nil {
		t.Fatal(err)
	}
	if end, kept, err := nats.AlertsEnd(patience(t), operator); err != nil || end != 0 || !kept {
		t.Errorf("of an empty stream the end is %d, %v, %v", end, kept, err)
	}
	old, err := os.ReadFile("../testdata/alerts_1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(old)) {
		if e, err := stream.DecodeAlert([]byte(strings.TrimSpace(line))); err == nil && e.Model == "newsletters" {
			if err := learner.Publish(nats.AlertSubject(e.Kind, e.Model), []byte(line)); err != nil {
				t.Fatal(err)
			}
		}
	}
	before, _, err := nats.AlertsEnd(patience(t), operator)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := learner.Request(nats.IncidentSubject("newsletters"), []byte("{}"), 30*time.Second); err != nil { // until it is stored
		t.Fatal(err)
	}
	if end, kept, err := nats.AlertsEnd(patience(t), operator); err != nil || end <= before || !kept {
		t.Errorf("after another message the end is %d, %v; before it was %d", end, err, before)
	}
	suspected := alert(7)
	suspected.Model, suspected.Kind, suspected.State = "newsletters", stream.AlertUnknown, stream.AlertSuspected
	raised := alert(9)
	raised.Model, raised.Incident, raised.Transition = "newsletters", 7, 2
	if err := a.Publish(patience(t), alert(3), suspected, raised); err != nil {
		t.Fatal(err)
	}
	want := []string{"concept cleared", "covariate raised", "?", "newsletters.0.7/1", "newsletters.0.7/2"}
	if d := cmp.Diff(want, readAlerts(t, operator, "newsletters", time.Time{})); d != "" {
		t.Errorf("read (-want +got):\n%s", d)
	}
	if got := readAlerts(t, operator, "newsletters", time.Now().Add(time.Hour)); got != nil {
		t.Errorf("from a later time on %v are read", got)
	}
	if got := readAlerts(t, operator, "default", time.Time{}); !cmp.Equal(got, []string{"default.0.3/1"}) {
		t.Errorf("of another model %v are read", got)
	}
}
