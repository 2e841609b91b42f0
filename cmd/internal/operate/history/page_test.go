package history_test

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/operate/history"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func startNATS(t *testing.T) *natsgo.Conn {
	t.Helper()
	server, err := embedded.StartNATS(embedded.NATSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	conn, err := nats.Connect(nats.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// A reader asks the page for things.
type reader struct {
	t       *testing.T
	handler http.Handler
	role    access.Role
}

func newReader(t *testing.T, cfg history.Config) *reader {
	site := page.NewSite(page.Config{Model: "default", Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(site.Close)
	cfg.Bound = cmp.Or(cfg.Bound, 30*time.Second)
	site.Add(history.Page(site, cfg))
	return &reader{t, site.Handler(), access.Look}
}

func (r *reader) get(path string) (int, string) {
	r.t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, request.WithContext(access.WithUser(patience(r.t), access.User{Name: "ann", Role: r.role})))
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return w.Code, string(b)
}

func write(t *testing.T, conn *natsgo.Conn, labels bool, id string, lines ...stream.JournalEntry) {
	t.Helper()
	j, err := nats.NewJournal(conn, nats.JournalConfig{Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	// An attempt has two seconds. The server drops a second message of this id.
	ctx := patience(t)
	for err = j.Append(ctx, id, lines); err != nil && ctx.Err() == nil; err = j.Append(ctx, id, lines) {
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var olderLink = regexp.MustCompile(`rel="next" href="([^"]*)"`)

func TestHistory(t *testing.T) {
	conn := startNATS(t)
	r := newReader(t, history.Config{NATS: conn})
	if status, got := r.get("/history"); status != http.StatusOK || !strings.Contains(got, "The journal has no decisions of the model default") || !strings.Contains(got, "hamlet score message.eml") {
		t.Errorf("without a journal: %d\n%s", status, got)
	}
	begin := time.Now().UTC().Add(-time.Hour)
	for i := range 130 {
		e := stream.JournalEntry{Time: begin.Add(time.Duration(i) * time.Second), ID: fmt.Sprintf("%032x", i+1), Verdict: stream.DecideHam, P: 0.25, Low: 0.125, High: 0.5,
			Reasons: []string{"text words", "bias"}, Model: "default/0123456789ab", Door: "milter", Tenant: "default", MS: 1.25}
		if i == 7 {
			e.Verdict, e.P, e.Door = stream.DecideSpam, 0.99, "spamd"
		}
		write(t, conn, false, fmt.Sprint(i), e)
	}
	write(t, conn, true, "l", stream.JournalEntry{Time: begin.Add(time.Minute), ID: fmt.Sprintf("%032x", 8), Label: stream.Ham, Source: "users", Model: "default"})

	// The pages follow one another, and no decision is on two.
	path, seen := "/history?door=milter", map[string]bool{}
	var counts []int
	for path != "" {
		status, got := r.get(path)
		ids := regexp.MustCompile(`/why\?id=([0-9a-f]{32})`).FindAllStringSubmatch(got, -1)
		for _, id := range ids {
			if seen[id[1]] {
				t.Errorf("%s is there twice", id[1])
			}
			seen[id[1]] = true
		}
		counts, path = append(counts, len(ids)), ""
		if next := olderLink.FindStringSubmatch(got); next != nil {
			path = html.UnescapeString(next[1])
		}
		if status != http.StatusOK || len(counts) > 3 {
			t.Fatalf("page %d: %d", len(counts), status)
		}
	}
	if len(seen) != 129 || fmt.Sprint(counts) != "[50 50 29]" {
		t.Errorf("%d decisions on pages of %v", len(seen), counts)
	}
	if _, got := r.get("/history"); len(got) > 60<<10 {
		t.Errorf("a page has %d bytes", len(got))
	}

	for query, want := range map[string][]string{
		"label=corrected":                              {"corrected</span>", "users", "0.9900", "spamd"},
		"label=corrected&door=milter":                  {"No decision fits"},
		"verdict=spam&since=2h":                        {"ham <span", "1.2<"},
		"verdict=spam&since=10m":                       {"No decision fits"},
		"tenant=x":                                     {"No decision fits", "130 were looked at"},
		"id=" + fmt.Sprintf("%032x", 8) + "&figures=1": {"1-ROCA%", "100.00 ("},
		"before=40-0":                                  {"Newest"},
		"message_id=%3Ca%40example%3E":                 {"No decision fits", `value="&lt;a@example&gt;"`},
	} {
		status, got := r.get("/history?" + query)
		for _, w := range want {
			if status != http.StatusOK || !strings.Contains(got, w) {
				t.Errorf("%s: %d without %q\n%s", query, status, w, got)
			}
		}
	}
	for _, query := range []string{"since=yesterday", "since=-1h", "verdict=maybe", "label=x", "before=x", "before=1-99999999999", "before=1", "message_id=%3C%3E", "id=" + strings.Repeat("a", 2000)} {
		if status, got := r.get("/history?" + query); status != http.StatusBadRequest || !strings.Contains(got, `role="alert"`) || strings.Contains(got, "/why?id=") {
			t.Errorf("%s: %d", query, status)
		}
	}
	r.role = 0
	if status, got := r.get("/history"); status != http.StatusForbidden || strings.Contains(got, "milter") {
		t.Errorf("nobody sees %d\n%s", status, got)
	}
}

// What stands in the journal and in the address is text, and nothing of it acts unseen.
func TestHostileJournal(t *testing.T) {
	conn := startNATS(t)
	const hostile = "\"><script>alert(1)</script>\u202e' onload=x"
	write(t, conn, false, "1", stream.JournalEntry{Time: time.Now(), ID: hostile, Verdict: hostile, Reasons: []string{hostile, strings.Repeat("r", 5000)}, Door: hostile, Tenant: hostile, Model: hostile})
	write(t, conn, true, "2", stream.JournalEntry{Time: time.Now(), ID: hostile, Label: stream.Spam, Source: hostile, Model: hostile})
	r := newReader(t, history.Config{NATS: conn})
	q := url.QueryEscape(hostile)
	for _, path := range []string{"/history", "/history?figures=1", "/history?door=" + q + "&tenant=" + q + "&id=" + q + "&since=" + q, "/history?verdict=" + q, "/history?message_id=" + q + "&figures=1"} {
		_, got := r.get(path)
		if strings.Contains(got, "<script>alert") || strings.Contains(got, `"><script>`) {
			t.Errorf("%s lets it out:\n%s", path, got)
		}
		if path == "/history" && (!strings.Contains(got, "&lt;script&gt;") || strings.Contains(got, "\u202e") || !strings.Contains(got, "[U+202E]") || len(got) > 20<<10) {
			t.Errorf("%d bytes:\n%s", len(got), got)
		}
	}
}

// Without a server, and when the time is over, the page says so and has its form.
func TestNATSAway(t *testing.T) {
	conn := startNATS(t)
	write(t, conn, false, "1", stream.JournalEntry{Time: time.Now(), ID: "a", Verdict: stream.DecideHam})
	if _, got := newReader(t, history.Config{NATS: conn, Bound: time.Nanosecond}).get("/history?figures=1"); !strings.Contains(got, "time was over") && !strings.Contains(got, "Others are searching") {
		t.Errorf("without time:\n%s", got)
	}
	r := newReader(t, history.Config{NATS: conn})
	conn.Close()
	if status, got := r.get("/history?figures=1"); status != http.StatusOK || !strings.Contains(got, "NATS cannot be reached") || !strings.Contains(got, "<form") {
		t.Errorf("without a server: %d\n%s", status, got)
	}
}
