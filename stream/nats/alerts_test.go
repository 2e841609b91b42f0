package nats_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/servertest/loopback"
)

// startJetStream runs a server with JetStream on the given port (−1: a free one)
// that keeps its streams in dir.
func startJetStream(t testing.TB, dir string, port int, more func(*server.Options)) *server.Server {
	t.Helper()
	options := &server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true, JetStream: true, StoreDir: dir}
	if more != nil {
		more(options)
	}
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the nats server doesn't listen")
	}
	return s
}

// heldPort returns a port on which a server can be started again.
func heldPort(t testing.TB) int {
	t.Helper()
	at, err := net.ResolveTCPAddr("tcp", loopback.Hold(t))
	if err != nil {
		t.Fatal(err)
	}
	return at.Port
}

func alerts(t testing.TB, conn *natsgo.Conn) *nats.Alerts {
	t.Helper()
	a, err := nats.NewAlerts(conn, nats.AlertsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func alert(event uint64) stream.Alert {
	return stream.Alert{
		Incident: event, Transition: 1, Kind: stream.AlertConcept, State: stream.AlertRaised, Event: event, Level: 25, Reference: .2, Threshold: 24,
		Body: stream.AlertText, Reading: "the world changed", Model: "default",
	}
}

// stored returns the alerts of the stream's incidents, in order, and their ids. Those that
// name a kind must stand under it too.
func stored(t testing.TB, conn *natsgo.Conn) (alerts []stream.Alert, ids []string) {
	t.Helper()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), nats.AlertStream)
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	state := s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
		m, err := s.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		a, err := stream.DecodeAlert(m.Data)
		if err != nil {
			t.Fatalf("%s: %v", m.Data, err)
		}
		if id := m.Header.Get("Nats-Msg-Id"); id != m.Subject+"/"+a.MessageID() {
			t.Errorf("%s under %s has the id %s", m.Data, m.Subject, id)
		}
		if m.Subject == nats.IncidentSubject(a.Model) {
			alerts, ids = append(alerts, a), append(ids, a.MessageID())
			continue
		}
		if want := nats.AlertSubject(a.Kind, a.Model); m.Subject != want || !stream.NamesKind(a.State) {
			t.Errorf("%s %s stored under %s, want %s", a.Kind, a.State, m.Subject, want)
		}
		named = append(named, a.MessageID())
	}
	var want []string
	for i := range alerts {
		if stream.NamesKind(alerts[i].State) {
			want = append(want, ids[i])
		}
	}
	slices.Sort(named) // several publishers may take turns between the two subjects
	slices.Sort(want)
	if !slices.Equal(named, want) {
		t.Errorf("under their kinds are stored %v, of the incidents %v", named, want)
	}
	return alerts, ids
}

// An alert that is published twice is stored once, by one publisher or by two,
// and also if the server was restarted between.
func TestAlertsAreStoredOnce(t *testing.T) {
	dir, port := t.TempDir(), heldPort(t)
	first := startJetStream(t, dir, port, nil)
	conn := connect(t, first)
	a := alerts(t, conn)
	if err := a.Prepare(patience(t)); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	one, two := alert(1), alert(2)
	other := alert(1)
	other.Partition = 1
	billing := alert(1)
	billing.Model = "billing"
	suspected := alert(9)
	suspected.Kind, suspected.State = stream.AlertUnknown, stream.AlertSuspected
	for _, batch := range [][]stream.Alert{{one, two}, {one}, {one, two, other, billing}, {suspected, suspected}} {
		if err := a.Publish(patience(t), batch...); err != nil {
			t.Fatal(err)
		}
	}
	if err := alerts(t, connect(t, first)).Publish(patience(t), two); err != nil {
		t.Fatal(err)
	}
	want := []string{"default.0.1/1", "default.0.2/1", "default.1.1/1", "billing.0.1/1", "default.0.9/1"}
	got, ids := stored(t, conn)
	if d := cmp.Diff(want, ids); d != "" {
		t.Errorf("message ids (-want +got):\n%s", d)
	}
	for i, a := range got {
		if a.Time.Before(before) || a.Time.After(time.Now()) {
			t.Errorf("alert %d has the time %v, want that of its publication", i, a.Time)
		}
	}
	one.Time = got[0].Time
	if d := cmp.Diff(one, got[0]); d != "" {
		t.Errorf("the first alert (-want +got):\n%s", d)
	}

	back := conn.StatusChanged(natsgo.CONNECTED)
	first.Shutdown()
	first.WaitForShutdown()
	startJetStream(t, dir, port, nil)
	<-back
	conn.RemoveStatusListener(back)
	if err := a.Publish(patience(t), one, alert(3)); err != nil {
		t.Fatal(err)
	}
	if _, ids := stored(t, conn); !slices.Equal(ids, append(want, "default.0.3/1")) {
		t.Errorf("after a restart of the server the ids are %v", ids)
	}
}

