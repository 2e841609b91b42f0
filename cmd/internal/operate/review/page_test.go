package review_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/operate/review"
	"hamlet/cmd/internal/service/scorer"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/mail"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const hostile = `"><script>alert(1)</script>`

// A rig is the page, with a journal, kept mail, a scorer and a learner.
type rig struct {
	t       *testing.T
	conn    *natsgo.Conn
	handler http.Handler
	user    access.User
	kept    map[string]nats.ArchivedMail
	keptErr error
	taught  []stream.Event
	refuse  error // what the learner says
	audit   []string
	batch   int
}

func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (r *rig) Publish(_ context.Context, events ...stream.Event) error {
	if r.refuse == nil {
		r.taught = append(r.taught, events...)
	}
	return r.refuse
}

func newRig(t *testing.T, change func(*review.Config)) *rig {
	t.Helper()
	server, err := embedded.StartNATS(embedded.NATSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	conn, err := nats.Connect(nats.Config{URL: server.URL(), Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	r := &rig{t: t, conn: conn, user: access.User{Name: "ann", Role: access.Look | access.Label, Session: "s1", FormToken: "x"}, kept: map[string]nats.ArchivedMail{}}
	cfg := review.Config{NATS: conn, Teacher: r, Bound: 20 * time.Second, Kept: func(_ context.Context, id string) (nats.ArchivedMail, error) {
		if m, ok := r.kept[id]; ok || r.keptErr != nil {
			return m, r.keptErr
		}
		return nats.ArchivedMail{}, fmt.Errorf("mail: %w", nats.ErrNotArchived)
	}}
	if change != nil {
		change(&cfg)
	}
	site := page.NewSite(page.Config{Model: "default", Log: slog.New(slog.DiscardHandler), Audit: func(_ context.Context, _ *http.Request, _ string, a page.Action, outcome string) error {
		r.audit = append(r.audit, a.Name+" "+a.Target[:4]+" "+a.Detail["label"]+" "+outcome)
		return nil
	}})
	t.Cleanup(site.Close)
	site.Add(review.Page(site, cfg))
	r.handler = site.Handler()
	return r
}

// scorer answers p for all mail, with an interval, until the test ends.
func (r *rig) scorer(p, lo, hi float64) {
	r.t.Helper()
	service, err := nats.NewService(r.conn, nats.ServiceConfig{})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Serve(ctx, fixed{p, lo, hi, r.t}, nil) }()
	r.t.Cleanup(func() { cancel(); <-ended })
	<-service.Ready()
}

type fixed struct {
	p, lo, hi float64
	t         *testing.T
}

func (f fixed) Score(ctx context.Context, requests []*stream.Event, explain bool) ([]stream.Verdict, error) {
	if questions.Door(ctx) != scorer.Console || !explain || requests[0].Tenant != "example.org" {
		f.t.Errorf("the question comes by %s, of %s, for reasons %v", questions.Door(ctx), requests[0].Tenant, explain)
	}
	v := stream.Verdict{P: f.p, Interval: [2]float64{f.lo, f.hi}, Decision: stream.DecideUnsure, Reasons: []stream.Reason{{Name: "reason " + hostile, Contribution: 1, SD: .5}}}
	switch m := string(requests[0].Body.Mail); {
	case strings.Contains(m, "mail 1"): // this one was learnt meanwhile
		v.P, v.Interval, v.Decision = .001, [2]float64{.0009, .0011}, stream.DecideHam
	case strings.Contains(m, "mail 2"):
		v.Interval = [2]float64{f.lo / 2, f.hi}
	}
	return []stream.Verdict{v}, nil
}

func (f fixed) Info(context.Context) (stream.Info, error) { return stream.Info{}, nil }

// keep keeps a mail, and returns its identity.
func (r *rig) keep(n int) string {
	m := nats.ArchivedMail{Tenant: "example.org", Time: time.Now(), Message: fmt.Appendf(nil, "From: ann@example.org\r\nSubject: mail %d %s\r\nX-Evil: %s\r\nContent-Type: text/plain; charset=utf-8\r\n\r\ntext %d\u202e %s %s\r\n", n, hostile, hostile, n, hostile, strings.Repeat("word ", 10_000))}
	parsed := mail.Parse(m.Message)
	m.Identity = mail.Identity(m.Tenant, &parsed)
	r.kept[m.Identity] = m
	return m.Identity
}

func (r *rig) journal(labels bool, lines ...stream.JournalEntry) {
	r.t.Helper()
	j, err := nats.NewJournal(r.conn, nats.JournalConfig{Labels: labels})
	if err != nil {
		r.t.Fatal(err)
	}
	r.batch++
	if err := j.Append(patience(r.t), fmt.Sprint(r.batch), lines); err != nil {
		r.t.Fatal(err)
	}
}

// answer is a decision whose label is the more worth the wider it is.
func answer(id string, wide float64) stream.JournalEntry {
	return stream.JournalEntry{ID: id, Time: time.Now(), Verdict: stream.DecideUnsure, P: .5, Low: .5 - wide, High: .5 + wide, Door: "milter", Tenant: "example.org" + hostile, Reasons: []string{id}, Model: "default/0"}
}

func (r *rig) get(path string) (int, string) {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil).WithContext(access.WithUser(patience(r.t), r.user)))
	body := w.Body.String()
	if strings.Contains(body, "<script>") || strings.Contains(body, "\u202e") || strings.Contains(body, " style=") {
		r.t.Errorf("%s: the page holds what a stranger wrote", path)
	}
	return w.Code, body
}

func (r *rig) post(id, label string) *httptest.ResponseRecorder {
	r.t.Helper()
	request := httptest.NewRequest(http.MethodPost, "/review", strings.NewReader(url.Values{"id": {id}, "label": {label}}.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, request.WithContext(access.WithUser(patience(r.t), r.user)))
	return w
}

var shownID = regexp.MustCompile(`name="id" value="([0-9a-f]{32})"`)

// shown is the message that a page asks about.
func shown(body string) string {
	if m := shownID.FindStringSubmatch(body); m != nil {
		return m[1]
	}
	return ""
}

// One message comes after the other: that of the highest worth first, but for those that the
// model has become sure of. What is labelled and skipped does not come again, and what was labelled becomes learnt.
func TestReview(t *testing.T) {
	r := newRig(t, nil)
	if _, body := r.get("/review"); !strings.Contains(body, "No answered message waits") || !strings.Contains(body, "hamlet score message.eml") {
		t.Errorf("without a journal:\n%s", body)
	}
	r = newRig(t, nil)
	r.scorer(.6, .1, .9)
	sure, second, third, fourth := r.keep(1), r.keep(2), r.keep(3), r.keep(4)
	lost := strings.Repeat("ab", 16)
	r.journal(false, answer(third, .3), answer(sure, .45), answer(lost, .44), answer(second, .4), answer(fourth, .2))
	status, body := r.get("/review")
	if status != http.StatusOK || shown(body) != second {
		t.Fatalf("%d shows %s, want %s\n%s", status, shown(body), second, body)
	}
	for _, want := range []string{"mail 2 &#34;&gt;&lt;script&gt;", "From", "ann@example.org", `data-key="s"`, `data-key="h"`, `data-key="k"`, "<b>5</b> answered messages",
		"The message is longer", "[U&#43;202E]", "reason &#34;", `href="/why?id=` + second, `name="csrf" value="x"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if len(body) > 80<<10 {
		t.Errorf("the page has %d bytes", len(body))
	}

	if w := r.post(second, "skip"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/review" || len(r.audit) != 0 {
		t.Errorf("skip: %d to %s, %v", w.Code, w.Header().Get("Location"), r.audit)
	}
	if _, body := r.get("/review"); shown(body) != third {
		t.Errorf("after skipping it shows %s, want %s", shown(body), third)
	}
	r.user.Session = "s2" // another login has skipped nothing
	if _, body := r.get("/review"); shown(body) != second {
		t.Errorf("another session sees %s", shown(body))
	}
	r.user.Session = "s1"
	w := r.post(third, "spam")
	if w.Code != http.StatusSeeOther || len(r.taught) != 1 || fmt.Sprint(r.audit) != fmt.Sprintf("[label %.4s spam intended label %.4s spam done]", third, third) {
		t.Fatalf("%d, %v, %v", w.Code, r.taught, r.audit)
	}
	e := r.taught[0]
	if e.Action != stream.Correct || e.Of != third || e.Label != stream.Spam || e.Source != "console:ann" || !e.OwnOnly || e.Tenant != "example.org" || string(e.Body.Mail) != string(r.kept[third].Message) {
		t.Errorf("the event is %+v", e)
	}
	if err := e.Validate(); err != nil {
		t.Error(err)
	}
	if _, body = r.get(w.Header().Get("Location")); shown(body) != fourth || !strings.Contains(body, third[:8]+" is spam. Said by console:ann.") || !strings.Contains(body, "on its way") || !strings.Contains(body, "<b>1</b>, of which <b>0</b> are learnt") {
		t.Errorf("after a label it shows %s\n%s", shown(body), body)
	}
	// It can be looked at again, and called otherwise.
	if _, body = r.get("/review?id=" + third); shown(body) != third {
		t.Errorf("a labelled message again: %s", shown(body))
	}
}

