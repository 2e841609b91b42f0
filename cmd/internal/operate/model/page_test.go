package model_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"golang.org/x/net/html"

	"hamlet/algos/feature"
	algos "hamlet/algos/model"
	"hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/operate/now"
	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
)

const hostile = `"><script>alert(1)</script>' onload=x`

// A pageRig is the page of a model whose versions are saved by hand.
type pageRig struct {
	t       *testing.T
	redis   *miniredis.Miniredis
	store   *redis.Store
	server  *httptest.Server
	user    access.User
	audit   []string
	next    int64
	now     time.Time
	seen    now.Snapshot
	matches []answered.Match
}

func newPageRig(t *testing.T) *pageRig {
	t.Helper()
	r := &pageRig{t: t, redis: miniredis.RunT(t), now: time.Now(),
		user: access.User{Name: "ann", Role: access.Look | access.Operate, Session: "s", FormToken: "token"}}
	var err error
	r.store, err = redis.New(redis.Config{Addr: r.redis.Addr(), Keep: 20, Daily: new(0)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.store.Close() })
	r.serve(r.store)
	return r
}

// serve serves a new page, which remembers nothing.
func (r *pageRig) serve(store state.Store) {
	site := page.NewSite(page.Config{Model: "default", Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return r.now },
		Audit: func(_ context.Context, _ *http.Request, _ string, a page.Action, outcome string) error {
			r.audit = append(r.audit, fmt.Sprintf("%s %s %s: %s", a.Name, a.Target, strings.TrimSpace(a.Detail["versions"]+" "+a.Detail["incident"]), outcome))
			return nil
		}})
	site.Add(model.New(site, model.Config{Store: store, Look: func(context.Context) *now.Snapshot { return &r.seen },
		Matches: func() []answered.Match { return slices.Clone(r.matches) }}))
	h := site.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h.ServeHTTP(w, req.WithContext(access.WithUser(req.Context(), r.user)))
	}))
	r.server = server
	r.t.Cleanup(func() { site.Close(); server.Close() })
}

