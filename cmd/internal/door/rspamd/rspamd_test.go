package rspamd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
	"hamlet/stream/questions"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// within bounds every wait of a test.
const within = 30 * time.Second

const message = "Subject: hello\r\nMessage-ID: <a@b>\r\n\r\nbuy now\r\n"

// A scorer answers with a verdict of each tenant, and remembers who asked.
type scorer struct {
	verdicts map[string]stream.Verdict // by tenant; "" for all others
	err      error
	asked    chan struct{} // told of every question, if there is room
	wait     chan struct{} // if not nil, an answer comes when it is closed

	mu      sync.Mutex
	tenants []string
	bodies  [][]byte
	traces  []stream.Trace
}

func (s *scorer) Ask(ctx context.Context, q questions.Question) ([]stream.Verdict, error) {
	tenant, body := q.Tenant, q.Body
	s.mu.Lock()
	s.tenants, s.bodies = append(s.tenants, tenant), append(s.bodies, bytes.Clone(body))
	s.traces = append(s.traces, stream.ContextTrace(ctx))
	s.mu.Unlock()
	select {
	case s.asked <- struct{}{}:
	default:
	}
	if s.wait != nil {
		select {
		case <-s.wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	v, ok := s.verdicts[tenant]
	if !ok {
		v = s.verdicts[""]
	}
	return []stream.Verdict{v}, s.err
}

func (s *scorer) Info(context.Context) (stream.Info, error) {
	return stream.Info{Model: stream.ModelRef{Name: "default"}, Events: 1234}, s.err
}

// seen returns the tenants that were asked for.
func (s *scorer) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tenants)
}

// verdict returns one with that margin.
func verdict(d stream.Decision, margin float64) stream.Verdict {
	return stream.Verdict{
		P: .9987, Interval: [2]float64{.9921, .9998}, Decision: d, Margin: margin, Identity: "0123abcd",
		Model: stream.ModelRef{Name: "default", SHA256: "0123456789abcdef"},
	}
}

func spam() *scorer {
	return &scorer{verdicts: map[string]stream.Verdict{"": verdict(stream.DecideSpam, 4.321)}}
}

// A teacher remembers events.
type teacher struct {
	mu     sync.Mutex
	events []stream.Event
	traces []stream.Trace // of each call
	err    error
}

func (t *teacher) Publish(ctx context.Context, events ...stream.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.traces = append(t.traces, stream.ContextTrace(ctx))
	t.events = append(t.events, events...)
	return t.err
}

// A bench is an open door.
type bench struct {
	*testing.T
	addr     string
	server   *Server
	registry *prometheus.Registry
	stop     context.CancelFunc
	done     chan error
}

// open opens a door of the given config.
func open(t *testing.T, cfg gateway.Config, serve func(*gateway.Door) *Server) *bench {
	t.Helper()
	b := &bench{T: t, registry: prometheus.NewRegistry(), done: make(chan error, 1)}
	cfg.Registerer = b.registry
	cfg.Deadline, cfg.Memory = within, cmp.Or(cfg.Memory, 256<<20)
	g, err := gateway.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	door := g.Door("rspamd")
	b.server = serve(door)
	l, err := gateway.Listen("127.0.0.1:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	b.addr = l.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	b.stop = stop
	go func() { b.done <- door.Serve(ctx, l, b.server.Handle) }()
	t.Cleanup(func() {
		stop()
		if err := <-b.done; err != nil {
			t.Error(err)
		}
		if held := b.metric("hamlet_gateway_held_bytes"); held != 0 {
			t.Errorf("%v bytes of the budget were not given back", held)
		}
	})
	return b
}

func scan(d *gateway.Door) *Server { return New(d, NewCounts()) }

// metric returns the sum of a metric's values.
func (b *bench) metric(name string) (sum float64) {
	families, err := b.registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// await waits until a metric has a value.
func (b *bench) await(name string, want float64) {
	b.Helper()
	for end := time.Now().Add(within); b.metric(name) != want; {
		if time.Now().After(end) {
			b.Fatalf("%s = %v, want %v", name, b.metric(name), want)
		}
		time.Sleep(time.Millisecond)
	}
}

// client has connections of its own that end with a test.
func (b *bench) client() *http.Client {
	transport := &http.Transport{DisableCompression: true}
	b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: within}
}

// ask sends a request and returns status and body.
func (b *bench) ask(method, path string, body io.Reader, header ...string) (int, []byte) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, "http://"+b.addr+path, body)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	answer, err := b.client().Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer.StatusCode, text
}

