package now

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
)

func newSite(t testing.TB) *page.Site {
	site := page.NewSite(page.Config{Model: "default", Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(site.Close)
	return site
}

// draw returns the page of a snapshot.
func draw(t testing.TB, s *Snapshot) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	newSite(t).Render(w, r.WithContext(access.WithUser(r.Context(), access.User{Name: "ann", Role: access.Look})), templates, http.StatusOK, title, newView(s))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

const hostile = "x'\"><script>alert(1)</script>\u202e"

// busy is a snapshot of a full hour with many doors and alarms.
func busy() *Snapshot {
	at := time.Date(2026, 11, 20, 12, 0, 30, 0, time.UTC)
	s := &Snapshot{At: at, Model: "default"}
	j := &s.Journal
	j.OneOf, j.Estimated, j.Since, j.LastMinute = 4, true, at.Add(-time.Hour), 41_234.5
	for i := range 60 {
		j.Minutes = append(j.Minutes, Minute{Start: at.Add(time.Duration(i-59) * time.Minute).Truncate(time.Minute), Counts: Counts{Spam: 20_000 + 137.3*float64(i), Ham: 19_000 - 11*float64(i*i%97), Unsure: float64(i * i)}})
	}
	j.Hour = Counts{Spam: 1_200_000, Ham: 1_100_000, Unsure: 70_000}
	for i := range 33 {
		j.Doors = append(j.Doors, Door{Name: fmt.Sprint(i, hostile, strings.Repeat("y", 60)), Counts: Counts{Spam: 30_000, Ham: 20_000.4, Unsure: 9}, Half: 0.4, NineTenths: 12})
	}
	var matches []answered.Match
	for i := range 500 {
		matches = append(matches, answered.Match{Verdict: stream.DecideSpam, P: 0.2 + 0.6*float64(i%10)/10, Spam: i%3 != 0})
	}
	s.Labels = Labels{Since: at.Add(-24 * time.Hour), Figures: answered.FiguresOf(matches)}
	for i := range 40 {
		s.Alarms.Open = append(s.Alarms.Open, Alarm{ID: fmt.Sprintf("default.0.%d", i), Kind: "source", Since: at, Sentence: "event 6250: source raised against " + hostile})
	}
	s.Learnt = Learnt{Version: 9, Served: 8, Pinned: true, Events: 12_000_000, Saved: at.Add(-time.Minute), Idle: true, Lag: 36, LagKnown: true}
	return s
}

// What strangers chose stays text, and nothing needs what the policy of content forbids.
func TestEverythingIsShown(t *testing.T) {
	html := draw(t, busy())
	for _, want := range []string{
		"about 41\u202f235", "about 2\u202f370\u202f000 in the last hour", "50.6 %", "one of 4 lines", "36", "12\u202f000\u202f000 events, pinned", `href="/incidents/default.0.0"`,
		"20 more are open", "No learner is active", "Calibration slope", "90 % interval", "People label what they see wrong", "pinned</span> version 8", "[U+202E]", "&lt;script&gt;", "<svg",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, bad := range []*regexp.Regexp{regexp.MustCompile(`<script>`), regexp.MustCompile(`\sstyle=`), regexp.MustCompile(`<[^>]*\son[a-z]+=`), regexp.MustCompile("NaN"), regexp.MustCompile("%!")} {
		if found := bad.FindString(html); found != "" {
			t.Errorf("the page has %s", found)
		}
	}
	for _, name := range fragments {
		if !strings.Contains(html, `data-fragment="`+name+`"`) {
			t.Errorf("nothing shows the fragment %s", name)
		}
	}
}

// What is missing is said in a sentence, with what brings it.
func TestEmptyStatesTeach(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		change func(*Snapshot)
		want   []string
	}{
		"nothing yet": {func(*Snapshot) {}, []string{"Nobody has asked about a message", "hamlet score message.eml", "No alarm is open", "No answer of the last day", "no labels yet", "Doors are the ways", "hamlet learn --spam", "There is no model yet"}},
		"no journal":  {func(s *Snapshot) { s.Journal.None = true }, []string{"No scorer has written a journal", "--no-journal"}},
		"it is read":  {func(s *Snapshot) { s.Journal.Reading = true }, []string{"is being read", "The labels stand in the journal, which is being read.", `Answers a minute</span><span class="value">–<`}},
		"no NATS": {func(s *Snapshot) {
			s.Journal.Away, s.Labels.Away, s.Alarms.Away = "NATS is away.", "NATS is away.", "NATS is away."
		}, []string{"NATS is away.", "cannot be read", "as last read"}},
		"a journal that was read": {func(s *Snapshot) {
			s.Journal.Away, s.Journal.Hour.Ham, s.Journal.Read = "NATS is away.", 3, now.Add(-3*time.Hour)
			s.Labels.Away, s.Labels.Since = "NATS is away.", now.Add(-5*time.Hour)
			s.Labels.Figures = answered.FiguresOf([]answered.Match{{Verdict: stream.DecideSpam, P: 0.9, Spam: true}})
		}, []string{"3 as last read", "The figures are as last read", "answers of the last 2.0 hours"}},
		"no Redis": {func(s *Snapshot) { s.Learnt.Away = "Redis is away." }, []string{"Redis is away.", "The store cannot be read"}},
		"no answer yet": {func(s *Snapshot) {
			s.Alarms.Away, s.Alarms.Unread, s.Learnt.Away = "NATS has not answered yet.", true, "The store has not answered yet."
		}, []string{`<span class="value">–</span><span class="note">not known`, "NATS has not answered yet.", "The store has not answered yet."}},
		"no learner": {func(s *Snapshot) {
			s.Learnt.Lag, s.Learnt.LagKnown = 7, true
		}, []string{"There is no model yet", "The log has 7 records.", `<span class="value">7</span>`}},
		"no Kafka": {func(s *Snapshot) { s.Learnt.LagAway = "Kafka is away." }, []string{"Kafka is away.", "not known"}},
		"a long past": {func(s *Snapshot) {
			s.Journal.Cut, s.Journal.Since, s.Labels.Since = true, now.Add(-30*time.Minute), now.Add(-30*time.Minute)
		}, []string{"too long to read", "in the last 30 min", "No answer of the last 0.5 hours"}},
		"damaged lines": {func(s *Snapshot) { s.Journal.Damaged, s.Alarms.Damaged = 3, 2 }, []string{"3 lines of the journal cannot be read", "2 alerts cannot be read"}},
	} {
		s := &Snapshot{At: now, Model: "default"}
		s.Journal.Since, s.Labels.Since = now.Add(-time.Hour), now.Add(-24*time.Hour)
		c.change(s)
		html := draw(t, s)
		for _, want := range append(c.want, "Answers a minute") {
			if !strings.Contains(html, want) {
				t.Errorf("%s: %q is missing", name, want)
			}
		}
		if strings.Contains(html, "NaN") {
			t.Errorf("%s: the page has NaN", name)
		}
	}
}

// Minutes that were not read are a gap, and no zeros.
func TestUnreadMinutesAreAGap(t *testing.T) {
	s := busy()
	s.Journal.Cut, s.Journal.Since = true, s.At.Add(-10*time.Minute)
	for _, series := range newView(s).Chart().Series {
		for i, y := range series.Y {
			if math.IsNaN(y) != (i < 50) {
				t.Errorf("%s at minute %v is %v", series.Name, series.X[i], y)
			}
		}
	}
	draw(t, s)
}

// The first page is below 100 KB with all that it links, on a busy server too.
func TestFirstPageIsSmall(t *testing.T) {
	html := draw(t, busy())
	static := page.Static()
	total, assets := len(html), 0
	for _, at := range regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"`).FindAllStringSubmatch(html, -1) {
		w := httptest.NewRecorder()
		static.ServeHTTP(w, httptest.NewRequest(http.MethodGet, at[1], nil))
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d", at[1], w.Code)
		}
		total, assets = total+w.Body.Len(), assets+1
	}
	t.Logf("page %d bytes, with %d assets %d", len(html), assets, total)
	if assets != 2 || total >= 100_000 {
		t.Errorf("the page and its %d assets have %d bytes", assets, total)
	}
	if strings.Contains(html, "<img") || strings.Contains(html, "@import") {
		t.Error("the page links what this test does not count")
	}
}