// A kept message is found behind many that were not kept.
func TestReviewFindsWhatIsKept(t *testing.T) {
	r := newRig(t, nil)
	r.scorer(.6, .1, .9)
	id := r.keep(2)
	var lines []stream.JournalEntry
	for i := range 100 {
		e := answer(fmt.Sprintf("%032x", i), .3+float64(i)/1000)
		e.Time = time.Now().Add(-time.Hour)
		lines = append(lines, e)
	}
	r.journal(false, append(lines, answer(id, .1))...)
	for range 2 {
		if _, body := r.get("/review"); shown(body) != id || !strings.Contains(body, "<b>101</b>") {
			t.Errorf("it shows %q\n%s", shown(body), body)
		}
	}
}

// The journal tells what was learnt, also what was labelled before this console began.
func TestReviewCountsWhatIsLearnt(t *testing.T) {
	r := newRig(t, nil)
	a, b := r.keep(2), r.keep(3)
	if w := r.post(a, "ham"); w.Code != http.StatusSeeOther || len(r.taught) != 1 {
		t.Fatal(w.Code)
	}
	now := time.Now()
	r.journal(false, answer(strings.Repeat("cd", 16), .3)) // makes the stream
	r.journal(true, stream.JournalEntry{ID: a, Time: now, Label: stream.Ham, Source: "console:ann"}, stream.JournalEntry{ID: b, Time: now, Label: stream.Ham, Source: "console:bob"},
		stream.JournalEntry{ID: strings.Repeat("ef", 16), Time: now, Label: stream.Ham, Source: "users"})
	if _, body := r.get("/review"); !strings.Contains(body, "<b>2</b>, of which <b>2</b> are learnt") || !strings.Contains(body, "ham, learnt") {
		t.Errorf("the page says\n%s", body)
	}
}

