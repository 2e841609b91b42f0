package sources

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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hamlet/algos/model"
	versions "hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/operate/withdraw"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/learner"
	"hamlet/cmd/internal/service/learner/learnertest"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const (
	hostile = `liar"><script>alert(1)</script>`
	bound   = time.Minute
)

// A rig is the pages in front of a Kafka and a Redis, and a user whom the test chooses.
type rig struct {
	t     *testing.T
	kafka kafka.Config
	store *redis.Store
	log   *kafka.Log
	url   string

	mu    sync.Mutex
	user  access.User
	audit []string
	now   time.Time // zero: the time
	info  stream.Info
	asked int // how often the scorer was asked for info
}

func newRig(t *testing.T, withKafka bool) *rig {
	t.Helper()
	s, err := servertest.StartRedis(servertest.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	r := &rig{t: t, user: access.User{Name: "ann", Role: access.Look | access.Operate, Session: "s"}}
	if withKafka {
		k, err := servertest.StartKafka(servertest.KafkaOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = k.Close() })
		r.kafka = kafka.Config{Brokers: []string{k.Addr()}}
		if err := (settings.Topic{Replication: 1}).Ensure(t.Context(), r.kafka, "default"); err != nil {
			t.Fatal(err)
		}
		if r.log, err = kafka.NewLog(r.kafka, stream.EventsTopic("default")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.log.Close() })
	}
	if r.store, err = redis.New(redis.Config{Addr: s.Addr()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.store.Close() })
	r.serve()
	return r
}

// serve serves the pages until the test ends.
func (r *rig) serve() {
	site := page.NewSite(page.Config{Model: "default", Log: slog.New(slog.DiscardHandler), Now: func() time.Time {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.now.IsZero() {
			return time.Now()
		}
		return r.now
	}, Audit: func(_ context.Context, _ *http.Request, _ string, a page.Action, outcome string) error {
		r.audit = append(r.audit, fmt.Sprint(a.Name, " ", a.Target, " ", a.Detail, " ", outcome))
		return nil
	}})
	run := Add(site, Config{Store: r.store, Kafka: r.logs(), Info: func(context.Context) (stream.Info, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked++
		return r.info, nil
	}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	h := site.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		user := r.user
		r.mu.Unlock()
		h.ServeHTTP(w, req.WithContext(access.WithUser(req.Context(), user)))
	}))
	r.url = server.URL
	r.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Error(err)
		}
		site.Close()
		server.Close()
	})
}

func (r *rig) role(role access.Role) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.user.Role = role
}

// label is an event; what it is about says what it is, and a lie says otherwise.
func label(i int, source string, lie bool) stream.Event {
	spam := i/2%2 == 0
	words := []string{"lunch", "report", "friday"}
	if spam {
		words = []string{"winner", "prize", "cheap"}
	}
	e := stream.Event{ID: fmt.Sprint("e", i), Source: source, Tenant: "t", Label: stream.Ham,
		Body: stream.Body{Kind: stream.Text, Text: fmt.Sprint(words[i%3], i%5, " ", words[i%2])}}
	if spam != lie {
		e.Label = stream.Spam
	}
	return e
}

// learn writes events and has a learner learn and save them.
func (r *rig) learn(events ...stream.Event) {
	r.t.Helper()
	var records []stream.Record
	for i := range events {
		value, headers, err := events[i].EncodeRecord()
		if err != nil {
			r.t.Fatal(err)
		}
		records = append(records, stream.Record{Key: []byte("t"), Value: value, Headers: headers})
	}
	if len(records) > 0 {
		if err := r.log.Append(r.t.Context(), records...); err != nil {
			r.t.Fatal(err)
		}
	}
	cfg := model.Config{TableBits: 8, TextExperts: []string{"lean"}, Alarms: model.Alarms{Off: true}}
	l, err := learner.New(learnertest.Config(r.t, r.kafka, stream.EventsTopic("default"), r.store, "default", cfg))
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	plan := withdraw.Plan{Until: r.end()}
	saved, err := plan.Saved(r.t.Context(), withdraw.Servers{Store: r.store}, bound)
	cancel()
	if err := errors.Join(err, <-ended); err != nil || !saved {
		r.t.Fatal(saved, err)
	}
}