// A rig is the page on a server. The header User says who asks.
type rig struct {
	ctx  context.Context
	url  string
	http *http.Client
}

func startPage(t *testing.T, cfg Config) *rig {
	f := New(cfg)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	site := newSite(t)
	site.Add(Page(site, f))
	handler := site.Handler()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(access.WithUser(r.Context(), access.User{Name: r.Header.Get("User"), Role: access.Look})))
	}))
	t.Cleanup(func() { site.Close(); web.CloseClientConnections(); web.Close() })
	return &rig{ctx, web.URL, web.Client()}
}

func (r *rig) get(t *testing.T, user, path string) *http.Response {
	t.Helper()
	q, err := http.NewRequestWithContext(r.ctx, http.MethodGet, r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("User", user)
	w, err := r.http.Do(q)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	t.Cleanup(func() { w.Body.Close() })
	return w
}

// Of 500 streams of events some are served. The others are told when to try again, and whoever
// asks for the page gets it.
func TestFiveHundredStreams(t *testing.T) {
	t.Parallel()
	r := startPage(t, Config{Model: "default"})
	served := 0
	for i := range 500 {
		switch w := r.get(t, fmt.Sprint("user ", i%25), "/live?page=/"); {
		case w.StatusCode == http.StatusOK:
			served++
		case w.StatusCode != http.StatusServiceUnavailable || w.Header.Get("Retry-After") == "":
			t.Fatalf("stream %d: %d, %v", i, w.StatusCode, w.Header)
		}
	}
	if served < 100 || served > 300 {
		t.Errorf("%d streams are served", served)
	}
	began := time.Now()
	for range 10 {
		if w := r.get(t, "another", "/"); w.StatusCode != http.StatusOK {
			t.Errorf("the page: %d", w.StatusCode)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("ten pages took %v", took)
	}
}

// A page and its stream of events show a line that a scorer writes.
func TestThePageFollows(t *testing.T) {
	t.Parallel()
	server, err := embedded.StartNATS(embedded.NATSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	conn, err := nats.Connect(nats.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	r := startPage(t, Config{Model: "default", NATS: conn})
	write := func(n int, door string) {
		t.Helper()
		j, err := nats.NewJournal(conn, nats.JournalConfig{})
		if err != nil {
			t.Fatal(err)
		}
		line := stream.JournalEntry{Time: time.Now().UTC(), ID: fmt.Sprintf("%032x", n), Verdict: stream.DecideSpam, P: .99, Model: "default/0123456789ab", Door: door, Tenant: "default"}
		if err := j.Append(r.ctx, door, []stream.JournalEntry{line}); err != nil {
			t.Fatal(err)
		}
	}
	write(1, "spamd")
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		html, err := io.ReadAll(r.get(t, "ann", "/").Body)
		if err == nil && bytes.Contains(html, []byte("spamd")) {
			break
		}
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			t.Fatalf("%v: %s", err, html)
		}
	}
	write(2, "milter")
	events := r.get(t, "ann", "/live?page=/").Body
	var all []byte
	buffer := make([]byte, 4096)
	for !bytes.Contains(all, []byte("milter")) {
		n, err := events.Read(buffer)
		if all = append(all, buffer[:n]...); err != nil {
			t.Fatalf("%v: %s", err, all)
		}
	}
}
