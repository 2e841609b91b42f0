package nats_test

import (
	"context"
	"errors"
	"fmt"
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

func waiting(t *testing.T, conn *natsgo.Conn, cfg nats.WaitingConfig) *nats.Waiting {
	t.Helper()
	if cfg.After == 0 {
		cfg.After = time.Hour
	}
	w, err := nats.NewWaiting(conn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// answer returns an answer about a message of some bytes.
func answer(of string, bytes int) *stream.Event {
	return &stream.Event{
		ID: of + "/assume", Time: time.Now().UTC(), Source: "self-label", Tenant: "default", Action: stream.Assume, Of: of, Label: stream.Spam,
		Body: stream.Body{Kind: stream.Mail, Mail: []byte("Subject: x\n\n" + strings.Repeat("a", bytes))},
	}
}

// receive takes answers until handle returns false.
func receive(t *testing.T, w *nats.Waiting, handle func(*nats.WaitingAnswer) bool) {
	t.Helper()
	ctx, stop := context.WithCancel(patience(t))
	defer stop()
	ended := false
	if err := w.Receive(ctx, func(a *nats.WaitingAnswer) {
		if ended {
			_ = a.Later(0)
		} else if ended = !handle(a); ended {
			stop()
		}
	}); err != nil || !ended {
		t.Fatalf("the answers do not come: %v", err)
	}
}

func put(t *testing.T, w *nats.Waiting, answers ...*stream.Event) {
	t.Helper()
	for _, e := range answers {
		if err := w.Put(patience(t), e); err != nil {
			t.Fatal(err)
		}
	}
}

// What waits comes in order, what is put back comes again, to whoever asks, and what is done
// is gone. The models' answers are apart.
func TestAnswersWait(t *testing.T) {
	t.Parallel()
	s := startJetStream(t, t.TempDir(), -1, nil)
	w := waiting(t, connect(t, s), nats.WaitingConfig{})
	const all = 20
	for i := range all {
		put(t, w, answer(fmt.Sprint(i), 10))
	}
	other := waiting(t, connect(t, s), nats.WaitingConfig{Model: "other"})
	put(t, other, answer("3", 10))
	put(t, w, answer("3", 10)) // the server drops it

	var first []string
	var before time.Time // when an answer that is older than the other model's was stored
	receive(t, w, func(a *nats.WaitingAnswer) bool {
		first, before = append(first, a.Event.Of), a.Stored
		if err := a.Later(0); err != nil {
			t.Error(err)
		}
		return len(first) < 3
	})
	if got := strings.Join(first, " "); got != "0 1 2" {
		t.Errorf("first come %q", got)
	}
	// Another gateway goes on where this one stopped.
	second, done := waiting(t, connect(t, s), nats.WaitingConfig{}), map[string]int{}
	receive(t, second, func(a *nats.WaitingAnswer) bool {
		if a.Err != nil || a.Event.Label != stream.Spam || a.Event.Action != stream.Assume || !strings.HasSuffix(string(a.Event.Body.Mail), "\n\naaaaaaaaaa") {
			t.Errorf("%+v, %v", a.Event, a.Err)
		}
		done[a.Event.Of]++
		if err := a.Done(); err != nil {
			t.Error(err)
		}
		return len(done) < all
	})
	for of, times := range done {
		if times != 1 {
			t.Errorf("answer %s came %d times", of, times)
		}
	}
	eventually(t, "what is done still waits", func() bool {
		state, err := w.State(patience(t))
		return err == nil && state.Answers == 0
	})
	if state, err := other.State(patience(t)); err != nil || state.Answers != 1 || !state.Oldest.After(before) {
		t.Errorf("of the other model waits %+v, %v", state, err)
	}
}

// A full stream refuses answers, keeps those that wait, and takes more when one is done.
func TestAFullStreamRefusesAnswers(t *testing.T) {
	t.Parallel()
	w := waiting(t, connect(t, startJetStream(t, t.TempDir(), -1, nil)), nats.WaitingConfig{Bytes: 1 << 20})
	stored := 0
	var err error
	for ; stored < 20 && err == nil; stored++ {
		err = w.Put(patience(t), answer(fmt.Sprint(stored), 100<<10))
	}
	stored--
	if !errors.Is(err, stream.ErrFull) || stored < 9 {
		t.Fatalf("%d of 100 KiB are stored, then %v", stored, err)
	}
	if err := w.Put(patience(t), answer("large", 2<<20)); !errors.Is(err, stream.ErrTooLarge) {
		t.Errorf("2 MiB: %v", err)
	}
	receive(t, w, func(a *nats.WaitingAnswer) bool {
		if a.Event.Of != "0" {
			t.Errorf("the oldest is %s", a.Event.Of)
		}
		_ = a.Done()
		return false
	})
	eventually(t, "no room comes free", func() bool { return w.Put(patience(t), answer("more", 100<<10)) == nil })
	// The server counts what is stored for a consumer a moment after it has acknowledged it.
	eventually(t, fmt.Sprintf("not %d answers are counted", stored), func() bool {
		state, err := w.State(patience(t))
		if err != nil {
			t.Fatal(err)
		}
		return state.Answers == stored
	})
}

// The stream is made as it must be, and again if somebody deletes it. One that would keep what is
// done is not used. What is no answer teaches nothing.
func TestTheStreamOfWaitingAnswers(t *testing.T) {
	t.Parallel()
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	config := func() jetstream.StreamConfig {
		s, err := js.Stream(patience(t), nats.WaitingStream)
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().Config
	}
	w := waiting(t, conn, nats.WaitingConfig{After: time.Hour})
	put(t, w, answer("a", 1))
	if c := config(); c.MaxAge != time.Hour+nats.WaitingSlack || c.MaxBytes != nats.WaitingBytes || c.AllowDirect {
		t.Errorf("the stream is %+v", c)
	}
	put(t, waiting(t, conn, nats.WaitingConfig{After: 2 * time.Hour, Bytes: 1 << 20}), answer("b", 1))
	put(t, waiting(t, conn, nats.WaitingConfig{Model: "quick", After: time.Minute, Bytes: 1 << 20}), answer("c", 1))
	c := config()
	if c.MaxAge != 2*time.Hour+nats.WaitingSlack || c.MaxBytes != 1<<20 {
		t.Errorf("with a longer time the stream is %+v", c)
	}
	c.MaxAge = 0
	if _, err := js.UpdateStream(patience(t), c); err != nil {
		t.Fatal(err)
	}
	put(t, waiting(t, conn, nats.WaitingConfig{After: time.Minute}), answer("without an age", 1))
	if c := config(); c.MaxAge != time.Minute+nats.WaitingSlack {
		t.Errorf("a stream that kept for ever keeps for %v", c.MaxAge)
	}
	if err := js.DeleteStream(patience(t), nats.WaitingStream); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stream is not made again", func() bool { return w.Put(patience(t), answer("d", 1)) == nil })

	label := answer("e", 1)
	label.Action, label.Of = stream.Learn, ""
	for _, e := range []*stream.Event{label, answer("", 1), answer("f", 1)} {
		e.ID += "x"
		put(t, w, e)
	}
	var refused, taken int
	receive(t, w, func(a *nats.WaitingAnswer) bool {
		if a.Err != nil {
			refused++
		} else {
			taken++
		}
		_ = a.Done()
		return a.Event.Of != "f"
	})
	if refused != 2 || taken != 2 {
		t.Errorf("%d are refused and %d taken", refused, taken)
	}

	if err := js.DeleteStream(patience(t), nats.WaitingStream); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(patience(t), jetstream.StreamConfig{Name: nats.WaitingStream, Subjects: []string{"hamlet.waiting.>"}}); err != nil {
		t.Fatal(err)
	}
	if err := waiting(t, conn, nats.WaitingConfig{}).Put(patience(t), answer("g", 1)); !errors.Is(err, nats.ErrRefused) || !strings.Contains(err.Error(), "workqueue") {
		t.Errorf("a stream that keeps all: %v", err)
	}
}

// rights starts a server with the accounts and users of deploy/nats/hamlet.conf, and returns what
// connects as one of them.
func rights(t *testing.T) (as func(user string) *natsgo.Conn) {
	t.Helper()
	file, err := server.ProcessConfigFile("../../deploy/nats/hamlet.conf")
	if err != nil {
		t.Fatal(err)
	}
	s := startJetStream(t, t.TempDir(), -1, func(o *server.Options) { o.Accounts, o.Users, o.AuthTimeout = file.Accounts, file.Users, 30 })
	return func(user string) *natsgo.Conn {
		t.Helper()
		cfg := nats.Config{URL: s.ClientURL(), User: user, Password: strings.ToUpper(user) + "_PASSWORD", Timeout: 30 * time.Second}
		if user == "waiting" { // it stands in the URL
			cfg.URL, cfg.User, cfg.Password = fmt.Sprintf("nats://%s:%s@%s", cfg.User, cfg.Password, s.Addr()), "", ""
		}
		conn, err := nats.Connect(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		return conn
	}
}

// By the rights of deploy/nats/hamlet.conf one user of the gateway alone, beside the keeper,
// reaches the mail that waits.
func TestRightsToWaitingAnswers(t *testing.T) {
	t.Parallel()
	as := rights(t)
	gateway, store := as("gateway"), as("waiting")
	w := waiting(t, store, nats.WaitingConfig{})
	put(t, w, answer("a", 1))
	put(t, waiting(t, store, nats.WaitingConfig{After: 2 * time.Hour}), answer("b", 1))
	if state, err := w.State(patience(t)); err != nil || state.Oldest.IsZero() {
		t.Errorf("%+v, %v", state, err)
	}
	receive(t, w, func(a *nats.WaitingAnswer) bool {
		if err := a.Done(); err != nil {
			t.Error(err)
		}
		return a.Event.Of != "b"
	})
	eventually(t, "what is done still waits", func() bool {
		state, err := w.State(patience(t))
		return err == nil && state.Answers == 0
	})
	_, _ = serve(t, as("scorer"), scorer{}, nats.ServiceConfig{})
	if _, err := client(t, gateway, "").Ask(patience(t), questions.Question{Body: []byte("hello"), ContentType: questions.Text}); err != nil {
		t.Errorf("the gateway asks: %v", err)
	}
	if err := errors.Join(gateway.LastError(), store.LastError()); err != nil {
		t.Errorf("the gateway was refused: %v", err)
	}
	if err := waiting(t, gateway, nats.WaitingConfig{}).Put(patience(t), answer("c", 1)); !refusedFor(err, nats.WaitingStream, nats.SettingUser) {
		t.Errorf("the gateway's other user stores: %v", err)
	}

	const name = nats.WaitingStream
	for _, user := range []string{"client", "operator", "learner", "scorer", "gateway"} {
		for _, subject := range []string{
			nats.WaitingSubject("default"), "$JS.API.STREAM.MSG.GET." + name, "$JS.API.DIRECT.GET." + name, "$JS.API.DIRECT.GET." + name + ".x",
			"$JS.API.STREAM.UPDATE." + name, "$JS.API.STREAM.DELETE." + name, "$JS.API.STREAM.PURGE." + name, "$JS.API.STREAM.SNAPSHOT." + name,
			"$JS.API.CONSUMER.CREATE." + name + ".x", "$JS.API.CONSUMER.DURABLE.CREATE." + name + ".x",
			"$JS.API.CONSUMER.MSG.NEXT." + name + ".assume-default", "$JS.ACK." + name + ".x",
		} {
			refused(t, as(user), subject, func(c *natsgo.Conn) error { return c.Publish(subject, nil) })
		}
		for _, subject := range []string{"hamlet.waiting.>", "_INBOX.waiting.>", ">"} {
			refused(t, as(user), subject, func(c *natsgo.Conn) error {
				_, err := c.SubscribeSync(subject)
				return err
			})
		}
	}
	for _, subject := range []string{"$JS.API.STREAM.DELETE." + name, "hamlet.decisions.default", "$JS.API.STREAM.UPDATE.HAMLET_DECISIONS", "hamlet.score"} {
		refused(t, as("waiting"), subject, func(c *natsgo.Conn) error { return c.Publish(subject, nil) })
	}
}

// NATS asks for no right to what a stream copies. So whoever may change a stream of his own could
// have it copy the mail that waits, if that were in the same account.
func TestNobodyCopiesWaitingAnswers(t *testing.T) {
	t.Parallel()
	as := rights(t)
	w := waiting(t, as("waiting"), nats.WaitingConfig{})
	put(t, w, answer("a", 1), answer("b", 1))
	admin, err := jetstream.New(as("admin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, attacker := range []struct{ user, stream, subjects string }{
		{"learner", "HAMLET_ALERTS", "hamlet.alerts.>"}, {"scorer", "HAMLET_DECISIONS", "hamlet.decisions.>"},
	} {
		conn := as(attacker.user)
		js, err := jetstream.New(conn)
		if err != nil {
			t.Fatal(err)
		}
		stolen, err := conn.SubscribeSync("_INBOX." + attacker.user + ".stolen.>")
		if err != nil {
			t.Fatal(err)
		}
		plain := jetstream.StreamConfig{Name: attacker.stream, Subjects: []string{attacker.subjects}}
		from := &jetstream.StreamSource{Name: nats.WaitingStream}
		again := &jetstream.RePublish{Source: ">", Destination: "_INBOX." + attacker.user + ".stolen.>"}

		// fails waits until the server says that there is nothing to copy.
		fails := func(how string, s jetstream.Stream) {
			eventually(t, attacker.user+"'s "+how+" says nothing", func() bool {
				info, err := s.Info(patience(t))
				if err != nil {
					t.Fatal(err)
				}
				if n, _, _ := stolen.Pending(); n > 0 || info.State.Msgs > 0 {
					t.Fatalf("%s reads the mail that waits by its %s: %d messages", attacker.user, how, max(n, int(info.State.Msgs)))
				}
				of := append(info.Sources, info.Mirror)[0]
				return of != nil && of.Error != nil
			})
		}
		if _, err := js.CreateStream(patience(t), plain); err != nil {
			t.Fatal(err)
		}
		sourced := plain
		sourced.Sources, sourced.RePublish = []*jetstream.StreamSource{from}, again
		s, err := js.UpdateStream(patience(t), sourced)
		if err != nil {
			t.Fatal(err)
		}
		fails("source", s)
		if err := admin.DeleteStream(patience(t), attacker.stream); err != nil {
			t.Fatal(err)
		}
		if s, err = js.CreateStream(patience(t), jetstream.StreamConfig{Name: attacker.stream, Mirror: from, RePublish: again}); err != nil {
			t.Fatal(err)
		}
		fails("mirror", s)
	}
	if _, err := admin.Stream(patience(t), nats.WaitingStream); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the administrator of hamlet's account sees the mail that waits: %v", err)
	}
	if state, err := w.State(patience(t)); err != nil || state.Answers != 2 {
		t.Errorf("%+v, %v", state, err)
	}
}

// refused wants a new connection to be told that it may not do something.
func refused(t *testing.T, conn *natsgo.Conn, what string, do func(*natsgo.Conn) error) {
	t.Helper()
	if err := errors.Join(do(conn), conn.FlushTimeout(30*time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := conn.LastError(); !errors.Is(err, natsgo.ErrPermissionViolation) {
		t.Errorf("%s and %s: %v, want a refusal", conn.Opts.User, what, err)
	}
	conn.Close()
}