// A reply is what rspamd's clients read of an answer.
type reply struct {
	Skipped  bool    `json:"is_skipped"`
	Score    float64 `json:"score"`
	Required float64 `json:"required_score"`
	Action   string  `json:"action"`
	Subject  string  `json:"subject"`
	Symbols  map[string]struct {
		Name    string   `json:"name"`
		Score   float64  `json:"score"`
		Options []string `json:"options"`
	} `json:"symbols"`
	Milter struct {
		Add map[string]struct {
			Value string `json:"value"`
			Order int    `json:"order"`
		} `json:"add_headers"`
		Remove map[string]int `json:"remove_headers"`
	} `json:"milter"`
	MessageID string  `json:"message-id"`
	Time      float64 `json:"time_real"`
}

func (b *bench) scan(body string, header ...string) (r reply) {
	b.Helper()
	code, text := b.ask("POST", "/checkv2", strings.NewReader(body), header...)
	if code != http.StatusOK {
		b.Fatalf("%d %s", code, text)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		b.Fatalf("%v in %s", err, text)
	}
	return r
}

// say sends bytes on a connection of its own and returns what comes until its end.
func (b *bench) say(text string) string {
	b.Helper()
	conn := b.dial()
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		b.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		b.Fatalf("%v after %q", err, answer)
	}
	return string(answer)
}

func (b *bench) dial() net.Conn {
	b.Helper()
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		b.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		b.Fatal(err)
	}
	return conn
}

func TestAnswerOfSpam(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam()}, scan)
	r := b.scan(message)
	if r.Score != 19.32 || r.Required != 15 || r.Action != "add header" || r.Skipped {
		t.Errorf("%+v", r)
	}
	symbol := r.Symbols["HAMLET_SPAM"]
	if len(r.Symbols) != 1 || symbol.Name != "HAMLET_SPAM" || symbol.Score != r.Score || !slices.Contains(symbol.Options, "p=0.9987") {
		t.Errorf("symbols %+v", r.Symbols)
	}
	if r.MessageID != "a@b" || r.Time <= 0 {
		t.Errorf("message-id %q, time %v", r.MessageID, r.Time)
	}
	if field := r.Milter.Add["X-Hamlet"]; !strings.HasPrefix(field.Value, "spam; p=0.9987;") || field.Order != 0 {
		t.Errorf("milter %+v", r.Milter)
	}
	if n, ok := r.Milter.Remove["X-Hamlet"]; !ok || n != 0 {
		t.Errorf("X-Hamlet from outside would stay: %+v", r.Milter.Remove)
	}
}

func TestWordsAreOptions(t *testing.T) {
	v := verdict(stream.DecideSpam, 4)
	v.Words = []stream.Word{{Text: "prize", Where: "subject", Contribution: 2.31}, {Text: "f\u00fcr", Where: "text", Contribution: 1}, {Text: "now", Where: "text"}}
	b := open(t, gateway.Config{Asker: &scorer{verdicts: map[string]stream.Verdict{"": v}}, Marks: gateway.Marks{Words: 2}}, scan)
	want := []string{"p=0.9987", "lo=0.9921", "hi=0.9998", `"prize" +2.31 subject`, `"f\u00fcr" +1.00 text`}
	if got := b.scan(message).Symbols["HAMLET_SPAM"].Options; !slices.Equal(got, want) {
		t.Errorf("options %q, want %q", got, want)
	}
}

// The score as text is on its verdict's side of the required score.
func TestScoreReachesRequired(t *testing.T) {
	for _, test := range []struct {
		d      stream.Decision
		margin float64
		want   string
	}{
		{stream.DecideSpam, 0, "15.00"},
		{stream.DecideSpam, 1e-9, "15.00"},
		{stream.DecideUnsure, -1e-11, "14.99"},
		{stream.DecideUnsure, -.004, "14.99"},
		{stream.DecideHam, -20, "-5.00"},
		{stream.DecideHam, -100, "-85.00"},
		{stream.DecideSpam, 100, "115.00"},
	} {
		v := verdict(test.d, test.margin)
		if got := scoreOf(&v); string(got) != test.want {
			t.Errorf("margin %v: score %s, want %s", test.margin, got, test.want)
		}
	}
}