// Publish waits for a server, and its error says so when ctx ends.
func TestAlertsWaitForTheServer(t *testing.T) {
	dir, port := t.TempDir(), heldPort(t)
	s := startJetStream(t, dir, port, nil)
	conn := connect(t, s)
	a := alerts(t, conn)
	if err := a.Publish(patience(t), alert(1)); err != nil { // makes the stream as well
		t.Fatal(err)
	}
	s.Shutdown()
	s.WaitForShutdown()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := a.Publish(short, alert(2))
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, stream.ErrAlerts) || !strings.Contains(err.Error(), "publish alert hamlet.alerts.incident.default/default.0.2/1") {
		t.Fatalf("without a server: %v", err)
	}
	published := make(chan error, 1)
	ctx := patience(t)
	go func() { published <- a.Publish(ctx, alert(2)) }()
	startJetStream(t, dir, port, nil)
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	if _, ids := stored(t, conn); !slices.Equal(ids, []string{"default.0.1/1", "default.0.2/1"}) {
		t.Errorf("stored are %v", ids)
	}
}

// A stream that was deleted while learners ran is made again.
func TestAlertsAfterTheStreamWasDeleted(t *testing.T) {
	conn := connect(t, startJetStream(t, t.TempDir(), server.RANDOM_PORT, nil))
	a := alerts(t, conn)
	if err := a.Publish(patience(t), alert(1)); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), nats.AlertStream); err != nil {
		t.Fatal(err)
	}
	if err := a.Publish(patience(t), alert(2)); err != nil {
		t.Fatal(err)
	}
	if _, ids := stored(t, conn); !slices.Equal(ids, []string{"default.0.2/1"}) {
		t.Errorf("stored are %v", ids)
	}
}

// Prepare changes an existing stream only where alerts need it.
func TestAlertsInAStreamWithOtherSettings(t *testing.T) {
	const days = 24 * time.Hour
	for _, c := range []struct {
		name         string
		made, wanted jetstream.StreamConfig
	}{
		{"none",
			jetstream.StreamConfig{},
			jetstream.StreamConfig{Subjects: []string{"hamlet.alerts.>"}, MaxAge: 90 * days, Duplicates: 30 * days, MaxBytes: 64 << 20}},
		{"another's",
			jetstream.StreamConfig{Subjects: []string{"audit.>"}, MaxAge: 7 * days, Duplicates: time.Minute, MaxBytes: 1 << 20, NoAck: true, Description: "mine"},
			jetstream.StreamConfig{Subjects: []string{"audit.>", "hamlet.alerts.>"}, MaxAge: 30 * days, Duplicates: 30 * days, MaxBytes: 1 << 20, Description: "mine"}},
		{"wider than ours",
			jetstream.StreamConfig{Subjects: []string{"hamlet.alerts.>"}, Duplicates: 60 * days, MaxMsgs: 100},
			jetstream.StreamConfig{Subjects: []string{"hamlet.alerts.>"}, Duplicates: 60 * days, MaxMsgs: 100}},
		{"takes all of hamlet",
			jetstream.StreamConfig{Subjects: []string{"hamlet.>"}, Duplicates: 30 * days},
			jetstream.StreamConfig{Subjects: []string{"hamlet.>"}, Duplicates: 30 * days}},
		{"ours in other words",
			jetstream.StreamConfig{Subjects: []string{"hamlet.alerts.*.*", "audit.>"}, Duplicates: 30 * days},
			jetstream.StreamConfig{Subjects: []string{"hamlet.alerts.*.*", "audit.>"}, Duplicates: 30 * days}},
		{"some of ours",
			jetstream.StreamConfig{Subjects: []string{"hamlet.alerts.concept.>", "audit.>", "hamlet.alerts.label-noise.default"}, Duplicates: 30 * days},
			jetstream.StreamConfig{Subjects: []string{"audit.>", "hamlet.alerts.>"}, Duplicates: 30 * days}},
		{"takes nothing once it is full",
			jetstream.StreamConfig{Subjects: []string{"hamlet.alerts.>"}, Duplicates: 30 * days, MaxMsgs: 1, Discard: jetstream.DiscardNew},
			jetstream.StreamConfig{Subjects: []string{"hamlet.alerts.>"}, Duplicates: 30 * days, MaxMsgs: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A server deletes a stream's files after it has answered. A stream of the same
			// name may fail to be made meanwhile, so each case has a server of its own.
			conn := connect(t, startJetStream(t, t.TempDir(), server.RANDOM_PORT, nil))
			js, err := jetstream.New(conn)
			if err != nil {
				t.Fatal(err)
			}
			if c.made.Subjects != nil {
				c.made.Name = nats.AlertStream
				if _, err := js.CreateStream(t.Context(), c.made); err != nil {
					t.Fatal(err)
				}
			}
			a := alerts(t, conn)
			if err := a.Prepare(patience(t)); err != nil {
				t.Fatal(err)
			}
			if err := a.Publish(patience(t), alert(1), alert(2)); err != nil {
				t.Errorf("publish: %v", err)
			}
			s, err := js.Stream(t.Context(), nats.AlertStream)
			if err != nil {
				t.Fatal(err)
			}
			got := s.CachedInfo().Config
			if !slices.Equal(got.Subjects, c.wanted.Subjects) || got.MaxAge != c.wanted.MaxAge || got.Duplicates != c.wanted.Duplicates ||
				c.wanted.MaxBytes != 0 && got.MaxBytes != c.wanted.MaxBytes || c.wanted.MaxMsgs != 0 && got.MaxMsgs != c.wanted.MaxMsgs ||
				got.NoAck || c.wanted.Description != "" && got.Description != c.wanted.Description || got.Discard != jetstream.DiscardOld {
				t.Errorf("the stream is %+v, want of it %+v", got, c.wanted)
			}
		})
	}
}

