package incidents

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/operate/sources"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const hostile = `liar"><script>alert(1)</script>`

// A rig is the pages in front of a NATS and a Redis, and a user whom the test chooses.
type rig struct {
	t      *testing.T
	cfg    Config
	conn   *natsgo.Conn
	alerts *nats.Alerts
	url    string

	mu    sync.Mutex
	user  access.User
	audit map[string]stream.AuditEntry
	lines []string
	away  error // what the audit says
	later time.Duration
}

// Acknowledged is that of an Audit.
func (r *rig) Acknowledged(context.Context) (map[string]stream.AuditEntry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.audit, r.away
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s, err := embedded.StartNATS(embedded.NATSOptions{Dir: t.TempDir(), Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	conn, err := nats.Connect(nats.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	store, err := redis.New(redis.Config{Addr: miniredis.RunT(t).Addr(), Model: "default"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	r := &rig{t: t, user: access.User{Name: "ann", Role: access.Look | access.Operate, Session: "s"}, audit: map[string]stream.AuditEntry{}}
	r.conn, r.cfg = conn, Config{Store: store, Audit: r}
	if r.alerts, err = nats.NewAlerts(conn, nats.AlertsConfig{}); err != nil {
		t.Fatal(err)
	}
	r.serve()
	return r
}

// serve serves the pages until the test ends. Its clock goes a minute further with each
// question, so that nothing is remembered from the one before.
func (r *rig) serve() {
	site := page.NewSite(page.Config{Model: "default", Log: slog.New(slog.DiscardHandler), Now: func() time.Time {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.later += time.Minute
		return time.Now().Add(r.later)
	}, Audit: func(_ context.Context, req *http.Request, id string, a page.Action, outcome string) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lines = append(r.lines, fmt.Sprint(a.Name, " ", a.Target, " ", outcome))
		if r.away == nil && outcome == page.Done {
			r.audit[a.Target] = stream.AuditEntry{ID: id, Time: time.Now(), User: access.FromContext(req.Context()).Name, Action: a.Name, Target: a.Target}
		}
		return r.away
	}})
	r.cfg.Log = NewLog(r.conn, "default", site.Now)
	site.Add(Page(site, r.cfg))
	h := site.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		user := r.user
		r.mu.Unlock()
		h.ServeHTTP(w, req.WithContext(access.WithUser(req.Context(), user)))
	}))
	r.url = server.URL
	r.t.Cleanup(func() { site.Close(); server.Close() })
}

func (r *rig) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *rig) get(path string) (int, string) {
	r.t.Helper()
	w, err := http.Get(r.url + path)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.read(w)
}

func (r *rig) post(path, id string) (int, string) {
	r.t.Helper()
	w, err := http.PostForm(r.url+path, url.Values{"incident": {id}})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.read(w)
}

func (r *rig) read(w *http.Response) (int, string) {
	r.t.Helper()
	defer w.Body.Close()
	b, err := io.ReadAll(w.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if text := string(b); strings.Contains(text, "<script>alert") || strings.Contains(text, " style=") || strings.Contains(text, " onload=") {
		r.t.Error("the page holds what no page may hold")
	}
	return w.StatusCode, string(b)
}

func (r *rig) holds(text string, wanted ...string) {
	r.t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			r.t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func (r *rig) publish(alerts ...stream.Alert) {
	r.t.Helper()
	if err := r.alerts.Publish(r.t.Context(), alerts...); err != nil {
		r.t.Fatal(err)
	}
}

// published returns a transition of an incident.
func published(incident uint64, transition int, kind, state string, event uint64) stream.Alert {
	a := stream.Alert{
		Incident: incident, Transition: transition, Kind: kind, State: state, Event: event, Level: 0.7, Threshold: 0.65,
		Body: stream.AlertText, Reading: "reading of " + kind, Model: "default", Time: time.Now().UTC(),
	}
	if kind == stream.AlertLabelNoise {
		a.Level, a.Reference, a.Threshold = -4.1, -3.8, 0.2
		a.Labels = &stream.LabelReport{
			Epsilon: 0.03, SNR: 8.3, NoiseGrade: 0.4, HamCalledSpam: stream.FlipRate{Known: true, Rate: 0.19, Low: 0.15, High: 0.24}, SpamCalledHam: stream.FlipRate{High: 1},
			Suspects: []stream.Suspect{{ID: "<script>alert(2)</script>", Source: hostile, Phi: 0.02}},
			Sources:  []stream.SourceRate{{Source: hostile, Events: 130, FlipRate: 0.2, Low: 0.15, High: 0.26}},
		}
	}
	return a
}

// save saves a model that has learnt n events, as a new version.
func (r *rig) save(m *model.Model, n int) {
	r.t.Helper()
	for i := int(m.Events()); i < n; i++ {
		words := fmt.Sprint("minutes of the meeting ", i%7, i%11)
		if i%2 == 0 {
			words = fmt.Sprint("cheap pills ", i%7, i%11)
		}
		ex := model.Example{ID: fmt.Sprint(i), Source: "desk", Spam: i%2 == 0, Body: model.Body{Message: &feature.Message{Body: []byte(words), BodyBytes: len(words)}}}
		if _, err := m.Apply(&ex); err != nil {
			r.t.Fatal(err)
		}
	}
	lease, err := r.cfg.Store.Seize(r.t.Context(), "w")
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := m.AppendBinary(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.cfg.Store.Save(r.t.Context(), &state.Checkpoint{Schema: 1, Numerics: m.Numerics(), Config: m.Config().JSON(), Epoch: lease.Epoch,
		Events: m.Events(), Position: state.Position{Next: int64(n)}, Model: b, Saved: time.Now()}); err != nil {
		r.t.Fatal(err)
	}
}

// The list has what is open first, and says who acknowledged what; a later step says so.
func TestList(t *testing.T) {
	r := newRig(t)
	_, text := r.get("/incidents")
	r.holds(text, "There was no incident")
	accused := published(300, 1, stream.AlertSource, stream.AlertRaised, 300)
	accused.Accused = hostile
	r.publish(accused,
		published(700, 1, stream.AlertUnknown, stream.AlertSuspected, 700), published(700, 2, stream.AlertUnknown, stream.AlertWithdrawn, 900))
	old := stream.Alert{Kind: stream.AlertConcept, State: stream.AlertRaised, Event: 5, Body: stream.AlertText, Reading: "of an old program", Model: "default", Time: time.Now().UTC()}
	line, err := old.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.conn.Request(nats.AlertSubject(old.Kind, old.Model), line, 30*time.Second); err != nil { // until it is stored
		t.Fatal(err)
	}
	_, text = r.get("/incidents")
	r.holds(text, "2 open", "in the last 90 days", `href="/incidents/default.0.300"`, "suspected 700, withdrawn 900", "liar&#34;&gt;&lt;script", "open: raised", "of an old program")
	if strings.Index(text, "default.0.300") > strings.Index(text, "default.0.700") || strings.Contains(text, "default.0.5") {
		t.Error("what is open is not first")
	}

	_, text = r.post("/incidents/acknowledge", "default.0.300")
	r.holds(text, "You have acknowledged", "by ann", "Acknowledge again")
	if got := fmt.Sprint(r.lines); got != "[acknowledge default.0.300 intended acknowledge default.0.300 done]" {
		t.Error(got)
	}
	_, text = r.get("/incidents")
	r.holds(text, "ann <time")
	next := published(300, 2, stream.AlertSource, stream.AlertCleared, 2000)
	next.Accused, next.Time = hostile, time.Now().Add(time.Hour)
	r.publish(next)
	_, text = r.get("/incidents")
	r.holds(text, "changed since", "1 open")

	for _, id := range []string{"", "default.0.301", "../x", hostile} {
		if _, text := r.post("/incidents/acknowledge", id); !strings.Contains(text, "no such incident") {
			t.Errorf("%q: %s", id, text)
		}
		if status, _ := r.get("/incidents/" + url.PathEscape(id)); status != http.StatusNotFound && id != "" {
			t.Errorf("%q: %d", id, status)
		}
	}
	r.set(func() { r.user.Role = access.Look | access.Label })
	if status, _ := r.post("/incidents/acknowledge", "default.0.300"); status != http.StatusForbidden || len(r.lines) != 2 {
		t.Errorf("a looker acknowledges: %d, %q", status, r.lines)
	}
}

// The page of an incident tells its life, its evidence, what was ruled out, and what to do.
func TestOneIncident(t *testing.T) {
	r := newRig(t)
	m, err := model.New(model.Config{TableBits: 8, TextExperts: []string{"lean"}})
	if err != nil {
		t.Fatal(err)
	}
	r.save(m, 600)
	r.save(m, 750)
	r.publish(published(700, 1, stream.AlertUnknown, stream.AlertSuspected, 700), published(700, 2, stream.AlertLabelNoise, stream.AlertRaised, 740))
	status, text := r.get("/incidents/default.0.700")
	if status != http.StatusOK || strings.Count(text, `class="chart-svg"`) != 2 || len(text) > 80_000 {
		t.Errorf("%d, %d bytes: %s", status, len(text), text)
	}
	r.holds(text,
		"<strong>raised label-noise</strong> at event 740", "event 740: label-noise raised", "event 700: a suspicion", // the steps
		"Evidence at each step", "as the saved model keeps it", "of the saved model", "after event 750", "<td>none</td>", // the evidence
		"the level lay 0.30 nats below its reference; 0.20 raise the alarm", "No source&#39;s labels contradicted", "not asked. What was named", "ruled out. ",
		"19.0 %, with 90 % between 15.0 % and 24.0 %", "not known: too few", "&lt;script&gt;alert(2)", html.EscapeString(sources.URL(hostile)), // the labels
		html.EscapeString(sources.WithdrawURL(hostile, "default.0.700")), "Pin version 1", "after 600 events", `href="/model/change?do=pin&amp;incident=default.0.700&amp;version=1"`, "Nobody is accused by name")

	accused := published(700, 3, stream.AlertLabelNoise, stream.AlertRaised, 760)
	accused.Accused, accused.Reference = hostile, 0 // the alarm for labels has no reference yet
	r.publish(accused)
	_, text = r.get("/incidents/default.0.700")
	r.holds(text, "was accused after the labels were named", "At event 760 the labels since the change looked like flips", "had no reference yet", "plans to withdraw what <strong>liar&#34;")

	r.set(func() { r.user.Role = access.Look })
	_, text = r.get("/incidents/default.0.700")
	if strings.Contains(text, "<button>") || strings.Contains(text, "/model/change") || strings.Contains(text, "/sources/withdraw") {
		t.Errorf("a looker sees an operator's buttons: %s", text)
	}
	r.set(func() { r.user.Role = access.Look | access.Operate })
	r.publish(published(100, 1, stream.AlertCovariate, stream.AlertRaised, 100), published(100, 2, stream.AlertCovariate, stream.AlertCleared, 200))
	_, text = r.get("/incidents/default.0.100")
	r.holds(text, "The store keeps no version from before", "keeps no levels of the label-noise alarm", "No step of this incident came with a report", "0.70 spreads above")
}

// Of counts alone, a model that was learnt again, or replaced, looks older than an incident
// that it comes after.
func TestVersionFromBefore(t *testing.T) {
	r := newRig(t)
	m, err := model.New(model.Config{TableBits: 8, TextExperts: []string{"lean"}})
	if err != nil {
		t.Fatal(err)
	}
	r.publish(published(700, 1, stream.AlertUnknown, stream.AlertSuspected, 700))
	r.save(m, 60)
	const none = "The store keeps no version from before this incident"
	_, text := r.get("/incidents/default.0.700")
	r.holds(text, none)
	if strings.Contains(text, "/model/change") {
		t.Error("a version saved after the incident is offered")
	}

	r.publish(published(800, 1, stream.AlertUnknown, stream.AlertSuspected, 800))
	_, text = r.get("/incidents/default.0.800")
	r.holds(text, "Pin version 1")
	r.save(m, 70)
	if err := r.cfg.Store.MarkReplaced(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	_, text = r.get("/incidents/default.0.800")
	r.holds(text, none)
}

// What a server that is away would say is missing, and nothing else.
func TestServersAway(t *testing.T) {
	r := newRig(t)
	r.publish(published(700, 1, stream.AlertUnknown, stream.AlertSuspected, 700))
	r.set(func() { r.away = errors.New("the audit is away") })
	_, text := r.get("/incidents")
	r.holds(text, "Who acknowledged what cannot be read: the audit is away.", "default.0.700")
	_, text = r.post("/incidents/acknowledge", "default.0.700")
	r.holds(text, "Nothing was done")

	gone, err := redis.New(redis.Config{Addr: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	conn := r.conn
	r.cfg.Store = gone
	r.serve()
	status, text := r.get("/incidents/default.0.700")
	r.holds(text, "The saved model cannot be read", "Which versions are kept cannot be read", "Its alarm has no level yet", "event 700: a suspicion")
	if status != http.StatusOK {
		t.Errorf("without Redis: %d", status)
	}
	conn.Close()
	status, text = r.get("/incidents")
	r.holds(text, "The alerts cannot be read", "default.0.700")
	if status != http.StatusOK {
		t.Errorf("without NATS: %d", status)
	}
}

// The newest open incident comes first. A suspicion has no kind.
func TestOpen(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	log := NewLog(r.conn, "default", func() time.Time { return now })
	open := func() (ids string) {
		t.Helper()
		now = now.Add(time.Minute)
		all, err := log.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all.Open {
			ids += fmt.Sprint(a.ID, " ", a.Kind, ";")
			if !strings.Contains(a.Sentence, "reading of") {
				t.Errorf("%+v", a)
			}
		}
		return ids
	}
	if got := open(); got != "" {
		t.Errorf("before the first alert: %s", got)
	}
	r.publish(published(100, 1, stream.AlertUnknown, stream.AlertSuspected, 101), published(200, 1, stream.AlertConcept, stream.AlertRaised, 201))
	if got := open(); got != "default.0.200 concept;default.0.100 ;" {
		t.Errorf("two: %s", got)
	}
	r.publish(published(100, 2, stream.AlertUnknown, stream.AlertWithdrawn, 102))
	if got := open(); got != "default.0.200 concept;" {
		t.Errorf("one is over: %s", got)
	}
}