func TestMostLenientOfSeveralTenants(t *testing.T) {
	c := &scorer{verdicts: map[string]stream.Verdict{
		"a": verdict(stream.DecideSpam, 3), "b": verdict(stream.DecideHam, -9), "c": verdict(stream.DecideUnsure, -1),
	}}
	b := open(t, gateway.Config{Asker: c, Tenants: tenants(t)}, scan)
	r := b.scan(message, "Rcpt", "<alice@a>", "Rcpt", `"x, y"@b, <carol@c>`, "Rcpt", "<bob@A>", "User", "bob")
	if r.Score != 6 || r.Action != "no action" {
		t.Errorf("%+v", r)
	}
	if value := r.Milter.Add["X-Hamlet"].Value; !strings.HasPrefix(value, "spam;") {
		t.Errorf("the field is not the first recipient's: %q", value)
	}
	if got := c.seen(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("asked for %q", got)
	}
}

// A sender who finds recipients of many tenants does not pass unmarked.
func TestManyTenants(t *testing.T) {
	file := "recipients:\n"
	var rcpt []string
	for i := range maxTenants + 1 {
		file += fmt.Sprintf("  u%d@a: t%d\n", i, i)
		rcpt = append(rcpt, "Rcpt", fmt.Sprintf("<u%d@a>", i))
	}
	c := spam()
	for i := range maxTenants {
		c.verdicts[fmt.Sprintf("t%d", i+1)] = verdict(stream.DecideHam, -9)
	}
	school := &teacher{}
	b := open(t, gateway.Config{Asker: c, Tenants: tenantsOf(t, file)}, scan)
	if r := b.scan(message, rcpt[:2*maxTenants]...); r.Score != 6 || len(c.seen()) != maxTenants {
		t.Errorf("as many as may be: %+v for %q", r, c.seen())
	}
	if r := b.scan(message, rcpt...); r.Action != "add header" || r.Score != 19.32 || !slices.Equal(c.seen()[maxTenants:], []string{"t0"}) {
		t.Errorf("one more: %+v for %q", r, c.seen()[maxTenants:])
	}
	b = open(t, gateway.Config{Asker: c, Teacher: school, Tenants: tenantsOf(t, file)}, controllerDoor)
	code, text := b.ask("POST", "/learnspam", strings.NewReader(message), append(rcpt, "Password", "secret")...)
	if code != http.StatusBadRequest || len(school.events) > 0 {
		t.Errorf("%d %s; learnt %d", code, text, len(school.events))
	}
}

// Exim sends a line for each recipient. A sender who finds very many does not pass
// unmarked either.
func TestManyRecipientsInLines(t *testing.T) {
	c := spam()
	b := open(t, gateway.Config{Asker: c, Tenants: tenants(t)}, scan)
	request := fmt.Sprintf("CHECK RSPAMC/1.3\r\nContent-length: %d\r\nRcpt: <first@a>\r\n%sUser: bob\r\n\r\n%s", len(message),
		strings.Repeat("Rcpt: <somebody-with-a-long-name@mail.example.com>\r\n", 20_000), message)
	if got := b.say(request); !strings.Contains(got, "\r\nAction: add header\r\n") {
		t.Errorf("%q", got)
	}
	if got := c.seen(); !slices.Equal(got, []string{"a", "isp"}) {
		t.Errorf("asked for %q", got)
	}
	endless := "CHECK RSPAMC/1.3\r\n" + strings.Repeat("Rcpt: <a@b>"+strings.Repeat(" ", 2000)+"\r\n", 3000) // 6 MB
	conn := b.dial()
	defer conn.Close()
	_, _ = io.WriteString(conn, endless) // it may be cut before the end
	if got, err := io.ReadAll(conn); len(got) > 0 && !strings.HasPrefix(string(got), "RSPAMD/1.3 76 ") || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%.60q, %v", got, err)
	}
	b.await("hamlet_gateway_protocol_errors_total", 1)
}

