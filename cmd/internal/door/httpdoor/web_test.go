package httpdoor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// A fakeClient answers as its functions say; nil functions answer with verdicts.
type fakeClient struct {
	score func(ctx context.Context, tenant string, body []byte, contentType string) error
	info  func() error
}

func (c *fakeClient) Ask(ctx context.Context, q questions.Question) ([]stream.Verdict, error) {
	tenant, door, body, contentType, explain := q.Tenant, q.Door, q.Body, q.ContentType, q.Explain
	if c.score != nil {
		if err := c.score(ctx, tenant, body, contentType); err != nil {
			return nil, err
		}
	}
	if door != Name {
		return nil, fmt.Errorf("door %q", door)
	}
	if contentType != questions.JSON {
		return []stream.Verdict{verdict(&stream.Event{Tenant: tenant}, explain)}, nil
	}
	if body[0] != '[' {
		e, err := stream.DecodeJSONOf(tenant, body)
		return []stream.Verdict{verdict(&e, explain)}, err
	}
	events, err := stream.DecodeJSONList(tenant, body, maxPieceEvents)
	var verdicts []stream.Verdict
	for i := range events {
		verdicts = append(verdicts, verdict(&events[i], explain))
	}
	return verdicts, err
}

func (c *fakeClient) Info(context.Context) (stream.Info, error) {
	if c.info != nil {
		if err := c.info(); err != nil {
			return stream.Info{}, err
		}
	}
	return stream.Info{Model: model, Events: 7, Numerics: "n"}, nil
}

var model = stream.ModelRef{Name: "default", SHA256: "0123", Positions: []int64{3, 4}, AgeMS: 5}

// verdict answers an event. The name of the first reason is the tenant.
func verdict(e *stream.Event, explain bool) stream.Verdict {
	v := stream.Verdict{ID: e.ID, P: .75, LogOdds: 1.1, Interval: [2]float64{.5, .9}, Decision: stream.DecideUnsure, Margin: -1, Identity: e.Tenant, Model: model}
	if explain {
		v.Reasons = []stream.Reason{{Name: "head", Contribution: 1.1, SD: .2}}
		v.Words = []stream.Word{{Text: "pills", Where: "text", Contribution: 1, Shared: true}}
	}
	return v
}

type published struct{ events []stream.Event }

func (p *published) Append(_ context.Context, records ...stream.Record) error {
	for _, r := range records {
		e, err := stream.DecodeRecord(r.Headers, r.Value)
		if err != nil {
			return err
		}
		if e.ID == "hang" {
			return context.DeadlineExceeded
		}
		p.events = append(p.events, e)
	}
	return nil
}

// A noTeacher only says that clients may teach.
type noTeacher struct{}

func (noTeacher) Publish(context.Context, ...stream.Event) error { panic("labels go to the publisher") }

// operator and alice are tokens.
const (
	operator = "operator-token"
	alice    = "alice-token"
)

