package scorer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hamlet/cmd/internal/testkit/await"
	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// A fakeMail is a store that does what fail says.
type fakeMail struct {
	mu   sync.Mutex
	fail func(*nats.ArchivedMail) error
	got  []nats.ArchivedMail
}

func (f *fakeMail) Put(ctx context.Context, m *nats.ArchivedMail) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		if err := f.fail(m); err != nil {
			return err
		}
	}
	f.got = append(f.got, *m)
	return nil
}

func asked1(identity string, size int) ([]*stream.Event, []stream.Verdict) {
	return []*stream.Event{{Tenant: "example.org", Body: stream.Body{Kind: stream.Mail, Mail: make([]byte, size)}}}, []stream.Verdict{{Identity: identity}}
}

// Mail that is scored can be read again by its identity, whatever door it names. Any number of
// questions about it are about one message in the store, and the console's about none.
func TestScoredMailIsKept(t *testing.T) {
	r := miniredis.RunT(t)
	store := openStore(t, r)
	l := newTeacher(t, store)
	l.learn(20)
	l.save()
	url, _ := natsAt(t, "127.0.0.1:0", t.TempDir())
	conn := connect(t, url)
	kept, err := nats.NewMailArchive(conn, nats.MailArchiveConfig{Age: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{Questions: over(conn), Store: store, Journal: newJournalOn(t, conn), Mail: kept})
	c := ask(t, url)
	message := func(i int) []byte { return fmt.Appendf(nil, "Subject: canary %d\r\n\r\nclaim your prize\r\n", i) }
	identity := func(i int) string {
		m := mail.Parse(message(i))
		return mail.Identity("example.org", &m)
	}
	for _, m := range [][]byte{message(1), message(2), message(1)} {
		if _, err := c.Ask(patience(t), questions.Question{Body: m, ContentType: questions.Mail, Tenant: "example.org", Door: "milter"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Ask(patience(t), questions.Question{Body: message(3), ContentType: questions.Mail, Explain: true, Tenant: "example.org", Door: Console}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ask(patience(t), questions.Question{Body: message(4), ContentType: questions.Mail, Tenant: "example.org", Door: Console}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ask(patience(t), questions.Question{Body: []byte("a text"), ContentType: questions.Text, Tenant: "example.org", Door: "http"}); err != nil {
		t.Fatal(err)
	}
	kept4 := func() bool { return testutil.ToFloat64(s.metrics.mailKept) == 4 }
	await.Until(t, kept4, func() string { return "mail is not kept" })
	reader, err := nats.NewMailArchiveReader(conn, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{1, 2, 4} {
		if m, err := reader.Get(patience(t), identity(i)); err != nil || !bytes.Equal(m.Message, message(i)) || m.Tenant != "example.org" {
			t.Errorf("message %d: %+v, %v", i, m, err)
		}
	}
	if _, err := reader.Get(patience(t), identity(3)); !errors.Is(err, nats.ErrNotArchived) {
		t.Errorf("what the console asked about: %v", err)
	}
}

// A store that is away costs nobody time: what does not fit is dropped and counted, and may be
// offered again. What waits is stored when the store is back.
func TestMailKeeperIsBounded(t *testing.T) {
	store, m := &fakeMail{fail: func(*nats.ArchivedMail) error { return errors.New("away") }}, newMetrics(nil)
	k := newMailKeeper(store, m, slog.New(slog.DiscardHandler))
	lost := func(why string) float64 { return testutil.ToFloat64(m.mailLost.WithLabelValues(why)) }
	const n = maxMail + 10
	for i := range n {
		requests, verdicts := asked1(fmt.Sprint(i), 10)
		k.offer(t.Context(), requests, verdicts)
	}
	if got := lost(mailQueue); got != 10 {
		t.Errorf("%v are lost, want 10", got)
	}
	store.fail = nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k.run(ctx) // stores what waits
	if len(store.got) != maxMail || k.bytes.Load() != 0 {
		t.Errorf("%d are stored, %d bytes left", len(store.got), k.bytes.Load())
	}

	// Bytes are bounded too.
	k = newMailKeeper(store, m, slog.New(slog.DiscardHandler))
	for i := range 5 {
		k.offer(t.Context(), first(asked1(fmt.Sprint("large ", i), maxMailBytes/4)), []stream.Verdict{{Identity: fmt.Sprint("large ", i)}})
	}
	if got := lost(mailQueue); got != 10+1 {
		t.Errorf("%v are lost, want one more", got)
	}

	// What can never be stored is dropped, and so is what waits when the scorer stops.
	k = newMailKeeper(store, m, slog.New(slog.DiscardHandler))
	store.fail = func(m *nats.ArchivedMail) error {
		if strings.HasPrefix(m.Identity, "large") {
			return stream.ErrTooLarge
		}
		return errors.New("away")
	}
	for _, id := range []string{"large", "small"} {
		k.offer(t.Context(), first(asked1(id, 1)), []stream.Verdict{{Identity: id}})
	}
	k.run(ctx)
	if lost(mailTooLarge) != 1 || lost(mailStopped) != 1 || testutil.ToFloat64(m.mailFailing) != 1 {
		t.Errorf("%v too large, %v stopped, failing %v", lost(mailTooLarge), lost(mailStopped), testutil.ToFloat64(m.mailFailing))
	}
}

func first[A, B any](a A, _ B) A { return a }