// A user whose name is an address labels too. The source hides the address, here and in the
// journal, and a console that began later counts the label.
func TestReviewByAnAddress(t *testing.T) {
	r := newRig(t, nil)
	r.user.Name = "ann@example.org"
	id := r.keep(2)
	w := r.post(id, "ham")
	if w.Code != http.StatusSeeOther || len(r.taught) != 1 {
		t.Fatalf("%d, %v, %v", w.Code, r.taught, r.audit)
	}
	e := r.taught[0]
	if err := e.Validate(); err != nil || e.Source != "console:"+stream.Unaddressed("ann@example.org") {
		t.Errorf("the source is %s: %v", e.Source, err)
	}
	if _, body := r.get(w.Header().Get("Location")); !strings.Contains(body, "is ham. Said by console:#") {
		t.Errorf("the page says\n%s", body)
	}
	later := newRig(t, nil)
	later.journal(false, answer(strings.Repeat("cd", 16), .3)) // makes the stream
	later.journal(true, stream.JournalEntry{ID: id, Time: time.Now(), Label: e.Label, Source: stream.Unaddressed(e.Source)})
	if _, body := later.get("/review"); !strings.Contains(body, "<b>1</b>, of which <b>1</b> is learnt") {
		t.Errorf("a later console says\n%s", body)
	}
}