func openTenants(t testing.TB) *gateway.Tenants {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tenants.yaml")
	if err := os.WriteFile(path, []byte("default: isp\ntokens:\n  "+alice+": alice\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tenants, err := gateway.OpenTenants(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return tenants
}

// The bounds of a gateway, if a test does not say others.
const (
	deadline = 2 * time.Second
	memory   = 256 << 20
)

// newGateway returns a gateway whose scoring service is client.
func newGateway(t testing.TB, cfg gateway.Config) *gateway.Door {
	t.Helper()
	cfg.Deadline, cfg.Memory = cmp.Or(cfg.Deadline, deadline), cmp.Or(cfg.Memory, memory)
	cfg.Hints = gateway.Hints{Learn: "--allow-learn", Token: "--token or --tokens"}
	g, err := gateway.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g.Door(Name)
}

// A tested is a door that listens.
type tested struct {
	*server
	url, addr string
	client    *http.Client
}

func serve(t testing.TB, cfg config) *tested {
	t.Helper()
	s := newServer(cfg)
	mux := http.NewServeMux()
	for pattern, h := range s.handlers() {
		mux.Handle(pattern, h)
	}
	listener := httptest.NewServer(mux)
	t.Cleanup(listener.Close)
	return &tested{s, listener.URL, listener.Listener.Addr().String(), listener.Client()}
}

// A question is one request, and answer what came back.
type question struct {
	method, path, token, kind, body string
	header                          [2]string
}

type answer struct {
	code   int
	header http.Header
	body   []byte
}

func (s *tested) ask(t testing.TB, q question) answer {
	t.Helper()
	if q.method == "" {
		q.method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(t.Context(), q.method, s.url+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	if q.token != "" {
		request.Header.Set("Authorization", "Bearer "+q.token)
	}
	if q.kind != "" {
		request.Header.Set("Content-Type", q.kind)
	}
	if q.header[0] != "" {
		request.Header.Set(q.header[0], q.header[1])
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, body}
}

// verdicts returns the verdicts of an answer, one or more.
func (a answer) verdicts(t testing.TB) []stream.Verdict {
	t.Helper()
	all := make([]stream.Verdict, 1)
	var err error
	if bytes.HasPrefix(a.body, []byte{'['}) {
		err = json.Unmarshal(a.body, &all)
	} else {
		err = json.Unmarshal(a.body, &all[0])
	}
	if a.code != http.StatusOK || err != nil {
		t.Fatalf("%d %s: %v", a.code, a.body, err)
	}
	return all
}

const message = "Subject: hello\n\nbody\n"

// Each token speaks for its tenants alone.
func TestTenants(t *testing.T) {
	withTokens := serve(t, config{Token: operator, Door: newGateway(t, gateway.Config{Asker: &fakeClient{}, Tenants: openTenants(t)})})
	open := serve(t, config{Door: newGateway(t, gateway.Config{Asker: &fakeClient{}})})
	const none = `{"text":"x"}`
	of := func(tenant string) string { return fmt.Sprintf(`{"text":"x","tenant":%q}`, tenant) }
	for _, c := range []struct {
		server       *tested
		token, named string // the header Hamlet-Tenant
		kind, body   string
		code         int
		want         string
	}{
		{withTokens, operator, "", questions.Mail, message, 200, "isp"},
		{withTokens, operator, "bob", questions.Mail, message, 200, "bob"},
		{withTokens, operator, "bob", questions.Text, "x", 200, "bob"},
		{withTokens, operator, "", questions.JSON, none, 200, "isp"},
		{withTokens, operator, "bob", questions.JSON, none, 200, "bob"},
		{withTokens, operator, "bob", questions.JSON, of("carol"), 200, "carol"},
		{withTokens, operator, "", questions.JSON, "[" + of("carol") + "]", 200, "carol"},
		{withTokens, operator, strings.Repeat("x", 300), questions.Mail, message, 400, ""},
		{withTokens, alice, "", questions.Mail, message, 200, "alice"},
		{withTokens, alice, "alice", questions.Mail, message, 200, "alice"},
		{withTokens, alice, "bob", questions.Mail, message, 403, ""},
		{withTokens, alice, "", questions.JSON, none, 200, "alice"},
		{withTokens, alice, "", questions.JSON, of("alice"), 200, "alice"},
		{withTokens, alice, "", questions.JSON, of("isp"), 403, ""},
		{withTokens, alice, "", questions.JSON, "[" + none + "," + of("bob") + "]", 403, ""},
		{withTokens, "", "", questions.Mail, message, 401, ""},
		{withTokens, "wrong", "", questions.Mail, message, 401, ""},
		{open, "", "", questions.Mail, message, 200, "default"},
		{open, "anything", "", questions.Mail, message, 200, "default"},
		{open, "", "bob", questions.Mail, message, 403, ""},
		{open, "", "", questions.JSON, none, 200, "default"},
		{open, "", "", questions.JSON, of("bob"), 403, ""},
	} {
		q := question{path: scorePath, token: c.token, kind: c.kind, body: c.body, header: [2]string{nats.HeaderTenant, c.named}}
		if c.named == "" {
			q.header = [2]string{}
		}
		a := c.server.ask(t, q)
		if a.code != c.code {
			t.Errorf("token %q, header %q, %s: %d %s, want %d", c.token, c.named, c.body, a.code, a.body, c.code)
		} else if a.code == 200 && a.verdicts(t)[0].Identity != c.want {
			t.Errorf("token %q, header %q, %s: tenant %q, want %q", c.token, c.named, c.body, a.verdicts(t)[0].Identity, c.want)
		}
	}
}

// A file that loses its last token opens nothing; one that gets its first closes the door.
func TestTokensComeAndGo(t *testing.T) {
	tenants := openTenants(t)
	s := serve(t, config{Door: newGateway(t, gateway.Config{Asker: &fakeClient{}, Tenants: tenants})})
	q := question{path: scorePath, kind: questions.Mail, body: message}
	if a := s.ask(t, q); a.code != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") == "" {
		t.Errorf("without a token: %d %s", a.code, a.body)
	}
	s.server.cfg.Door = newGateway(t, gateway.Config{Asker: &fakeClient{}}) // as after the change
	if a := s.ask(t, q); a.code != http.StatusUnauthorized {
		t.Errorf("no token is left: %d %s", a.code, a.body)
	}
	open := serve(t, config{Door: newGateway(t, gateway.Config{Asker: &fakeClient{}})})
	open.server.cfg.Door = newGateway(t, gateway.Config{Asker: &fakeClient{}, Tenants: tenants})
	if a := open.ask(t, q); a.code != http.StatusUnauthorized {
		t.Errorf("the file has a token now: %d %s", a.code, a.body)
	}
}

// A batch of any size is answered in order, in pieces that NATS carries.
func TestBatch(t *testing.T) {
	pieces, largest := 0, 0
	s := serve(t, config{Door: newGateway(t, gateway.Config{Asker: &fakeClient{score: func(_ context.Context, _ string, body []byte, _ string) error {
		pieces++
		largest = max(largest, len(body))
		return nil
	}}})})
	for _, c := range []struct {
		path                 string
		events, text, pieces int
	}{
		{explainPath, 0, 1, 0}, {explainPath, 1, 1, 1}, {explainPath, 8, 1, 1}, {explainPath, 9, 1, 2}, {explainPath, 1000, 1, 125},
		{explainPath, 20, 100 << 10, 4}, {explainPath, 2, 900 << 10, 2},
		{scorePath, 0, 1, 0}, {scorePath, 64, 1, 1}, {scorePath, 65, 1, 2}, {scorePath, 1000, 1, 16}, {scorePath, 20, 100 << 10, 4},
	} {
		var list []string
		for i := range c.events {
			list = append(list, fmt.Sprintf(`{"id":"%d","text":%q}`, i, strings.Repeat("x", c.text)))
		}
		pieces, largest = 0, 0
		a := s.ask(t, question{path: c.path, kind: questions.JSON, body: " [" + strings.Join(list, ",") + "]"})
		verdicts := a.verdicts(t)
		if len(verdicts) != c.events || !bytes.HasPrefix(a.body, []byte{'['}) {
			t.Fatalf("%d events: %d verdicts, %.80s", c.events, len(verdicts), a.body)
		}
		for i, v := range verdicts {
			if v.ID != fmt.Sprint(i) || (len(v.Reasons) == 1) != (c.path == explainPath) {
				t.Fatalf("verdict %d of %d: %+v", i, c.events, v)
			}
		}
		if pieces != c.pieces || largest > 1<<20 {
			t.Errorf("%s of %d events of %d bytes: %d pieces, the largest of %d bytes; want %d", c.path, c.events, c.text, pieces, largest, c.pieces)
		}
	}
	if a := s.ask(t, question{path: scorePath, kind: questions.JSON, body: "[" + strings.Repeat(`{"text":"x"},`, maxBatch) + `{"text":"x"}]`}); a.code != http.StatusBadRequest {
		t.Errorf("a batch that is too long: %d %s", a.code, a.body)
	}
	if s.cfg.Door.Acquire(memory) {
		s.cfg.Door.Return(memory)
	} else {
		t.Error("memory is lost")
	}
}

// An error in a later piece says where it counts from.
func TestErrorInLaterPiece(t *testing.T) {
	n := 0
	s := serve(t, config{Door: newGateway(t, gateway.Config{Asker: &fakeClient{score: func(context.Context, string, []byte, string) error {
		if n++; n == 2 {
			return &questions.Refusal{Code: questions.BadRequest, Text: "[0]: no"}
		}
		return nil
	}}})})
	a := s.ask(t, question{path: scorePath, kind: questions.JSON, body: "[" + strings.Repeat(`{"text":"x"},`, 99) + `{"text":"x"}]`})
	if a.code != http.StatusBadRequest || !strings.Contains(string(a.body), "counted from [64] on: [0]: no") {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// The answers are the bytes of the scoring service on NATS, and mails of any size are
// reduced before they go there.
func TestAsOnNATS(t *testing.T) {
	server, err := embedded.StartNATS(embedded.NATSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	conn, err := nats.Connect(nats.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	service, err := nats.NewService(conn, nats.ServiceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- service.Serve(ctx, scorer{}, nil) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-service.Ready()
	client, err := nats.NewClient(conn, "")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, config{Door: newGateway(t, gateway.Config{Asker: client})})
	attachment := "Content-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b\nContent-Type: application/zip\nContent-Transfer-Encoding: base64\n\n" +
		strings.Repeat(strings.Repeat("A", 76)+"\n", 3<<20/77) + "--b--\n"
	list := `[{"id":"a","text":"x"},{"id":"b","vector":{"n":1}},{"id":"c","mail":"U3ViamVjdDogeAoKeQo="}]`
	for _, c := range []struct {
		endpoint, kind, body string
		onNATS               bool
	}{
		{"score", questions.Mail, message, true},
		{"explain", questions.Mail, message, true},
		{"score", questions.Text, "free pills", true},
		{"explain", questions.JSON, `{"id":"<1>","text":"x"}`, true},
		{"explain", questions.JSON, list, true},
		{"score", questions.JSON, "[]", true},
		{"score", questions.Mail, attachment, false},
	} {
		a := s.ask(t, question{path: "/v1/" + c.endpoint, kind: c.kind, body: c.body})
		if !c.onNATS {
			a.verdicts(t)
			continue
		}
		want, err := natsAnswer(t.Context(), conn, c.endpoint, c.kind, c.body)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(bytes.TrimSuffix(a.body, []byte{'\n'})); a.code != http.StatusOK || got != want {
			t.Errorf("%s of %s: %d\n%s\non NATS\n%s", c.endpoint, c.body, a.code, got, want)
		}
	}
	a := s.ask(t, question{method: http.MethodGet, path: infoPath})
	want, err := natsAnswer(t.Context(), conn, "info", "", "")
	if got := string(bytes.TrimSuffix(a.body, []byte{'\n'})); err != nil || a.code != http.StatusOK || got != want {
		t.Errorf("info: %d %s, on NATS %s, %v", a.code, got, want, err)
	}
}

// Labels go to Kafka, those of a tenant's token in its name and from the door's source.
func TestEvents(t *testing.T) {
	registry := prometheus.NewRegistry()
	var kept published
	s := serve(t, config{
		Token: operator, Events: &kept,
		Door: newGateway(t, gateway.Config{Asker: &fakeClient{}, Tenants: openTenants(t), Registerer: registry, Teacher: noTeacher{}}),
	})
	const event = `{"id":"1","label":"spam","text":"x"}`
	for token, want := range map[string]string{operator: "isp/default", alice: "alice/http"} {
		kept.events = nil
		a := s.ask(t, question{path: eventsPath, token: token, kind: questions.JSON, body: event})
		if a.code != http.StatusAccepted || len(kept.events) != 1 || kept.events[0].Tenant+"/"+kept.events[0].Source != want {
			t.Errorf("%s: %d %s, %+v; want %s", token, a.code, a.body, kept.events, want)
		}
	}
	if n := testutil.ToFloat64(s.requests.WithLabelValues(eventsPath, "202")); n != 2 {
		t.Errorf("%v counted, want 2", n)
	}
	notAllowed := serve(t, config{Token: operator, Events: &kept, Door: newGateway(t, gateway.Config{Asker: &fakeClient{}, Tenants: openTenants(t)})})
	for token, want := range map[string]int{operator: http.StatusAccepted, alice: http.StatusForbidden} {
		if a := notAllowed.ask(t, question{path: eventsPath, token: token, kind: questions.JSON, body: event}); a.code != want {
			t.Errorf("%s, and clients may not teach: %d %s, want %d", token, a.code, a.body, want)
		}
	}
	open := serve(t, config{Events: &kept, Door: newGateway(t, gateway.Config{Asker: &fakeClient{}, Teacher: noTeacher{}})})
	if a := open.ask(t, question{path: eventsPath, kind: questions.JSON, body: event}); a.code != http.StatusForbidden || !strings.Contains(string(a.body), "--token") {
		t.Errorf("without tokens: %d %s", a.code, a.body)
	}
}
