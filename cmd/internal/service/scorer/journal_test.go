package scorer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hamlet/cmd/internal/testkit/await"
	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
	"hamlet/stream/servertest/loopback"
)

// natsAt runs a NATS server at addr, with JetStream if dir is not empty, until the test ends
// or stop is called.
func natsAt(t testing.TB, addr, dir string) (url string, stop func()) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	if number == 0 {
		number = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{Host: host, Port: number, NoSigs: true, NoLog: true, JetStream: dir != "", StoreDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	stop = sync.OnceFunc(func() { s.Shutdown(); s.WaitForShutdown() })
	t.Cleanup(stop)
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the nats server doesn't listen")
	}
	return s.ClientURL(), stop
}

func newJournalOn(t testing.TB, conn *natsgo.Conn) *nats.Journal {
	t.Helper()
	j, err := nats.NewJournal(conn, nats.JournalConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// awaitJournal returns the journal's entries once there are n.
func awaitJournal(t testing.TB, url string, n int) (entries []stream.JournalEntry) {
	t.Helper()
	conn, ctx := connect(t, url), patience(t)
	await.Until(t, func() bool {
		entries = nil
		for e, err := range nats.ReadJournal(ctx, conn, "default", time.Time{}) {
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
		return len(entries) >= n
	}, func() string { return fmt.Sprintf("the journal has %d lines, want %d", len(entries), n) })
	return entries
}

// Each answer has a line that says the same, whatever it was asked by. Nothing of the
// message is in it, nor in the log.
func TestJournalOfAnswers(t *testing.T) {
	r := miniredis.RunT(t)
	teacher := newTeacher(t, openStore(t, r))
	teacher.learn(20)
	teacher.save()
	url, _ := natsAt(t, "127.0.0.1:0", t.TempDir())
	conn := connect(t, url)
	logged := &locked{w: new(bytes.Buffer)}
	s := start(t, Config{Questions: over(conn), Store: openStore(t, r), Journal: newJournalOn(t, conn), LogDecisions: true,
		Log: slog.New(slog.NewJSONHandler(logged, nil))})
	const message = "From: ann.canary@sender.example\nTo: bob.canary@receiver.example\nMessage-ID: <canary-77@sender.example>\n" +
		"X-Canary: headercanary\nSubject: subjectcanary\n\nclaim prize bodycanary http://linkcanary.example/\n"
	c := ask(t, url)
	var want []stream.Verdict
	send := func(door, body, contentType string, explain bool) {
		t.Helper()
		tenant := ""
		if door != "" {
			tenant = "example.org"
		}
		verdicts, err := c.Ask(patience(t), questions.Question{Body: []byte(body), ContentType: contentType, Explain: explain, Tenant: tenant, Door: door})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, verdicts...)
	}
	send("spamd", message, questions.Mail, false)
	send("spamd", message, questions.Mail, true)
	send("", "bodycanary in a text", questions.Text, false)
	if _, err := ask(t, url).Ask(patience(t), questions.Question{Body: []byte(message), ContentType: questions.Mail, Explain: true, Tenant: "example.org", Door: Console}); err != nil {
		t.Fatal(err) // it has no line: nothing was decided
	}
	send(Console, message, questions.Mail, false) // a score always has one
	batch, err := json.Marshal([]map[string]string{
		{"id": "a1", "tenant": "carl.canary@tenant.example", "text": "textcanary"}, {"id": "<idcanary@sender.example>", "text": "textcanary"}})
	if err != nil {
		t.Fatal(err)
	}
	send("spamd", string(batch), questions.JSON, false)
	if _, err := c.Ask(patience(t), questions.Question{Tenant: "example.org", Door: "spamd", Body: []byte("{}"), ContentType: questions.JSON}); err == nil {
		t.Error("a request without a body was answered") // and has no line
	}
	for _, v := range want {
		servedModel(t, s, v)
	}

	got := awaitJournal(t, url, len(want))
	if len(got) != len(want) {
		t.Fatalf("%d lines for %d answers", len(got), len(want))
	}
	for i, e := range got {
		v := want[i]
		if e.P != v.P || e.Low != v.Interval[0] || e.High != v.Interval[1] || e.Verdict != v.Decision || e.ID != v.Identity ||
			e.Model != "default/"+v.Model.SHA256[:12] || e.MS <= 0 || e.MS > 60_000 || time.Since(e.Time) > time.Minute || len(e.Reasons) != 3 {
			t.Errorf("line %d is %+v of the verdict %+v", i, e, v)
		}
	}
	for i, reason := range want[1].Reasons[:3] {
		if got[0].Reasons[i] != reason.Name || got[1].Reasons[i] != reason.Name {
			t.Errorf("reason %d: %q and %q, want %q", i, got[0].Reasons[i], got[1].Reasons[i], reason.Name)
		}
	}
	if want[0].Reasons != nil {
		t.Error("who asks for a score gets reasons because of the journal")
	}
	parsed := mail.Parse([]byte(message))
	first, second, last := got[0], got[2], got[len(got)-1]
	if first.ID != mail.Identity("example.org", &parsed) || first.MessageID != stream.MessageIDHash("canary-77@sender.example") || first.Door != "spamd" || first.Tenant != "example.org" {
		t.Errorf("the mail's line: %+v", first)
	}
	if second.Door != "nats" || second.Tenant != "default" || second.ID != "" || second.MessageID != "" {
		t.Errorf("the text's line: %+v", second)
	}
	if got[3].Door != Console || got[3].ID != first.ID {
		t.Errorf("the line of a score that names the console's door: %+v", got[3])
	}
	if got[4].Request != "a1" || got[4].Tenant != stream.Unaddressed("carl.canary@tenant.example") || last.Request[0] != '#' || last.Tenant != "example.org" {
		t.Errorf("the batch's lines: %+v", got[4:])
	}

	lines, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"journal": string(lines), "log": logged.String()} {
		if !strings.Contains(text, first.ID) {
			t.Errorf("the %s lacks the identity: %s", what, text)
		}
		if strings.Contains(text, "canary") || strings.Contains(text, "@") || strings.Contains(text, "prize") {
			t.Errorf("the %s has words or addresses of the message: %s", what, text)
		}
	}
}

// servedModel wants a verdict's model to be the one that is served.
func servedModel(t *testing.T, s *Scorer, v stream.Verdict) {
	t.Helper()
	if got := s.follower.current().ref.SHA256; v.Model.SHA256 != got {
		t.Errorf("answered by %s, served is %s", v.Model.SHA256, got)
	}
}

// A locked writer may be written to concurrently.
type locked struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.String()
}