// What is missing is said in words, and the rest is there.
func TestReviewWithoutThings(t *testing.T) {
	id := strings.Repeat("ab", 16)
	for name, c := range map[string]struct {
		change func(*review.Config)
		errs   error
		want   []string
	}{
		"kept mail":  {func(c *review.Config) { c.Kept = nil }, nil, []string{"--keep-mail DAYS", id[:12], "milter", "0.5000"}},
		"its mail":   {nil, nil, []string{"--keep-mail DAYS", id[:12]}},
		"its rights": {nil, errors.New("the user may not read kept mail"), []string{"may not read kept mail", id[:12]}},
	} {
		r := newRig(t, c.change)
		r.keptErr = c.errs
		r.journal(false, answer(id, .3))
		status, body := r.get("/review")
		for _, want := range c.want {
			if status != http.StatusOK || !strings.Contains(body, want) || shown(body) != "" {
				t.Errorf("without %s: %d lacks %q\n%s", name, status, want, body)
			}
		}
		if w := r.post(id, "spam"); w.Code != http.StatusSeeOther || len(r.taught) != 0 || !strings.Contains(fmt.Sprint(r.audit), "failed") {
			t.Errorf("without %s a label: %d, %v, %v", name, w.Code, r.taught, r.audit)
		}
	}
	r := newRig(t, func(c *review.Config) { c.Teacher = nil })
	id = r.keep(2)
	r.journal(false, answer(id, .3))
	if _, body := r.get("/review"); !strings.Contains(body, "--kafka") || strings.Contains(body, `value="spam"`) || !strings.Contains(body, "No scorer of this model") {
		t.Errorf("without Kafka and scorer:\n%s", body)
	}
	r = newRig(t, nil)
	id = r.keep(2)
	r.refuse = errors.New("Kafka is away")
	r.journal(false, answer(id, .3))
	if w := r.post(id, "spam"); w.Code != http.StatusSeeOther || !strings.Contains(fmt.Sprint(r.audit), "Kafka is away") {
		t.Errorf("%v", r.audit)
	}
	if _, body := r.get("/review"); shown(body) != id {
		t.Error("a label that failed takes the message away")
	}
	r.conn.Close()
	if status, body := r.get("/review?id=" + id); status != http.StatusOK || !strings.Contains(body, "mail 2") {
		t.Errorf("without NATS: %d\n%s", status, body)
	}
}

// Only who may label sees mail, and a form that says something else changes nothing.
func TestReviewRefuses(t *testing.T) {
	r := newRig(t, nil)
	id := r.keep(2)
	r.journal(false, answer(id, .3))
	for _, c := range [][2]string{{"x", "spam"}, {id, "maybe"}, {id, ""}, {"", "skip"}, {"../" + id, "ham"}, {id, strings.Repeat("x", 100<<10)}} {
		if w := r.post(c[0], c[1]); w.Code != http.StatusBadRequest {
			t.Errorf("%.40q: %d", c, w.Code)
		}
	}
	if status, _ := r.get("/review?id=%3Cscript%3E"); status != http.StatusBadRequest {
		t.Errorf("a wrong id: %d", status)
	}
	r.user.Role = access.Look | access.Operate
	if status, body := r.get("/review"); status != http.StatusForbidden || strings.Contains(body, "mail 2") {
		t.Errorf("an operator sees mail: %d", status)
	}
	if w := r.post(id, "spam"); w.Code != http.StatusForbidden {
		t.Errorf("an operator labels: %d", w.Code)
	}
	if len(r.taught)+len(r.audit) != 0 {
		t.Errorf("%v, %v", r.taught, r.audit)
	}
}