// made returns a model that has learnt n messages.
func madeForPage(t *testing.T, n int, change func(*algos.Config)) *algos.Model {
	t.Helper()
	cfg := algos.Config{TableBits: 8, DuplicateWindow: 100, TextExperts: []string{"text-words"}}
	if change != nil {
		change(&cfg)
	}
	m, err := algos.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		body := algos.Body{Tenant: "t", Message: &feature.Message{Body: fmt.Appendf(nil, "word%d pills", i%9), BodyBytes: 11}}
		if len(cfg.Dense) > 0 {
			body = algos.Body{Tenant: "t"}
			for k, name := range cfg.Dense {
				body.Vector = append(body.Vector, feature.Number{Name: name, Value: float64((i + k) % 5)})
			}
		}
		if _, err := m.Apply(&algos.Example{ID: fmt.Sprint(i), Source: hostile, Spam: i%2 == 0, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// save saves a version as a learner does, that many minutes ago, and returns its SHA-256.
func (r *pageRig) save(m *algos.Model, ago int) string {
	r.t.Helper()
	b, err := m.AppendBinary(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.next += 10
	c := &state.Checkpoint{Schema: 1, Numerics: m.Numerics(), Config: m.Config().JSON(), Events: m.Events(),
		Position: state.Position{Next: r.next}, Model: b, Saved: r.now.Add(-time.Duration(ago) * time.Minute)}
	lease, err := r.store.Seize(r.t.Context(), "w")
	if err != nil {
		r.t.Fatal(err)
	}
	c.Epoch, c.Writer = lease.Epoch, lease.Writer
	if _, err := r.store.Save(r.t.Context(), c); err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("%x", c.ModelSHA256)
}

// get fetches a page and checks what holds for all.
func (r *pageRig) get(path string, status int, want ...string) string {
	r.t.Helper()
	res, err := http.Get(r.server.URL + path)
	return r.read(path, res, err, status, want)
}

// post sends a form and fetches the page that it leads to.
func (r *pageRig) post(form url.Values, status int, want ...string) string {
	r.t.Helper()
	res, err := http.PostForm(r.server.URL+"/model/change", form)
	return r.read(form.Encode(), res, err, status, want)
}

// check finds what the Content-Security-Policy forbids, and elements that nobody wrote.
func check(n *html.Node) (bad []string) {
	if n.Type == html.ElementNode && n.Data == "script" && n.FirstChild != nil {
		bad = append(bad, "a script in the page")
	}
	for _, a := range n.Attr {
		if a.Key == "style" || strings.HasPrefix(a.Key, "on") || strings.HasPrefix(strings.ToLower(a.Val), "javascript:") {
			bad = append(bad, a.Key+"="+a.Val)
		}
	}
	for child := range n.ChildNodes() {
		bad = append(bad, check(child)...)
	}
	return bad
}

func (r *pageRig) read(what string, res *http.Response, err error, status int, want []string) string {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	text := string(b)
	if res.StatusCode != status {
		r.t.Fatalf("%s: status %d, want %d: %s", what, res.StatusCode, status, text)
	}
	if tree, err := html.Parse(strings.NewReader(text)); err != nil || len(check(tree)) > 0 {
		r.t.Errorf("%s: the page has %q, %v", what, check(tree), err)
	}
	if len(b) > 100_000 {
		r.t.Errorf("%s: %d bytes", what, len(b))
	}
	for _, w := range want {
		if !regexp.MustCompile(w).MatchString(text) {
			r.t.Errorf("%s: %q is missing in %s", what, w, text)
		}
	}
	return text
}

func (r *pageRig) lacks(text string, unwanted ...string) {
	r.t.Helper()
	for _, u := range unwanted {
		if strings.Contains(text, u) {
			r.t.Errorf("%q is in %s", u, text)
		}
	}
}

func TestEmptyStates(t *testing.T) {
	r := newPageRig(t)
	r.lacks(r.get("/model", 200, "The store keeps no version of the model default yet.*hamlet learn"), "Roll back", "<table>")
	r.get("/model/inside", 404, "The store keeps no version")
	r.get("/model/change?do=rollback", 503, "The store keeps no version")
}

// Redis that is away leaves the page, with a sentence.
func TestRedisAway(t *testing.T) {
	r := newPageRig(t)
	r.save(madeForPage(t, 3, nil), 1)
	r.redis.SetError("LOADING")
	r.lacks(r.get("/model", 200, `role="alert">The store does not say which versions there are`), "Pin…")
	r.get("/model/inside", 503)
	r.post(url.Values{"do": {"rollback"}, "expect": {"0:1"}}, 200, "Nothing was done")
	if len(r.audit) > 0 {
		t.Errorf("an action was begun: %v", r.audit)
	}
}

func TestPageVersions(t *testing.T) {
	r := newPageRig(t)
	for i := range 4 {
		r.save(madeForPage(t, 10*(i+1), nil), 50-10*i)
	}
	if err := r.store.Pin(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	r.seen.Learnt = now.Learnt{LagKnown: true, Lag: 9}
	text := r.get("/model", 200, `version=4">4</a> <span class="badge">head`, `(?s)>2</a> <span class="badge good">served</span> <span class="badge warn">pinned`,
		`(?s)<span class="value">pinned<.*version 2; learning goes on`, `(?s)Lag</span><span class="value">9<`, `Roll back…`, `Events learnt`, `minutes from now`, `name="a" value="3" checked`, `name="b" value="4" checked`,
		`do=pin&amp;version=3"`, `None of the answers that are remembered`)
	r.lacks(text, `do=pin&amp;version=2"`)
	r.seen.Learnt = now.Learnt{LagAway: "Kafka does not say how long the log is."}
	r.get("/model", 200, "Kafka does not say how long the log is", `(?s)Lag</span><span class="value">–<`)
	r.seen.Learnt, r.seen.Journal.Reading = now.Learnt{}, true
	r.get("/model", 200, "The lag is not known yet", "The journal of decisions is being read")
	r.seen.Journal = now.Journal{None: true}
	r.get("/model", 200, "No scorer has written a journal")
	r.user.Role = access.Look
	r.lacks(r.get("/model", 200, "Compare two"), "Pin…", "Roll back…", "Unpin…")
}

// What labels say is told of each version: of its own answers, and of all since.
func TestLogLoss(t *testing.T) {
	r := newPageRig(t)
	old := r.save(madeForPage(t, 10, nil), 300)
	newer := r.save(madeForPage(t, 20, nil), 100)
	match := func(hash string, minutes int, p float64) answered.Match {
		return answered.Match{Model: "default/" + hash[:12], P: p, Spam: true, Verdict: stream.DecideSpam,
			Labelled: r.now.Add(-time.Duration(minutes) * time.Minute), Delay: time.Minute}
	}
	for i := range 12 {
		r.matches = append(r.matches, match(newer, 50, 0.9+float64(i%2)/20), match(old, 200, 0.5))
	}
	r.matches = append(r.matches, match(old, 40, 0.5))     // a scorer that is late
	r.matches = append(r.matches, match(old, 25*60, 0.01)) // too old to be shown
	r.seen.Labels.Since = r.now.Add(-24 * time.Hour)
	cell := func(loss string, n int) string {
		return fmt.Sprintf(`<td>%s <span class="soft">\(\S+–\S+\)</span> <span class="soft">of %d</span></td>`, loss, n)
	}
	r.get("/model", 200,
		`(?s)version=2">2</a>.*?`+cell(`0\.1256`, 13)+cell(`0\.0783`, 12)+`.*version=1">1</a>.*?`+cell(`0\.3980`, 25)+cell(`0\.6931`, 13),
		"Log loss of labelled answers", "of answers since", "from whichever version was served then")
	r.seen.Labels.Away = "NATS cannot be reached."
	r.serve(r.store)
	r.get("/model", 200, "NATS cannot be reached")
}

// Where another model was promoted, the page says that it answers.
func TestPromotedModel(t *testing.T) {
	r := newPageRig(t)
	r.save(madeForPage(t, 10, nil), 5)
	if err := r.store.Promote(t.Context(), state.Promotion{Model: "cand", Since: r.now.Add(-time.Hour)}); err != nil {
		t.Fatal(err)
	}
	r.get("/model", 200, "another model", "The model cand answers in the place of this one", "hamlet model promote --back")
}

// A version is pinned after a page that says what will answer, and only as that page says.
func TestPinRollBackUnpin(t *testing.T) {
	r := newPageRig(t)
	for i := range 3 {
		r.save(madeForPage(t, 10*(i+1), nil), 50-10*i)
	}
	pinned := func(want int64) {
		t.Helper()
		if got, err := r.store.Pinned(t.Context()); err != nil || got != want {
			t.Errorf("pinned is %d, %v, want %d", got, err, want)
		}
	}
	r.get("/model/change?do=pin&version=1", 200, `Pin version 1`, `(?s)version 3, 30 events.*version 1, 10 events.*20 events fewer`,
		`name="csrf" value="token"`, `name="expect" value="0:1"`)
	pinned(0)
	pin := url.Values{"do": {"pin"}, "version": {"1"}, "expect": {"0:1"}}
	r.user.Role = access.Look
	r.get("/model/change?do=pin&version=1", 403)
	r.post(pin, 403)
	r.user.Role = access.Look | access.Label
	r.post(pin, 403)
	pinned(0)
	r.user.Role = access.Look | access.Operate
	r.post(url.Values{"do": {"pin"}, "version": {"1"}, "expect": {"0:2"}}, 200, "Nothing was done: what would be pinned has changed")
	r.post(url.Values{"do": {"pin"}, "version": {"1"}}, 200, "has changed since you looked")
	pinned(0)
	if len(r.audit) > 0 {
		t.Errorf("the audit has %v", r.audit)
	}
	r.post(pin, 200, `role="status">Pinned. Answers come from version 1`, "badge warn")
	pinned(1)
	r.get("/model/change?do=pin&version=2", 200, `name="expect" value="0:2"`, `(?s)<dt>Now</dt><dd>version 1, 10 events.*<dt>From then on</dt><dd>version 2, 20 events.*10 events more`)
	r.post(url.Values{"do": {"pin"}, "version": {"2"}, "expect": {"0:2"}}, 200, "Answers come from version 2")
	pinned(2)
	r.get("/model", 200, "Roll back…", "Unpin…")
	r.get("/model/change?do=rollback", 200, `name="expect" value="0:1"`)
	r.post(url.Values{"do": {"rollback"}, "expect": {"0:1"}}, 200, "Pinned")
	pinned(1)
	r.get("/model/change?do=rollback", 409, "No version before the served one")
	r.lacks(r.get("/model", 200, "Unpin…"), "Roll back…")
	r.get("/model/change?do=unpin", 200, "What was learnt in the meantime is in it", "20 events more")
	r.post(url.Values{"do": {"unpin"}, "expect": {"unpin"}}, 200, "Unpinned", "nothing is pinned")
	pinned(0)
	r.get("/model/change?do=unpin", 200, "already")
	want := []string{"pin model default 0:1: intended", "pin model default 0:1: done", "pin model default 0:2: intended", "pin model default 0:2: done",
		"rollback model default 0:1: intended", "rollback model default 0:1: done", "unpin model default unpin: intended", "unpin model default unpin: done"}
	if strings.Join(r.audit, "\n") != strings.Join(want, "\n") {
		t.Errorf("the audit has %q, want %q", r.audit, want)
	}
	r.get("/model/change?do=pin&version=77", 409, "Version 77 of model default is not kept")
	r.get("/model/change?do=pin", 400, "Choose a version")
	r.get("/model/change?do=", 400)
	r.post(url.Values{"do": {hostile}}, 400)
	r.get("/model/change?do=pin&version="+url.QueryEscape(hostile), 400)
}

// The audit names the incident that a pin answers, and takes no other word for it.
func TestPinForAnIncident(t *testing.T) {
	r := newPageRig(t)
	r.save(madeForPage(t, 10, nil), 20)
	r.save(madeForPage(t, 20, nil), 10)
	const address = "/model/change?do=pin&version=1&incident="
	text := r.get(address+"default.0.700", 200, `name="incident" value="default.0.700"`)
	r.lacks(r.get(address, 200), `name="incident"`)
	r.lacks(text, "incident=&")
	pin := url.Values{"do": {"pin"}, "version": {"1"}, "expect": {"0:1"}, "incident": {"default.0.700"}}
	for _, bad := range []string{hostile, "default", "default.0", "default.0.x", strings.Repeat("m", 200) + ".0.1", "default.0.1\n"} {
		r.get(address+url.QueryEscape(bad), 400, "not by its id")
		pin.Set("incident", bad)
		r.post(pin, 400)
	}
	if len(r.audit) > 0 {
		t.Errorf("the audit has %q", r.audit)
	}
	pin.Set("incident", "default.0.700")
	r.post(pin, 200, "Pinned")
	if want := "pin model default 0:1 default.0.700: intended\npin model default 0:1 default.0.700: done"; strings.Join(r.audit, "\n") != want {
		t.Errorf("the audit has %q, want %q", r.audit, want)
	}
}

// What a version has learnt is shown, whoever named its inputs and sources.
func TestInsideAndCompare(t *testing.T) {
	r := newPageRig(t)
	vectors := func(cfg *algos.Config) {
		cfg.Dense = []string{hostile, strings.Repeat("long ", 40), "plain"}
		cfg.SecondHead = 0.99
	}
	r.save(madeForPage(t, 30, vectors), 30)
	r.save(madeForPage(t, 90, vectors), 20)
	text := r.get("/model/inside?version=2", 200, "Version 2", "Head for vectors", "second head", "&lt;script&gt;", "long long", "logit-trees",
		`compare\?a=1&amp;b=2">Compare with version 1<`,
		`dense</th><td><strong>`, "may be adopted", "new model", "The head answers alone until all are built", "No expert has learnt")
	r.lacks(text, strings.Repeat("long ", 40)[:150]+"</")
	r.get("/model/inside", 200, "Version 2")
	r.get("/model/inside?version=1", 200, `a=1&amp;b=2">Compare with version 2<`)
	r.get("/model/compare?a=1&b=2", 200, "Versions 1 and 2", `>\+60<`, "in standard deviations", "All settings are the same", "&lt;script&gt;.*30 labels")
	r.get("/model/compare?a=2&b=2", 200, "They are the same model")
	r.get("/model/compare?a=2&b=9", 404, "Version 9 is not kept")
	r.get("/model/compare?a=2&b="+url.QueryEscape(hostile), 404, "A version is a number")
	m := madeForPage(t, 40, nil)
	cfg := m.Config()
	cfg.Standing = "none"
	if err := m.Adopt(cfg); err != nil {
		t.Fatal(err)
	}
	r.save(m, 5)
	r.serve(r.store)
	r.get("/model/inside", 200, "Head for mail and text", "Largest weights", "text words × 2", "At event 40: standing from agreement to none", `text-words</th><td>text</td><td class="n">\S+</td><td class="n">\d+\.\d %`,
		"The heads answer alone")
	r.save(madeForPage(t, 0, nil), 1)
	r.serve(r.store)
	r.get("/model/inside?version=4", 200, "No head has learnt an event yet")
}

// A model that cannot be read is a sentence.
func TestDamagedModel(t *testing.T) {
	r := newPageRig(t)
	r.save(madeForPage(t, 30, nil), 30)
	for _, key := range r.redis.Keys() {
		if strings.Contains(key, ":chunk:") {
			r.redis.Del(key)
		}
	}
	r.get("/model/inside", 503, "missing")
	r.get("/model", 200, "Inside")
}

// The fragment follows, and has nothing that only an operator sees.
func TestFragment(t *testing.T) {
	r := newPageRig(t)
	r.save(madeForPage(t, 3, nil), 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", r.server.URL+"/live?page=/model", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if text := lines.Text(); strings.HasPrefix(text, "data: ") {
			if !strings.Contains(text, "Events learnt") || strings.Contains(text, "change?do=") {
				t.Errorf("the fragment is %s", text)
			}
			return
		}
	}
	t.Error("no fragment came")
}