// Answers do not wait for a server that lacks JetStream or is down. What waits is written
// once it is there. The log says it once each time.
func TestJournalOutlivesItsServer(t *testing.T) {
	r := miniredis.RunT(t)
	teacher := newTeacher(t, openStore(t, r))
	teacher.learn(4)
	teacher.save()
	addr, dir := loopback.Hold(t), t.TempDir()
	url, stop := natsAt(t, addr, "")
	conn := connect(t, url)
	logged := &locked{w: new(bytes.Buffer)}
	s := start(t, Config{Questions: over(conn), Store: openStore(t, r), Journal: newJournalOn(t, conn), Log: slog.New(slog.NewTextHandler(logged, nil))})
	score := func(id string) {
		t.Helper()
		if _, err := s.Score(patience(t), []*stream.Event{{ID: id, Body: stream.Body{Kind: stream.Text, Text: question}}}, false); err != nil {
			t.Fatal(err)
		}
	}
	awaitFailing := func(want float64) {
		t.Helper()
		await.Until(t, func() bool { return testutil.ToFloat64(s.metrics.failing) == want },
			func() string { return fmt.Sprintf("failing is not %v; the log: %s", want, logged) })
	}
	score("without")
	awaitFailing(1)
	stop()
	score("down")
	_, stop = natsAt(t, addr, dir)
	awaitJournal(t, url, 2)
	awaitFailing(0)
	stop()
	await.Until(t, func() bool { return !conn.IsConnected() }, func() string { return "the connection outlives its server" })
	score("again")
	awaitFailing(1)
	natsAt(t, addr, dir)
	var ids []string
	for _, e := range awaitJournal(t, url, 3) {
		ids = append(ids, e.Request)
	}
	if got := strings.Join(ids, " "); got != "without down again" {
		t.Errorf("the journal has %q", got)
	}
	if n := strings.Count(logged.String(), "not written for now"); n != 2 {
		t.Errorf("the log says %d times that there is no journal, want 2:\n%s", n, logged)
	}
	if lost := testutil.ToFloat64(s.metrics.lost.WithLabelValues("jetstream")); lost != 0 {
		t.Errorf("%v lines are lost", lost)
	}
}

func TestJournalMetricsAreShown(t *testing.T) {
	registry := prometheus.NewRegistry()
	url, _ := natsAt(t, "127.0.0.1:0", "")
	r := miniredis.RunT(t)
	conn := connect(t, url)
	New(Config{Questions: over(conn), Store: openStore(t, r), Journal: newJournalOn(t, conn), Registerer: registry})
	for _, name := range []string{"hamlet_scorer_journal_lines_total", "hamlet_scorer_journal_lost_total", "hamlet_scorer_journal_failing"} {
		if n, err := testutil.GatherAndCount(registry, name); n != 1 || err != nil {
			t.Errorf("%s: %d series, %v", name, n, err)
		}
	}
}