// A lasting fault is an error at once, which says what to do.
func TestAlertsThatCannotBePublished(t *testing.T) {
	user := func(name string, publish, subscribe []string) *server.User {
		return &server.User{Username: name, Password: "x", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: publish},
			Subscribe: &server.SubjectPermission{Allow: subscribe},
		}}
	}
	inboxes := []string{"_INBOX.>"}
	for _, c := range []struct {
		name    string
		options func(*server.Options)
		made    *jetstream.StreamConfig // by an administrator, before
		user    string
		want    string
	}{
		{"no JetStream", func(o *server.Options) { o.JetStream = false }, nil, "", "has JetStream switched off"},
		{"not for this account", func(o *server.Options) {
			account := server.NewAccount("plain")
			o.Accounts = []*server.Account{account}
			o.Users = []*server.User{{Username: "u", Password: "x", Account: account}}
		}, nil, "u", "the account may not use JetStream"},
		{"no right to ask", func(o *server.Options) {
			o.Users = []*server.User{user("u", []string{"hamlet.>"}, inboxes), user("admin", []string{">"}, []string{">"})}
		}, nil, "u", `let it publish to $JS.API.STREAM.*.HAMLET_ALERTS and hamlet.alerts.>`},
		{"no right to publish", func(o *server.Options) {
			o.Users = []*server.User{user("u", []string{"$JS.API.>"}, inboxes), user("admin", []string{">"}, []string{">"})}
		}, nil, "u", "has not the rights"},
		{"the subjects are another stream's", nil,
			&jetstream.StreamConfig{Name: "ALL", Subjects: []string{"hamlet.>"}}, "", "another stream than HAMLET_ALERTS takes hamlet.alerts.>"},
		{"a mirror", nil,
			&jetstream.StreamConfig{Name: nats.AlertStream, Mirror: &jetstream.StreamSource{Name: "ELSEWHERE"}}, "", "a mirror or sealed"},
		{"a limit of the server", func(o *server.Options) { o.JetStreamLimits.Duplicates = time.Hour },
			nil, "", "the server refuses the stream HAMLET_ALERTS"},
		{"no right to hear the answers", func(o *server.Options) {
			o.Users = []*server.User{user("u", []string{">"}, []string{"hamlet.>"}), user("admin", []string{">"}, []string{">"})}
		}, nil, "u", "subscribe to _INBOX.>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startJetStream(t, t.TempDir(), server.RANDOM_PORT, c.options)
			if c.made != nil {
				js, err := jetstream.New(connect(t, s))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := js.CreateStream(t.Context(), *c.made); err != nil {
					t.Fatal(err)
				}
			}
			cfg := nats.Config{URL: "nats://" + s.Addr().String()}
			if c.user != "" {
				cfg.User, cfg.Password = c.user, "x"
			}
			conn, err := nats.Connect(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			a := alerts(t, conn)
			err = a.Prepare(patience(t))
			if err == nil {
				err = a.Publish(patience(t), alert(1))
			}
			if !errors.Is(err, stream.ErrAlerts) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrAlerts with %q", err, c.want)
			}
		})
	}
	conn := connect(t, startJetStream(t, t.TempDir(), server.RANDOM_PORT, nil))
	wrong := alert(0)
	if err := alerts(t, conn).Publish(patience(t), wrong); !errors.Is(err, stream.ErrAlerts) || !strings.Contains(err.Error(), "events are counted from 1") {
		t.Errorf("an alert of event 0: %v", err)
	}
	wrong = alert(1)
	wrong.Incident, wrong.Transition = 0, 0
	if err := alerts(t, conn).Publish(patience(t), wrong); !errors.Is(err, stream.ErrAlerts) || !strings.Contains(err.Error(), "has no incident") {
		t.Errorf("an alert without an incident: %v", err)
	}
	wrong = alert(1)
	wrong.Model = "a.b"
	if err := alerts(t, conn).Publish(patience(t), wrong); !errors.Is(err, stream.ErrAlerts) || !strings.Contains(err.Error(), "model name") {
		t.Errorf("an alert of model a.b: %v", err)
	}
	if _, err := nats.NewAlerts(conn, nats.AlertsConfig{Replicas: 6}); err == nil {
		t.Error("six replicas were taken")
	}
	three, err := nats.NewAlerts(conn, nats.AlertsConfig{Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := three.Prepare(patience(t)); !errors.Is(err, stream.ErrAlerts) || !refusedFor(err, nats.AlertStream, nats.SettingReplicas) {
		t.Errorf("three replicas on one server: %v", err)
	}
}

// A refusal of other subjects, or an earlier one, does not explain a late answer.
func TestAlertsBesideOtherRefusals(t *testing.T) {
	s := startJetStream(t, t.TempDir(), server.RANDOM_PORT, func(o *server.Options) {
		o.Users = []*server.User{{Username: "u", Password: "x", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"$JS.API.>", "hamlet.alerts.*.default"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}}
	})
	conn, err := nats.Connect(nats.Config{URL: "nats://" + s.Addr().String(), User: "u", Password: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	a := alerts(t, conn)
	if err := a.Publish(patience(t), alert(1)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		refuse func() error
	}{
		{"a subscription", func() error { _, err := conn.SubscribeSync("$SRV.PING"); return err }},
		{"another subject", func() error { return conn.Publish("audit", nil) }},
		{"alerts in general", func() error { _, err := conn.SubscribeSync("hamlet.alerts.>"); return err }},
		{"a request of ours that is long past", func() error { return conn.Publish(nats.AlertSubject("concept", "billing"), nil) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := conn.LastError()
			if err := c.refuse(); err != nil {
				t.Fatal(err)
			}
			if err := conn.Flush(); err != nil { // the complaint comes before the answer
				t.Fatal(err)
			}
			if last := conn.LastError(); last == before || !errors.Is(last, natsgo.ErrPermissionViolation) {
				t.Fatalf("the server refused nothing: %v", last)
			}
			late, cancel := context.WithDeadline(t.Context(), time.Now()) // no answer comes in no time
			defer cancel()
			if err := a.Publish(late, alert(2)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, stream.ErrAlerts) {
				t.Errorf("got %v, want an ended deadline", err)
			}
			if err := a.Publish(patience(t), alert(2)); err != nil {
				t.Error(err)
			}
		})
	}

	// A new refusal of our subjects does, even without time left.
	other := alert(1)
	other.Model = "billing"
	refused := make(chan struct{})
	once := sync.OnceFunc(func() { close(refused) })
	conn.SetErrorHandler(func(*natsgo.Conn, *natsgo.Subscription, error) { once() })
	if err := a.Publish(deadline{patience(t), refused}, other); !errors.Is(err, stream.ErrAlerts) {
		t.Errorf("an alert that may not be published: %v, want ErrAlerts", err)
	}
}

// A deadline is a context that ends at an event.
type deadline struct {
	context.Context
	over <-chan struct{}
}

func (d deadline) Done() <-chan struct{} { return d.over }

func (d deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Concurrent publishers create one stream and store each alert once.
func TestAlertsFromSeveralLearners(t *testing.T) {
	s := startJetStream(t, t.TempDir(), server.RANDOM_PORT, nil)
	const learners, n = 4, 10
	ctx := patience(t)
	done := make(chan error, learners)
	for range learners {
		a := alerts(t, connect(t, s))
		go func() {
			var batch []stream.Alert
			for i := range n {
				batch = append(batch, alert(uint64(i+1)))
			}
			done <- a.Publish(ctx, batch...)
		}()
	}
	for range learners {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	_, ids := stored(t, connect(t, s))
	slices.Sort(ids)
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("default.0.%d/1", i+1))
	}
	slices.Sort(want)
	if d := cmp.Diff(want, ids); d != "" {
		t.Errorf("message ids (-want +got):\n%s", d)
	}
}