func (r *rig) end() int64 {
	r.t.Helper()
	bounds, err := r.log.Bounds(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return bounds.End
}

func (r *rig) get(path string) (int, string) {
	r.t.Helper()
	w, err := http.Get(r.url + path)
	if err != nil {
		r.t.Fatal(err)
	}
	return read(r.t, w)
}

// post sends a form and follows the answer.
func (r *rig) post(path string, fields ...string) (int, string) {
	r.t.Helper()
	return read(r.t, r.send(path, fields...))
}

// send sends a form and returns the answer, which is to be read.
func (r *rig) send(path string, fields ...string) *http.Response {
	r.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	w, err := http.PostForm(r.url+path, form)
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

// plan has a plan made and returns its page. The answer does not wait longer than startWait for it.
func (r *rig) plan(fields ...string) string {
	r.t.Helper()
	w := r.send("/sources/withdraw/plan", fields...)
	if _, text := read(r.t, w); !strings.Contains(text, making) {
		return text
	}
	return r.until(w.Request.URL.RequestURI(), func(text string) bool { return !strings.Contains(text, making) })
}

const making = "The plan is being made."

// until gets a page until it is as wanted.
func (r *rig) until(path string, wanted func(text string) bool) string {
	r.t.Helper()
	for end := time.Now().Add(bound); ; time.Sleep(10 * time.Millisecond) {
		_, text := r.get(path)
		if wanted(text) {
			return text
		}
		if time.Now().After(end) {
			r.t.Fatalf("%s stays\n%s", path, text)
		}
	}
}

func read(t *testing.T, w *http.Response) (int, string) {
	t.Helper()
	defer w.Body.Close()
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "<script>alert") {
		t.Error("a name has become a script")
	}
	return w.StatusCode, string(b)
}

func (r *rig) holds(page string, wanted ...string) {
	r.t.Helper()
	for _, want := range wanted {
		if !strings.Contains(page, want) {
			r.t.Errorf("%q is missing in\n%s", want, page)
		}
	}
}

func teaching(n int) (events []stream.Event) {
	for i := range n {
		source := "desk"
		if i >= n/2 && i%2 == 0 {
			source = hostile
		}
		events = append(events, label(i, source, source == hostile))
	}
	return events
}

// The page lists sources as the command does; a plan shows what a withdrawal would do, and
// confirming it does that and no more.
func TestSourcesAndAWithdrawal(t *testing.T) {
	r := newRig(t, true)
	r.learn(teaching(400)...)
	status, text := r.get("/sources")
	if status != http.StatusOK || strings.Count(text, "<tr><th scope=\"row\"><a") != 2 {
		t.Errorf("%d: %s", status, text)
	}
	r.holds(text, "liar&#34;&gt;&lt;script", `class="chart-svg"`, "75.0 %", "25.0 %", `action="/sources/role"`, "<caption>", `data-fragment="sources"`)
	link := URL(hostile)
	r.holds(text, html.EscapeString(link))
	_, text = r.get(link)
	r.holds(text, "By kind of body", "100, 25.0 % of all", `value="muted"`, `href="`+html.EscapeString(WithdrawURL(hostile, "24h")))
	if _, text := r.get("/sources/one?source=nobody"); !strings.Contains(text, "know no source of this name") {
		t.Error(text)
	}

	// A plan writes nothing.
	text = r.plan("source", hostile, "since", "1")
	r.holds(text, "<strong>100 of 100 labels can be withdrawn.</strong>", "Withdraw 100 labels", "Log loss before", "ensembles until they are rebuilt", ">ann<")
	if r.end() != 400 || len(r.audit) > 0 {
		t.Errorf("the log ends at %d, the audit has %q", r.end(), r.audit)
	}
	verdicts := func(text string) string {
		cells := strings.Split(text[strings.Index(text, "Verdicts that change"):], `<td class="n">`)
		if len(cells) < 5 {
			t.Fatalf("no row of answers: %s", text)
		}
		changed, _, _ := strings.Cut(cells[4], "<")
		return changed
	}
	if got := verdicts(text); got != "0" {
		t.Errorf("by the usual thresholds %s verdicts change", got)
	}
	// By the thresholds of a scorer that is careful with ham they do.
	r.mu.Lock()
	r.info = stream.Info{SpamAt: 0.9, HamAt: 1.5e-4}
	r.mu.Unlock()
	careful := r.plan("source", hostile, "since", "1")
	if verdicts(careful) == "0" || r.asked != 2 {
		t.Errorf("by a scorer's thresholds no verdict changes; it was asked %d times: %s", r.asked, careful)
	}
	_, id, _ := strings.Cut(text, `name="plan" value="`)
	id, _, _ = strings.Cut(id, `"`)

	// A label that comes between is not withdrawn.
	r.learn(label(400, hostile, true))
	_, text = r.post("/sources/withdraw/confirm", "plan", id)
	r.holds(text, "100 withdrawals are written, as they were shown")
	known := func(text string) bool {
		return !strings.Contains(text, "Whether the learner has saved it is not known")
	} // Redis may be slow
	r.holds(r.until(planURL(id), known), "has not saved it yet")
	want := []string{"withdraw " + hostile + " map[labels:100 since:1] intended", "withdraw " + hostile + " map[labels:100 since:1] done"}
	if r.end() != 501 || !slices.Equal(r.audit, want) {
		t.Errorf("the log ends at %d, the audit has %q", r.end(), r.audit)
	}
	_, text = r.post("/sources/withdraw/confirm", "plan", id)
	r.holds(text, "there is no plan to write")
	r.learn()
	r.holds(r.until(planURL(id), known), "learnt and saved it")
	if r.end() != 501 {
		t.Errorf("the log ends at %d", r.end())
	}

	text = r.plan("source", hostile, "since", "1", "until", "400")
	r.holds(text, "None of its 100 labels can be withdrawn: 100 are withdrawn already")
	text = r.plan("source", "nobody", "since", "1")
	r.holds(text, "has given no label in this time")
	for _, wrong := range []string{"yesterday", "0", "other.0.7", "", strings.Repeat("9", 300)} {
		_, text = r.post("/sources/withdraw/plan", "source", "desk", "since", wrong)
		r.holds(text, "No plan is made")
	}

	// After a quarter of an hour the plans are forgotten.
	r.mu.Lock()
	r.now = time.Now().Add(keepPlan + time.Minute)
	r.mu.Unlock()
	if status, text := r.get(planURL(id)); status != http.StatusNotFound || !strings.Contains(text, "No plan was made") {
		t.Errorf("%d: %s", status, text)
	}
	_, text = r.post("/sources/withdraw/confirm", "plan", id)
	r.holds(text, "not kept any more")
}

// What no scorer can have is not believed, and nobody is waited for without end.
func TestThresholds(t *testing.T) {
	var p pages
	for _, c := range []struct {
		info      stream.Info
		err       error
		spam, ham float64
	}{
		{stream.Info{SpamAt: 0.8, HamAt: 0.3}, nil, 0.8, 0.3},
		{stream.Info{SpamAt: 0.8, HamAt: 0.3}, context.DeadlineExceeded, 0.9, 0.5},
		{stream.Info{}, nil, 0.9, 0.5}, // of an old scorer
		{stream.Info{SpamAt: 0.3, HamAt: 0.8}, nil, 0.9, 0.5},
		{stream.Info{SpamAt: 7, HamAt: 0.5}, nil, 0.9, 0.5},
	} {
		p.cfg.Info = func(ctx context.Context) (stream.Info, error) {
			if at, bounded := ctx.Deadline(); !bounded || time.Until(at) > infoTime {
				t.Errorf("the wait ends at %v", at)
			}
			return c.info, c.err
		}
		if spam, ham := p.thresholds(t.Context()); spam != c.spam || ham != c.ham {
			t.Errorf("%+v, %v: spam from %v, ham to %v", c.info, c.err, spam, ham)
		}
	}
}

// An operator's word reaches the log. An unknown role is refused.
func TestStanding(t *testing.T) {
	r := newRig(t, true)
	_, text := r.post("/sources/role", "source", hostile, "role", "muted")
	r.holds(text, "is muted for labels from now on")
	record, ok, err := follow.Last(t.Context(), follow.Topic(r.log, r.kafka), 10, nil)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	s, err := stream.DecodeStandingRecord(record.Headers, record.Value)
	if err != nil || s.Source != hostile || s.Role != stream.Muted {
		t.Errorf("%+v, %v", s, err)
	}
	if want := "standing " + hostile + " map[role:muted] done"; len(r.audit) != 2 || r.audit[1] != want {
		t.Errorf("%q", r.audit)
	}
	for _, wrong := range [][]string{{"a@example.org", "muted"}, {"a", "boss"}, {"", "muted"}, {strings.Repeat("a", 5000), "muted"}, {strings.Repeat("a", 1<<17), "muted"}} {
		_, text = r.post("/sources/role", "source", wrong[0], "role", wrong[1])
		r.holds(text, "Nothing was done")
	}
	if r.end() != 1 || len(r.audit) != 2 {
		t.Errorf("the log ends at %d, the audit has %q", r.end(), r.audit)
	}
}

// Who may only look sees figures and changes nothing.
func TestWhoMayLookOnly(t *testing.T) {
	r := newRig(t, true)
	r.learn(teaching(20)...)
	r.role(access.Look | access.Label)
	_, text := r.get("/sources")
	one, page := r.get(URL("desk"))
	if strings.Contains(text, "/sources/role") || strings.Contains(page, "/sources/role") || strings.Contains(page, withdrawPath) || one != http.StatusOK {
		t.Error("a looker sees an operator's forms")
	}
	for _, path := range []string{"/sources/role", "/sources/withdraw/plan", "/sources/withdraw/confirm", "/sources/withdraw/cancel"} {
		if status, _ := r.post(path, "source", "desk", "role", "muted", "since", "1"); status != http.StatusForbidden {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, _ := r.get(withdrawPath); status != http.StatusForbidden || r.end() != 20 || len(r.audit) > 0 {
		t.Errorf("%d, the log ends at %d, %q", status, r.end(), r.audit)
	}
}

// logs returns the rig's Kafka, nil if it has none.
func (r *rig) logs() stream.Logs {
	if len(r.kafka.Brokers) == 0 {
		return nil
	}
	return r.kafka
}

// Without a model, Kafka or Redis the pages say what is missing.
func TestEmptyStates(t *testing.T) {
	r := newRig(t, false)
	_, text := r.get("/sources")
	r.holds(text, "No source is known", "hamlet ingest")
	_, text = r.get(withdrawPath)
	r.holds(text, "started without --kafka", "No plan was made")
	_, text = r.post("/sources/role", "source", "desk", "role", "muted")
	r.holds(text, "started without --kafka")
	_, text = r.post("/sources/withdraw/plan", "source", "desk", "since", "1")
	r.holds(text, "started without --kafka")

	gone, err := redis.New(redis.Config{Addr: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	r.store = gone
	r.serve()
	status, text := r.get("/sources")
	if status != http.StatusOK {
		t.Errorf("Redis is away: %d", status)
	}
	r.holds(text, "The saved models cannot be read", "127.0.0.1:1")
}

// The models are decoded again only when there are others.
func TestModelsAreReadOnce(t *testing.T) {
	r := newRig(t, true)
	now := time.Now()
	k := versions.Newest(r.store, func() time.Time { return now }, func(m *model.Model, c *state.Checkpoint) *Table { return newTable("default", c.Saved, m) })
	get := func() *Table {
		t.Helper()
		now = now.Add(k.Again)
		saved, err := k.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return saved.Facts
	}
	r.learn(teaching(20)...)
	first := get()
	if get() != first {
		t.Error("the same version is decoded twice")
	}
	r.learn(label(20, "desk", false))
	if saved, err := k.Get(t.Context()); err != nil || saved.Facts != first {
		t.Errorf("asked again at once: %v", err)
	}
	if second := get(); second == first || second.Saved().Events != 21 {
		t.Errorf("a new version is not read: %+v", second.Saved())
	}
}

// What a confirmation says after an error is what an operator has to do.
func TestWhatAConfirmationSays(t *testing.T) {
	failed := errors.New("read the log: refused")
	over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if err := notRechecked(over, failed); !strings.Contains(err.Error(), "still applying what was written before; confirm again") {
		t.Error(err)
	}
	if err := notRechecked(t.Context(), failed); !errors.Is(err, failed) {
		t.Error(err)
	}
	if _, err := wrote(3, 7, failed); !errors.Is(err, failed) || !strings.Contains(err.Error(), "3 of 7 withdrawals are written, confirm again for the others") {
		t.Error(err)
	}
	if text, err := wrote(7, 7, failed); err != nil || !strings.Contains(text, "7 withdrawals are written") {
		t.Errorf("only the last question failed: %q, %v", text, err)
	}
	p := pages{}
	plan := &withdraw.Plan{Withdrawable: 7}
	if text := p.learnt(t.Context(), plan); !strings.Contains(text, "is not known") {
		t.Errorf("without the end of the log: %q", text)
	}
}

// One plan is made at a time. It can be cancelled, and ends with the console.
func TestPlansAreMadeOneByOne(t *testing.T) {
	p := newPlans(time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	slow := func(ctx context.Context, progress func(withdraw.Progress)) (*withdraw.Plan, error) {
		progress(withdraw.Progress{Doing: "reading", Offset: 7, End: 9})
		<-ctx.Done()
		return nil, fmt.Errorf("read: %w", ctx.Err())
	}
	quick := func(context.Context, func(withdraw.Progress)) (*withdraw.Plan, error) { return &withdraw.Plan{}, nil }
	first, second := &job{jobState: jobState{By: "ann", Source: "desk"}}, &job{jobState: jobState{By: "bob"}}
	if err := p.start(first, slow); err != nil {
		t.Fatal(err)
	}
	if err := p.start(second, quick); err == nil || !strings.Contains(err.Error(), `ann is having a plan made, for source "desk"`) {
		t.Errorf("a second plan: %v", err)
	}
	first.cancel()
	<-first.ended
	if v := p.one(first); v.Problem != "it was cancelled" || v.Making() || v.Ready() {
		t.Errorf("%+v", v)
	}
	for range mostPlans + 3 {
		j := &job{}
		if err := p.start(j, quick); err != nil {
			t.Fatal(err)
		}
		<-j.ended
	}
	all := p.view()
	if len(all) != mostPlans || !all[0].Ready() {
		t.Errorf("%d plans are kept, the newest is %+v", len(all), all[0])
	}
	j := p.find(all[0].ID)
	if _, err := p.take(j); err != nil {
		t.Error(err)
	}
	if _, err := p.take(j); err == nil || !strings.Contains(err.Error(), "being written") {
		t.Errorf("taken twice: %v", err)
	}
	p.put(j, 3, true)
	if _, err := p.take(j); err == nil || !strings.Contains(err.Error(), "written already") {
		t.Errorf("written twice: %v", err)
	}
	last := &job{}
	if err := p.start(last, slow); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-last.ended
	if err := p.start(&job{}, quick); err == nil {
		t.Error("a plan is begun in a console that has stopped")
	}
}
