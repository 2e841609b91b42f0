package nats_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// By the rights of deploy/nats/hamlet.conf the console writes and reads the audit, reads the
// journal and the alerts, and asks for reasons. It changes none of these streams, and nobody
// else but the administrator writes the audit.
func TestRightsOfTheConsole(t *testing.T) {
	t.Parallel()
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
	console := as("console")
	a := audit(t, console, "default")
	ctx := patience(t)
	if err := a.Append(ctx, auditLine("1", stream.ActionAcknowledge, "7", stream.AuditDone)); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, a, 10, time.Time{}); got != "1:done" {
		t.Errorf("the console reads %q", got)
	}
	if all, err := a.Acknowledged(ctx); err != nil || len(all) != 1 {
		t.Errorf("acknowledged: %v, %v", all, err)
	}
	scorerConn := as("scorer")
	serve(t, scorerConn, scorer{}, nats.ServiceConfig{})
	if _, err := client(t, console, "").Ask(ctx, questions.Question{Body: []byte("hello"), ContentType: questions.Text, Explain: true}); err != nil {
		t.Errorf("the console asks why: %v", err)
	}
	if _, err := client(t, console, "").Info(ctx); err != nil {
		t.Errorf("the console asks which model is served: %v", err)
	}
	if err := journal(t, scorerConn, nats.JournalConfig{}).Append(ctx, "1", []stream.JournalEntry{entry("a")}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(read(t, console, "default", time.Time{}), " "); got != "a" {
		t.Errorf("the console reads the decisions %q", got)
	}
	publisher := alerts(t, as("learner"))
	if err := publisher.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	if err := publisher.Publish(ctx, stream.Alert{Model: "default", Incident: 7, Transition: 1, Kind: stream.AlertConcept, State: stream.AlertRaised, Body: "text", Event: 7}); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, err := range nats.ReadAlerts(ctx, console, "default", time.Time{}) {
		if found++; err != nil {
			t.Error(err)
		}
	}
	if found != 1 {
		t.Errorf("the console reads %d alerts", found)
	}
	for _, c := range []struct{ user, subject string }{
		{"console", "$JS.API.STREAM.UPDATE." + nats.AuditStream}, {"console", "$JS.API.STREAM.PURGE." + nats.AuditStream},
		{"console", "$JS.API.STREAM.DELETE." + nats.AuditStream}, {"console", "$JS.API.STREAM.MSG.DELETE." + nats.AuditStream},
		{"console", "$JS.API.STREAM.UPDATE." + nats.JournalStream}, {"console", nats.JournalSubject("default")}, {"console", nats.IncidentSubject("default")},
		{"console", "$JS.API.STREAM.CREATE.OTHER"}, {"console", "_INBOX.client.x"},
		{"operator", nats.AuditSubject("default")}, {"scorer", nats.AuditSubject("default")}, {"learner", nats.AuditSubject("default")},
		{"client", nats.AuditSubject("default")}, {"gateway", nats.AuditSubject("default")},
		{"client", "$JS.API.CONSUMER.CREATE." + nats.AuditStream + ".x"}, {"scorer", "$JS.API.STREAM.MSG.GET." + nats.AuditStream},
	} {
		conn := as(c.user) // a connection keeps its last error
		before := conn.LastError()
		if err := errors.Join(conn.Publish(c.subject, []byte("{}")), conn.FlushTimeout(30*time.Second)); err != nil {
			t.Fatal(err)
		}
		if last := conn.LastError(); last == before || !errors.Is(last, natsgo.ErrPermissionViolation) {
			t.Errorf("%s publishes to %s: %v", c.user, c.subject, last)
		}
	}
	if got := ids(t, a, 10, time.Time{}); got != "1:done" {
		t.Errorf("after others wrote, the audit is %q", got)
	}
	// An audit that keeps too little is an administrator's to mend, and the error says so.
	js, err := jetstream.New(as("admin"))
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(ctx, nats.AuditStream); err != nil {
		t.Fatal(err)
	}
	afterDelete(t, func() error {
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: nats.AuditStream, Subjects: []string{"hamlet.audit.*"}, MaxAge: time.Hour})
		return err
	})
	if _, err := openAudit(ctx, as("console"), "default"); !errors.Is(err, nats.ErrRefused) || !strings.Contains(err.Error(), "administrator") {
		t.Errorf("an audit that keeps an hour: %v", err)
	}
}
