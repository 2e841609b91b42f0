package doubtful

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/operate/review"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/logtest"
	"hamlet/stream/nats"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const hostile = `"><script>alert(1)</script>`

// A rig is the page, with a journal, a log of some labels, and kept mail.
type rig struct {
	t       *testing.T
	handler http.Handler
	user    access.User
	events  []stream.Event // of the log
	ids     []string       // of their messages
	kept    map[string]nats.ArchivedMail
	keptErr error
	taught  []stream.Event
	refuse  error
	audit   []string
	append  func(lines ...stream.JournalEntry)
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

func newRig(t *testing.T, change func(*Config)) *rig {
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
	r := &rig{t: t, user: access.User{Name: "ann", Role: access.Look | access.Label, Session: "s1", FormToken: "x"}, kept: map[string]nats.ArchivedMail{}}

	files, err := machine.Open(t.Context(), t.TempDir(), machine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	topic := stream.EventsTopic("default")
	log, err := files.Open(topic)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := files.Ensure(t.Context(), topic, 1, time.Hour); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		e := stream.Event{ID: fmt.Sprint(i), Source: "users", Tenant: "example.org", Label: stream.Spam, Body: stream.Body{
			Kind: stream.Mail, Mail: fmt.Appendf(nil, "From: ann@example.org\r\nSubject: mail %d %s\r\nMessage-ID: <%d@x>\r\n\r\ntext %d\u202e %s\r\n", i, hostile, i, i, hostile),
		}}
		if i == 3 {
			e.Body = stream.Body{Kind: stream.Text, Text: "a text"}
		}
		value, headers, err := e.EncodeRecord()
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Append(t.Context(), stream.Record{Value: value, Headers: headers}); err != nil {
			t.Fatal(err)
		}
		in, err := example.Read(headers, value)
		if err != nil {
			t.Fatal(err)
		}
		r.events, r.ids = append(r.events, e), append(r.ids, in.Example.Identity)
	}

	cfg := Config{NATS: conn, Bound: 20 * time.Second, Judge: Judge{Logs: files, Topic: topic, To: r, Kept: func(_ context.Context, id string) (nats.ArchivedMail, error) {
		if m, ok := r.kept[id]; ok || r.keptErr != nil {
			return m, r.keptErr
		}
		return nats.ArchivedMail{}, fmt.Errorf("mail: %w", nats.ErrNotArchived)
	}}}
	if change != nil {
		change(&cfg)
	}
	decisions, err := nats.NewJournal(conn, nats.JournalConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := decisions.Append(patience(t), "1", []stream.JournalEntry{{Time: time.Now(), Verdict: stream.DecideHam, ID: id(77)}}); err != nil { // makes the stream
		t.Fatal(err)
	}
	labels, err := nats.NewJournal(conn, nats.JournalConfig{Labels: true})
	if err != nil {
		t.Fatal(err)
	}
	r.append = func(lines ...stream.JournalEntry) {
		t.Helper()
		if err := labels.Append(patience(t), "l", lines); err != nil {
			t.Fatal(err)
		}
	}
	site := page.NewSite(page.Config{Model: "default", Log: slog.New(slog.DiscardHandler), Audit: func(_ context.Context, _ *http.Request, _ string, a page.Action, outcome string) error {
		r.audit = append(r.audit, a.Name+" "+a.Target[:4]+" "+a.Detail["answer"]+" "+outcome)
		return nil
	}})
	t.Cleanup(site.Close)
	site.Add(Page(site, cfg))
	r.handler = site.Handler()
	return r
}

// doubt is the journal's line of the label of an event of the log.
func (r *rig) doubt(i int, φ float64) stream.JournalEntry {
	return stream.JournalEntry{
		ID: r.ids[i], Time: time.Now().Add(-time.Hour), Label: stream.Spam, Source: "users" + hostile, Tenant: "example.org", Model: "default",
		P: .0123, Doubt: &stream.Doubt{Phi: φ, Offset: int64(i)},
	}
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

func (r *rig) post(id, answer string) *httptest.ResponseRecorder {
	r.t.Helper()
	request := httptest.NewRequest(http.MethodPost, "/doubtful", strings.NewReader(url.Values{"id": {id}, "answer": {answer}}.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, request.WithContext(access.WithUser(patience(r.t), r.user)))
	return w
}

func shown(body string) string {
	_, rest, _ := strings.Cut(body, `name="id" value="`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// One label comes after the other, the most doubtful first. What is answered or skipped does not come
// again. An answer has its line in the audit, and is a correction that anybody's label gives way to.
func TestDoubtfulPage(t *testing.T) {
	r := newRig(t, nil)
	if status, body := r.get("/doubtful"); status != http.StatusOK || !strings.Contains(body, "No learnt label") {
		t.Errorf("without doubts: %d\n%s", status, body)
	}
	r = newRig(t, nil)
	r.append(r.doubt(0, .3), r.doubt(1, .1), r.doubt(2, .2), r.doubt(3, .4))
	r.kept[r.ids[1]] = nats.ArchivedMail{Identity: r.ids[1], Tenant: "example.org", Message: r.events[1].Body.Mail}
	_, body := r.get("/doubtful")
	for _, want := range []string{"mail 1 &#34;&gt;&lt;script&gt;", "ann@example.org", "0.1000", "0.0123", `data-key="c"`, `data-key="t"`, `data-key="k"`, `name="csrf" value="x"`, "[U&#43;202E]", "It is spam", "It is ham", r.ids[3][:12]} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s\n%s", want, body)
		}
	}
	if shown(body) != r.ids[1] {
		t.Errorf("it shows %s", shown(body))
	}
	w := r.post(r.ids[1], "turn")
	if w.Code != http.StatusSeeOther || len(r.taught) != 1 || fmt.Sprint(r.audit) != fmt.Sprintf("[doubtful %.4s turn intended doubtful %.4s turn done]", r.ids[1], r.ids[1]) {
		t.Fatalf("%d, %v, %v", w.Code, r.taught, r.audit)
	}
	e := r.taught[0]
	if e.Action != stream.Correct || e.Of != r.ids[1] || e.Label != stream.Ham || e.Source != "console:ann" || e.OwnOnly || e.Tenant != "example.org" || string(e.Body.Mail) != string(r.events[1].Body.Mail) {
		t.Errorf("the event is %+v", e)
	}
	if err := e.Validate(); err != nil {
		t.Error(err)
	}
	if _, body = r.get(w.Header().Get("Location")); shown(body) != r.ids[2] || !strings.Contains(body, r.ids[1][:8]+" is ham. Said by console:ann.") || !strings.Contains(body, "not kept") {
		t.Errorf("then it shows %s\n%s", shown(body), body)
	}
	if w := r.post(r.ids[2], "skip"); w.Code != http.StatusSeeOther || len(r.taught) != 1 {
		t.Errorf("skip: %d, %v", w.Code, r.taught)
	}
	if _, body = r.get("/doubtful"); shown(body) != r.ids[0] {
		t.Errorf("after skipping it shows %s", shown(body))
	}
	if _, body = r.get("/doubtful?id=" + r.ids[3]); shown(body) != r.ids[3] {
		t.Errorf("what was asked for: %s", shown(body))
	}
	r.taught = nil
	if w := r.post(r.ids[3], "confirm"); w.Code != http.StatusSeeOther || len(r.taught) != 2 || r.taught[0].Label != stream.Ham || r.taught[1].Label != stream.Spam || r.taught[1].Body.Text != "a text" {
		t.Errorf("confirm: %d, %v", w.Code, r.taught)
	}
	r.user.Role = access.Look | access.Operate
	if status, body := r.get("/doubtful"); status != http.StatusForbidden || strings.Contains(body, "mail 0") {
		t.Errorf("who may not see mail sees it: %d", status)
	}
}

// What cannot be done is said, and changes nothing.
func TestDoubtfulPageRefuses(t *testing.T) {
	r := newRig(t, nil)
	other := r.doubt(0, .2)
	other.Doubt.Offset = 2
	other.ID = id(5)
	r.append(r.doubt(0, .1), other)
	for _, c := range [][2]string{{"x", "turn"}, {r.ids[0], "maybe"}, {r.ids[0], ""}, {"", "skip"}} {
		if w := r.post(c[0], c[1]); w.Code != http.StatusBadRequest {
			t.Errorf("%v: %d", c, w.Code)
		}
	}
	r.get("/doubtful")
	for id, why := range map[string]string{r.ids[1]: "no doubtful label", other.ID: "something else at offset 2"} {
		r.audit = nil
		if w := r.post(id, "turn"); w.Code != http.StatusSeeOther || !strings.Contains(fmt.Sprint(r.audit), why) {
			t.Errorf("%s: %d, %v", why, w.Code, r.audit)
		}
	}
	r.refuse, r.audit = errors.New("Kafka is away"), nil
	if r.post(r.ids[0], "turn"); len(r.taught) != 0 || !strings.Contains(fmt.Sprint(r.audit), "Kafka is away") {
		t.Errorf("%v, %v", r.taught, r.audit)
	}
	if _, body := r.get("/doubtful"); shown(body) != r.ids[0] {
		t.Error("an answer that failed takes the label away")
	}
	r.keptErr = errors.New("no rights")
	if _, body := r.get("/doubtful"); !strings.Contains(body, "no rights") {
		t.Errorf("without rights:\n%s", body)
	}
	// What the log has lost comes from kept mail.
	r = newRig(t, func(c *Config) { c.Judge.Logs = lost{c.Judge.Logs, new(logtest.Memory)} })
	r.append(r.doubt(0, .1), r.doubt(1, .2))
	r.kept[r.ids[1]] = nats.ArchivedMail{Identity: r.ids[1], Tenant: "t", Message: r.events[1].Body.Mail}
	r.get("/doubtful")
	if r.post(r.ids[0], "turn"); len(r.taught) != 0 || !strings.Contains(fmt.Sprint(r.audit), "lost offset 0") {
		t.Errorf("%v, %v", r.taught, r.audit)
	}
	if r.post(r.ids[1], "turn"); len(r.taught) != 1 || r.taught[0].Tenant != "t" {
		t.Errorf("%v, %v", r.taught, r.audit)
	}

	r = newRig(t, func(c *Config) { c.Judge.Logs, c.Judge.Kept = nil, nil })
	r.append(r.doubt(0, .1))
	if _, body := r.get("/doubtful"); !strings.Contains(body, "--kafka") || strings.Contains(body, `value="turn"`) || !strings.Contains(body, "not kept") {
		t.Errorf("without a log:\n%s", body)
	}
	if r.post(r.ids[0], "turn"); !strings.Contains(fmt.Sprint(r.audit), "--kafka") {
		t.Errorf("%v", r.audit)
	}
}

// A lost log has lost its first ten records.
type lost struct {
	stream.Logs
	log *logtest.Memory
}

func (l lost) Open(string) (stream.Topic, error) {
	for range 11 {
		if err := l.log.Append(context.Background(), stream.Record{}); err != nil {
			return nil, err
		}
	}
	l.log.Retain(10)
	return lostTopic{l.log}, nil
}

type lostTopic struct{ *logtest.Memory }

func (lostTopic) Close() error { return nil }
func (lostTopic) Name() string { return "lost" }

var _ review.Teacher = (*rig)(nil)
