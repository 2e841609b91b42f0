package embedded

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	streamnats "hamlet/stream/nats"
)

// Who asks can ask and hear alerts, and no more: not answer, not forge an answer, an
// alert or a decision, not read another's answers or decisions, not touch the stream of alerts.
func TestNATSUserWhoAsksCannotAnswer(t *testing.T) {
	t.Parallel()
	publish, subscribe := streamnats.AskerSubjects()
	n := startTestNATS(t, NATSOptions{Users: []NATSUser{
		{Name: "service", Password: "right"},
		{Name: "asker", Password: "lesser", Publish: publish, Subscribe: subscribe},
		{Name: "listener", Password: "quiet", Subscribe: []string{"hamlet.>"}},
	}})
	for _, user := range [][]string{{"", ""}, {"service", "wrong"}, {"service", "lesser"}, {"asker", "right"}, {"asker", ""}, {"nobody", "right"}} {
		c, err := nats.Connect(n.URL(), nats.UserInfo(user[0], user[1]), nats.Timeout(30*time.Second))
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("user %q with password %q: %v", user[0], user[1], err)
		}
		if err == nil {
			c.Close()
		}
	}
	connect := func(user, password string, options ...nats.Option) (*nats.Conn, chan error) {
		t.Helper()
		refused := make(chan error, 100)
		c, err := nats.Connect(n.URL(), append(options, nats.UserInfo(user, password), nats.Timeout(30*time.Second),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c, refused
	}
	service, _ := connect("service", "right", nats.CustomInboxPrefix("_INBOX_service"))
	asker, refused := connect("asker", "lesser")
	flush := func(c *nats.Conn) {
		t.Helper()
		if err := c.FlushTimeout(30 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	js, err := jetstream.New(service)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "HAMLET_ALERTS", Subjects: []string{"hamlet.alerts.>"}}); err != nil {
		t.Fatal(err)
	}
	endpoints := []string{"hamlet.score", "hamlet.explain.billing", "hamlet.info"}
	for _, subject := range endpoints {
		if _, err := service.QueueSubscribe(subject, "hamlet", func(m *nats.Msg) {
			if err := m.Respond([]byte("true")); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	flush(service)

	// What it may not do. Each refusal arrives as an error of the connection.
	mustRefuse := func(what string) {
		t.Helper()
		flush(asker)
		select {
		case err := <-refused:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("may %s", what)
		}
	}
	forge := func(m *nats.Msg) { _ = m.Respond([]byte("forged")) }
	for _, subject := range append([]string{">", "hamlet.>", "hamlet.*", "hamlet.decisions.>", "$SRV.>", "$JS.>", "_INBOX_service.>", "_INBOX*", "$SYS.>"}, endpoints...) {
		if _, err := asker.QueueSubscribe(subject, "hamlet", forge); err != nil {
			t.Fatal(err)
		}
		mustRefuse("answer on " + subject)
		if _, err := asker.Subscribe(subject, forge); err != nil {
			t.Fatal(err)
		}
		mustRefuse("listen on " + subject)
	}
	for _, subject := range []string{
		"hamlet.alerts.concept.default", "_INBOX.x", "_INBOX_service.x", "hamlet.other", "hamlet.score.a.b",
		"$JS.API.STREAM.DELETE.HAMLET_ALERTS", "$JS.API.STREAM.PURGE.HAMLET_ALERTS", "$JS.API.STREAM.NAMES",
		"hamlet.decisions.default", "$JS.API.STREAM.MSG.GET.HAMLET_DECISIONS", "$JS.API.CONSUMER.CREATE.HAMLET_DECISIONS.x",
		"$JS.API.STREAM.MSG.DELETE.HAMLET_ALERTS", "$JS.API.CONSUMER.CREATE.HAMLET_ALERTS",
	} {
		if err := asker.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		mustRefuse("publish to " + subject)
	}

	// What it may.
	alerts, err := asker.SubscribeSync("hamlet.alerts.>")
	if err != nil {
		t.Fatal(err)
	}
	flush(asker)
	if _, err := js.Publish(t.Context(), "hamlet.alerts.concept.default", []byte("ours")); err != nil {
		t.Fatal(err)
	}
	if m, err := alerts.NextMsg(30 * time.Second); err != nil || string(m.Data) != "ours" {
		t.Errorf("the alert: %v, %v", m, err)
	}
	for range 50 {
		for _, subject := range endpoints {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			m, err := asker.RequestWithContext(ctx, subject, nil)
			cancel()
			if err != nil || string(m.Data) != "true" {
				t.Fatalf("ask on %s: %v, %v", subject, m, err)
			}
		}
	}
	if stream, err := js.Stream(t.Context(), "HAMLET_ALERTS"); err != nil || stream.CachedInfo().State.Msgs != 1 {
		t.Errorf("the stream of alerts: %v, %v", stream, err)
	}
	select {
	case err := <-refused:
		t.Error(err)
	default:
	}

	// A user with subjects of one kind has none of the other.
	listener, refusals := connect("listener", "quiet")
	if err := listener.Publish("hamlet.score", nil); err != nil {
		t.Fatal(err)
	}
	flush(listener)
	select {
	case <-refusals:
	case <-time.After(30 * time.Second):
		t.Error("a user without subjects to publish to may publish")
	}
}