func TestWhoseMail(t *testing.T) {
	c := spam()
	b := open(t, gateway.Config{Asker: c, Tenants: tenants(t)}, scan)
	b.scan(message)
	b.scan(message, "User", "bob")
	b.scan(message, "User", "bob", "Rcpt", "x@a")
	b.scan(message, "User", "bob", "Rcpt", "x@a", "Deliver-To", "y@c")
	if got := c.seen(); !slices.Equal(got, []string{"isp", "b", "a", "c"}) {
		t.Errorf("asked for %q", got)
	}
}

func tenants(t *testing.T) *gateway.Tenants {
	return tenantsOf(t, "default: isp\nrecipients: {\"@a\": a, \"@b\": b, \"@c\": c}\nusers: {bob: b}\n")
}

// tenantsOf opens a file of that text.
func tenantsOf(t *testing.T, text string) *gateway.Tenants {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tenants.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := gateway.OpenTenants(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestNobodyAnswers(t *testing.T) {
	b := open(t, gateway.Config{Asker: &scorer{err: errors.New("no responders")}}, scan)
	r := b.scan("X-Hamlet: ham; p=0.1\r\nX-HAMLET-Evil: 1\r\n" + message)
	if !r.Skipped || r.Score != 0 || r.Action != "no action" || len(r.Milter.Add) != 0 {
		t.Errorf("%+v", r)
	}
	if options := r.Symbols[SymbolUnavailable].Options; !slices.Equal(options, []string{gateway.ErrNoAnswer.Error()}) {
		t.Errorf("symbols %+v", r.Symbols)
	}
	for _, name := range []string{"X-Hamlet", "X-HAMLET-Evil"} {
		if _, ok := r.Milter.Remove[name]; !ok {
			t.Errorf("%s from outside would stay: %+v", name, r.Milter.Remove)
		}
	}
	lines := b.say("CHECK RSPAMC/1.3\r\nContent-length: 3\r\n\r\nabc")
	if !strings.Contains(lines, "\r\nMetric: default; False; 0.00 / 15.00 / 0.0\r\nAction: no action\r\n") {
		t.Errorf("%q", lines)
	}
	b.await("hamlet_gateway_unmarked_total", 2)
}

func TestSubjectIsTagged(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam(), Marks: gateway.Marks{Tag: "[SPAM] "}}, scan)
	r := b.scan(message)
	if r.Action != "rewrite subject" || r.Subject != "[SPAM] hello" || r.Milter.Add["X-Hamlet-Tag"].Value != "[SPAM]" {
		t.Errorf("%+v", r)
	}
	for _, subject := range []string{"Subject: [SPAM] hello", "Subject: gr\xfc\xdfe", "Subject: " + strings.Repeat("x", 1000)} {
		r := b.scan(subject + "\r\n\r\nhello\r\n")
		if _, tagged := r.Milter.Add["X-Hamlet-Tag"]; r.Action != "add header" || r.Subject != "" || tagged {
			t.Errorf("%.30q: %+v", subject, r)
		}
	}
	r = b.scan("Subject: a\r\n\tfolded\r\n subject\r\n\r\nhello\r\n")
	if r.Subject != "[SPAM] a\tfolded subject" {
		t.Errorf("subject %q", r.Subject)
	}
}

func TestLineProtocol(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam()}, scan)
	request := fmt.Sprintf("CHECK RSPAMC/1.3\r\nContent-length: %d\r\nFrom: <x@y>\r\nRecipient-Number: 1\r\nRcpt: <a@b>\r\n\r\n%s",
		len(message), message)
	want := "RSPAMD/1.3 0 EX_OK\r\nMetric: default; True; 19.32 / 15.00 / 0.0\r\nAction: add header\r\nSymbol: HAMLET_SPAM(19.32)\r\n"
	if got := b.say(request); !strings.HasPrefix(got, want) ||
		!strings.Contains(got, "\r\nX-Milter-Add: X-Hamlet[0]: spam; p=0.9987;") || !strings.HasSuffix(got, "\r\nMessage-ID: a@b\r\n") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for request, want := range map[string]string{
		"PING RSPAMC/1.3\r\n\r\n":                           "RSPAMD/1.3 0 PONG\r\n",
		"PING SPAMC/1.5\r\n\r\n":                            "RSPAMD/1.3 76 EX_PROTOCOL\r\n\r\n",
		"SKIP RSPAMC/1.3\r\n\r\n":                           "",
		"CHECK HTTP/1.0\r\n\r\n":                            "RSPAMD/1.3 76 EX_PROTOCOL\r\n\r\n",
		"CHECK RSPAMC/1.3\r\nContent-length: -1\r\n\r\n":    "RSPAMD/1.3 76 EX_PROTOCOL\r\n\r\n",
		"CHECK RSPAMC/1.3\r\nContent-length: x\r\n\r\n":     "RSPAMD/1.3 76 EX_PROTOCOL\r\n\r\n",
		"CHECK RSPAMC/1.3\r\nKey: abc\r\n\r\n":              "RSPAMD/1.3 76 EX_PROTOCOL\r\n\r\n",
		"CHECK RSPAMC/1.3\r\nno colon\r\n\r\n":              "RSPAMD/1.3 76 EX_PROTOCOL\r\n\r\n",
		"GET /ping HTTP/1.0\r\n\r\n":                        "pong\r\n",
		"REPORT /checkv2 HTTP/1.1\r\nHost: x\r\n\r\n":       "RSPAMD/1.3 76 EX_PROTOCOL\r\n\r\n",
		"CHECK RSPAMC/1.3\r\n" + strings.Repeat("x", 10000): "RSPAMD/1.3 76 EX_PROTOCOL\r\n\r\n",
	} {
		if got := b.say(request); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%.40q: got %q, want %q", request, got, want)
		}
	}
}

func TestNotTaken(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam()}, scan)
	for _, test := range []struct {
		code   int
		header []string
	}{
		{http.StatusUnsupportedMediaType, []string{"Key", "abcdef"}},
		{http.StatusUnsupportedMediaType, []string{"Dictionary", "1"}},
		{http.StatusUnsupportedMediaType, []string{"File", "/etc/passwd"}},
		{http.StatusUnsupportedMediaType, []string{"Content-Encoding", "gzip"}},
		{http.StatusBadRequest, []string{"Compression", "zstd"}}, // the body is not
	} {
		code, text := b.ask("POST", "/checkv2", strings.NewReader(message), test.header...)
		var answer struct{ Error string }
		if err := json.Unmarshal(text, &answer); err != nil || code != test.code || answer.Error == "" {
			t.Errorf("%v: %d %s", test.header, code, text)
		}
	}
	// rspamd's proxy, to a server on loopback
	if code, text := b.ask("GET", "/checkv2", nil, "Shm", "/rhm.1", "Shm-Length", "100"); code != http.StatusUnsupportedMediaType {
		t.Errorf("%d %s", code, text)
	}
	if code, text := b.ask("GET", "/nonsense", nil); code != http.StatusNotFound || !bytes.Contains(text, []byte("invalid command")) {
		t.Errorf("%d %s", code, text)
	}
	b.await("hamlet_gateway_protocol_errors_total", 7)
}

func TestZstd(t *testing.T) {
	c := spam()
	b := open(t, gateway.Config{Asker: c, Memory: 16 << 20}, scan)
	for _, name := range []string{"Compression", "Content-Encoding"} {
		if r := b.scan(string(compress(t, message)), name, "zstd"); r.Score != 19.32 || r.MessageID != "a@b" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	bomb := compress(t, message+strings.Repeat("\x00", 40<<20), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if r := b.scan(string(bomb), "Compression", "zstd"); !r.Skipped || r.Action != "no action" {
		t.Errorf("bomb: %+v", r)
	}
	wide := compress(t, strings.Repeat("x", 1<<20), zstd.WithWindowSize(16<<20), zstd.WithSingleSegment(false))
	if code, text := b.ask("POST", "/checkv2", bytes.NewReader(wide), "Compression", "zstd"); code != http.StatusUnsupportedMediaType {
		t.Errorf("window: %d %s", code, text)
	}
}

// The windows of decoders count in the budget.
func TestWindowsTakeMemory(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam(), Memory: 1 << 20}, scan)
	text := compress(t, message+strings.Repeat("x", 4<<20), zstd.WithWindowSize(4<<20))
	r := b.scan(string(text), "Compression", "zstd")
	if options := r.Symbols[SymbolUnavailable].Options; !slices.Equal(options, []string{gateway.ErrMemory.Error()}) {
		t.Errorf("%+v", r)
	}
}

func compress(t *testing.T, text string, options ...zstd.EOption) []byte {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, options...)
	if err == nil {
		_, err = io.WriteString(w, text)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
