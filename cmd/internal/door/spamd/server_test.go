package spamd

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/questions"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience bounds every wait of a test.
const patience = 30 * time.Second

var (
	spam    = stream.Verdict{P: 0.9987, Interval: [2]float64{0.9921, 0.9998}, Decision: stream.DecideSpam, Margin: 2.1, Model: model}
	ham     = stream.Verdict{P: 0.0213, Interval: [2]float64{0.0101, 0.0452}, Decision: stream.DecideHam, Margin: -6.02, Model: model}
	unsure  = stream.Verdict{P: 0.8999, Interval: [2]float64{0.41, 0.99}, Decision: stream.DecideUnsure, Margin: -1e-11, Model: model}
	reasons = []stream.Reason{{Name: "body-words", Contribution: 4.25, SD: 0.5}, {Name: "header\nwords", Contribution: -1, SD: 0.25}}
	words   = []stream.Word{{Text: "pills", Where: "text", Contribution: 1.5}, {Text: "gr\u00fc\u00dfe", Where: "subject", Contribution: -0.25, Shared: true}}
	model   = stream.ModelRef{Name: "default", SHA256: strings.Repeat("0123456789abcdef", 4)}
)

// A scorer is a scoring service: the answer is in the message's text.
type scorer struct {
	mu      sync.Mutex
	tenants []string      // that were asked for
	wait    chan struct{} // answers wait for it, if there is one
}

func (c *scorer) Ask(ctx context.Context, q questions.Question) ([]stream.Verdict, error) {
	tenant, body, explain := q.Tenant, q.Body, q.Explain
	c.mu.Lock()
	c.tenants = append(c.tenants, tenant)
	wait := c.wait
	c.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	v := ham
	switch {
	case bytes.Contains(body, []byte("nobody answers")):
		return nil, errors.New("no scorer")
	case bytes.Contains(body, []byte("buy pills")):
		v = spam
	case bytes.Contains(body, []byte("perhaps")):
		v = unsure
	}
	if explain {
		v.Reasons, v.Words = reasons, words
	}
	return []stream.Verdict{v}, nil
}

// asked returns the tenants that were asked for, and forgets them.
func (c *scorer) asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	tenants := c.tenants
	c.tenants = nil
	return tenants
}

func (c *scorer) Info(context.Context) (stream.Info, error) { return stream.Info{}, nil }

// A teacher keeps what it is told.
type teacher struct {
	mu     sync.Mutex
	events []stream.Event
	err    error
}

func (t *teacher) Publish(_ context.Context, events ...stream.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, events...)
	return t.err
}

// taught returns the events, and forgets them. Further events end with err.
func (t *teacher) taught(err error) []stream.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	events := t.events
	t.events, t.err = nil, err
	return events
}

// A testDoor is an open door.
type testDoor struct {
	addr     string // of a Unix socket
	gateway  *gateway.Gateway
	scorer   *scorer
	registry *prometheus.Registry
	stop     func() // and wait
}

// open opens a door that ends with the test.
func open(t testing.TB, cfg gateway.Config, pace ...gateway.Pace) *testDoor {
	t.Helper()
	d := &testDoor{scorer: &scorer{}, registry: prometheus.NewRegistry(), addr: filepath.Join(t.TempDir(), "spamd")}
	if cfg.Asker == nil {
		cfg.Asker = d.scorer
	}
	cfg.Registerer = d.registry
	cfg.Deadline, cfg.Memory = cmp.Or(cfg.Deadline, 2*time.Second), cmp.Or(cfg.Memory, 256<<20)
	var err error
	if d.gateway, err = gateway.New(cfg); err != nil {
		t.Fatal(err)
	}
	l, err := gateway.Listen("unix:"+d.addr, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	d.serve(t, l, pace...)
	return d
}

// serve serves l too.
func (d *testDoor) serve(t testing.TB, l net.Listener, pace ...gateway.Pace) {
	t.Helper()
	door := d.gateway.Door("spamd")
	s := New(door)
	s.pace.Stall = patience
	for _, s.pace = range pace {
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- door.Serve(ctx, l, s.Handle) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.stop)
}

func (d *testDoor) dial(t testing.TB) *net.UnixConn {
	t.Helper()
	conn, err := net.Dial("unix", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn.(*net.UnixConn)
}

// ask sends a request, ends the client's half and returns the whole answer.
func (d *testDoor) ask(t testing.TB, request string) string {
	t.Helper()
	conn := d.dial(t)
	defer conn.Close()
	// A door that refuses may close before it has read all.
	_, _ = conn.Write([]byte(request))
	_ = conn.CloseWrite()
	answer, err := io.ReadAll(conn)
	if err != nil && len(answer) == 0 {
		t.Fatalf("read the answer to %.60q: %v", request, err)
	}
	return string(answer)
}

// metric returns the sum of a metric whose labels contain all of the pairs.
func (d *testDoor) metric(t testing.TB, name string, pairs ...string) (sum float64) {
	t.Helper()
	families, err := d.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			if labelled(m, pairs) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func labelled(m *dto.Metric, pairs []string) bool {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	for i := 0; i < len(pairs); i += 2 {
		if labels[pairs[i]] != pairs[i+1] {
			return false
		}
	}
	return true
}

// request returns a request of that first line, with its message's length.
func mailRequest(line, message string, fields ...string) string {
	return line + "\r\n" + strings.Join(append(fields, ""), "\r\n") +
		fmt.Sprintf("Content-length: %d\r\n\r\n%s", len(message), message)
}

const (
	spamMail = "From: a@example.org\r\nX-Hamlet: ham; p=0.0000\r\nSubject: hello\r\n\r\nbuy pills\r\n"
	hamMail  = "Subject: hello\n\nsee you tomorrow\n"
	lostMail = "Subject: hello\nX-hamlet: ham\n\nnobody answers\n"

	marked = "X-Hamlet: spam; p=0.9987; lo=0.9921; hi=0.9998; model=default/0123456789ab\r\n"
)

func TestAnswers(t *testing.T) {
	d := open(t, gateway.Config{})
	mailAfter := marked + "From: a@example.org\r\nSubject: hello\r\n\r\n"
	lostAfter := "Subject: hello\n\nnobody answers\n"
	report := "hamlet: spam.\nProbability of spam 0.9987, 90 % interval 0.9921 to 0.9998.\n" +
		"Score 7.1; 5.0 and more is spam.\nModel default/0123456789ab.\n" +
		"What moved the log-odds most (nats; above 0 towards spam; with its sd):\n" +
		"    +4.25 +- 0.50   body-words\n    -1.00 +- 0.25   header\\nwords\n" +
		"The words, header fields and links that added most (* shares its slot):\n" +
		"    +1.50  pills (text)\n    -0.25* gr\\u00fc\\u00dfe (subject)\n"
	const ok = "SPAMD/1.1 0 EX_OK\r\n"
	with := func(spam, body string) string {
		return fmt.Sprintf("%sContent-length: %d\r\nSpam: %s / 5.0\r\n\r\n%s", ok, len(body), spam, body)
	}
	for _, test := range []struct{ name, request, want string }{
		{"ping", "PING SPAMC/1.5\r\n\r\n", "SPAMD/1.5 0 PONG\r\n"},
		{"ping with a field", "PING SPAMC/1.5\r\nUser: x\r\n\r\n", "SPAMD/1.5 0 PONG\r\n"},
		{"old ping", "PING SPAMC/1.2\r\n", "SPAMD/1.5 0 PONG\r\n"},
		{"skip", "SKIP SPAMC/1.5\r\n\r\n", ""},

		{"check spam", mailRequest("CHECK SPAMC/1.5", spamMail), ok + "Spam: True ; 7.1 / 5.0\r\n\r\n"},
		{"check ham", mailRequest("CHECK SPAMC/1.2", hamMail), ok + "Spam: False ; -1.0 / 5.0\r\n\r\n"},
		{"check unsure", mailRequest("CHECK SPAMC/1.5", "A: b\n\nperhaps"), ok + "Spam: False ; 4.9 / 5.0\r\n\r\n"},
		{"check 1.0", "CHECK SPAMC/1.0\r\n" + spamMail, ok + "Spam: True ; 7.1 / 5.0\r\n\r\n"},
		{"check to the end", "CHECK SPAMC/1.3\r\nUser: x\r\n\r\n" + spamMail, ok + "Spam: True ; 7.1 / 5.0\r\n\r\n"},
		{"unknown fields", mailRequest("CHECK SPAMC/1.6", spamMail, "X-Color: red"), ok + "Spam: True ; 7.1 / 5.0\r\n\r\n"},
		{"bare line ends", strings.ReplaceAll(mailRequest("CHECK SPAMC/1.5", hamMail), "\r", ""), ok + "Spam: False ; -1.0 / 5.0\r\n\r\n"},
		{"compressed", compressed("CHECK SPAMC/1.5", spamMail), ok + "Spam: True ; 7.1 / 5.0\r\n\r\n"},

		{"symbols spam", mailRequest("SYMBOLS SPAMC/1.3", spamMail), with("True ; 7.1", "HAMLET_SPAM")},
		{"symbols ham", mailRequest("SYMBOLS SPAMC/1.5", hamMail), with("False ; -1.0", "HAMLET_HAM")},
		{"symbols unsure", mailRequest("SYMBOLS SPAMC/1.5", "A: b\n\nperhaps"), with("False ; 4.9", "HAMLET_UNSURE")},
		{"old symbols", mailRequest("SYMBOLS SPAMC/1.2", spamMail), ok + "Spam: True ; 7.1 / 5.0\r\n\r\nHAMLET_SPAM\r\n"},

		{"report", mailRequest("REPORT SPAMC/1.5", spamMail), with("True ; 7.1", report)},
		{"report as Exim asks", mailRequest("REPORT SPAMC/1.2", spamMail), ok + "Spam: True ; 7.1 / 5.0\r\n\r\n" + report},
		{"report if spam", mailRequest("REPORT_IFSPAM SPAMC/1.5", spamMail), with("True ; 7.1", report)},
		{"report if ham", mailRequest("REPORT_IFSPAM SPAMC/1.5", hamMail), with("False ; -1.0", "")},

		{"process", mailRequest("PROCESS SPAMC/1.5", spamMail), with("True ; 7.1", mailAfter+"buy pills\r\n")},
		{"process compressed", compressed("PROCESS SPAMC/1.5", spamMail), with("True ; 7.1", mailAfter+"buy pills\r\n")},
		{"process 1.2", mailRequest("PROCESS SPAMC/1.2", spamMail),
			fmt.Sprintf("%sContent-length: %d\r\n\r\n%s", ok, len(mailAfter)+11, mailAfter+"buy pills\r\n")},
		{"process 1.0", "PROCESS SPAMC/1.0\r\n" + spamMail, "SPAMD/1.0 0 EX_OK\r\n" + mailAfter + "buy pills\r\n"},
		{"headers", mailRequest("HEADERS SPAMC/1.5", spamMail), with("True ; 7.1", mailAfter)},

		{"check without an answer", mailRequest("CHECK SPAMC/1.5", lostMail), ok + "Spam: False ; 0.0 / 5.0\r\n\r\n"},
		{"symbols without an answer", mailRequest("SYMBOLS SPAMC/1.5", lostMail), with("False ; 0.0", "HAMLET_UNAVAILABLE")},
		{"report without an answer", mailRequest("REPORT SPAMC/1.5", lostMail),
			with("False ; 0.0", "hamlet: no answer, the message passes unmarked.\n")},
		{"report if spam without an answer", mailRequest("REPORT_IFSPAM SPAMC/1.5", lostMail), with("False ; 0.0", "")},
		{"process without an answer", mailRequest("PROCESS SPAMC/1.5", lostMail), with("False ; 0.0", lostAfter)},
		{"headers without an answer", mailRequest("HEADERS SPAMC/1.5", lostMail), with("False ; 0.0", "Subject: hello\n\n")},
		{"process nothing", mailRequest("PROCESS SPAMC/1.5", ""), with("False ; 0.0", "")},
		{"process blanks", mailRequest("PROCESS SPAMC/1.5", "\n \n"), with("False ; 0.0", "\n \n")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := d.ask(t, test.request); got != test.want {
				t.Errorf("%q\n got %q\nwant %q", test.request, got, test.want)
			}
		})
	}
	if n := d.metric(t, "hamlet_gateway_protocol_errors_total"); n != 0 {
		t.Errorf("%v protocol errors counted, want none", n)
	}
	if n := d.metric(t, "hamlet_gateway_held_bytes"); n != 0 {
		t.Errorf("%v bytes held, want none", n)
	}
}

func compressed(line, message string) string {
	return mailRequest(line, pack(message), "Compress: zlib")
}

func pack(message string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(message))
	_ = w.Close()
	return b.String()
}

func TestRefusals(t *testing.T) {
	d := open(t, gateway.Config{})
	header := func(text string) string { return "SPAMD/1.0 76 Bad header line: (" + text + ")\r\n" }
	lying := func(n int, message string) string {
		return fmt.Sprintf("PROCESS SPAMC/1.5\r\nContent-length: %d\r\n\r\n%s", n, message)
	}
	tests := []struct{ name, request, want string }{
		{"no command", "HELO you\r\n", header("no command of this protocol")},
		{"HTTP", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", header("no command of this protocol")},
		{"half a command", "CHECK SPA", header("EOF during headers")},
		{"no version", "CHECK SPAMC/new\r\n\r\n", header("no command of this protocol")},
		{"version 0.9", "CHECK SPAMC/0.9\r\n\r\n", header("no version of this protocol")},
		{"half a header", "CHECK SPAMC/1.5\r\nUser: x\r\n", header("EOF during headers")},
		{"ping without an end", "PING SPAMC/1.5\r\n", header("EOF during headers")},
		{"no field", "CHECK SPAMC/1.5\r\nnonsense\r\n\r\n", header("header not in 'Name: value' format")},
		{"length", "CHECK SPAMC/1.5\r\nContent-length: -1\r\n\r\n", header("Content-length is not a number")},
		{"huge length", "CHECK SPAMC/1.5\r\nContent-length: 99999999999999999999\r\n\r\n", header("Content-length is not a number")},
		{"user", "CHECK SPAMC/1.5\r\nUser: a\x01b\r\n\r\n", header("User contains control chars")},
		{"compression", "CHECK SPAMC/1.5\r\nCompress: lzma\r\n\r\n", header("compression type not supported")},
		{"compression to the end", "CHECK SPAMC/1.5\r\nCompress: zlib\r\n\r\n" + pack(hamMail),
			"SPAMD/1.0 69 Service Unavailable: Compress requires Content-length header\r\n"},
		{"no zlib", mailRequest("CHECK SPAMC/1.5", hamMail, "Compress: zlib"),
			"SPAMD/1.0 69 Service Unavailable: zlib: the body cannot be read\r\n"},
		{"half of zlib", mailRequest("CHECK SPAMC/1.5", pack(hamMail)[:20], "Compress: zlib"),
			"SPAMD/1.0 69 Service Unavailable: zlib: the body cannot be read\r\n"},
		{"more than said", lying(20, hamMail), header("Content-Length mismatch: Expected 20 bytes, got more")},
		{"less than said", lying(200, hamMail), header("Content-Length mismatch: Expected 200 bytes, got 33 bytes")},
		{"a long line", "CHECK SPAMC/1.5\r\nUser: " + strings.Repeat("x", 5000) + "\r\n\r\n", header("too many headers")},
		{"10,000 fields", "CHECK SPAMC/1.5\r\n" + strings.Repeat("A: b\r\n", 10000) + "\r\n" + hamMail, header("too many headers")},
		{"a label without a class", "TELL SPAMC/1.5\r\nSet: local\r\n\r\n", header("Set without Message-class")},
		{"a label of no class", "TELL SPAMC/1.5\r\nMessage-class: eggs\r\nSet: local\r\n\r\n", header("Message-class is neither spam nor ham")},
		{"set and remove", "TELL SPAMC/1.5\r\nMessage-class: ham\r\nSet: local\r\nRemove: local\r\n\r\n",
			header("Unable to set local and remove local in the same operation.")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := d.ask(t, test.request); got != test.want {
				t.Errorf("%.80q\n got %q\nwant %q", test.request, got, test.want)
			}
		})
	}
	if n := d.metric(t, "hamlet_gateway_protocol_errors_total"); n != float64(len(tests)) {
		t.Errorf("%v protocol errors counted, want %d", n, len(tests))
	}
	if n := d.metric(t, "hamlet_gateway_held_bytes"); n != 0 {
		t.Errorf("%v bytes held, want none", n)
	}
}

func TestTeach(t *testing.T) {
	taught := &teacher{}
	d := open(t, gateway.Config{Teacher: taught})
	for _, test := range []struct {
		name, message string
		fields        []string
		want          string
		actions       []stream.Action
		label         stream.Label
	}{
		{"spam", spamMail, []string{"Message-class: spam", "Set: local"}, "SPAMD/1.1 0 EX_OK\r\nDidSet: local\r\n\r\n", []stream.Action{stream.Correct}, stream.Spam},
		{"ham", hamMail, []string{"Message-class: ham", "Set: local,remote"}, "SPAMD/1.1 0 EX_OK\r\nDidSet: local\r\n\r\n", []stream.Action{stream.Correct}, stream.Ham},
		{"forget", hamMail, []string{"Remove: local"}, "SPAMD/1.1 0 EX_OK\r\nDidRemove: local\r\n\r\n", []stream.Action{stream.Unlearn}, 0},
		{"report elsewhere", hamMail, []string{"Message-class: spam", "Set: remote"}, "SPAMD/1.1 0 EX_OK\r\n\r\n", nil, 0},
		{"nothing", " \n", []string{"Message-class: spam", "Set: local"}, "SPAMD/1.0 65 Not learnt: message is empty\r\n", nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := d.ask(t, mailRequest("TELL SPAMC/1.5", test.message, test.fields...)); got != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			events := taught.taught(nil)
			if len(events) != len(test.actions) {
				t.Fatalf("%d events, want %d", len(events), len(test.actions))
			}
			for i, e := range events {
				if e.Action != test.actions[i] || e.Source != "spamd" || e.Action == stream.Correct && e.Label != test.label {
					t.Errorf("event: action %v, label %v, source %q; want %v, %v, spamd", e.Action, e.Label, e.Source, test.actions[i], test.label)
				}
			}
		})
	}
	taught.taught(errors.New("the log is gone"))
	want := "SPAMD/1.0 75 Not learnt: try again later\r\n"
	if got := d.ask(t, mailRequest("TELL SPAMC/1.5", spamMail, "Message-class: spam", "Set: local")); got != want {
		t.Errorf("a log that fails: got %q, want %q", got, want)
	}
}

func TestTeachNotAllowed(t *testing.T) {
	d := open(t, gateway.Config{Hints: gateway.Hints{Learn: "--allow-learn"}})
	want := "SPAMD/1.0 69 Service Unavailable: TELL commands are not enabled, set the --allow-learn switch.\r\n"
	if got := d.ask(t, mailRequest("TELL SPAMC/1.5", spamMail, "Message-class: spam", "Set: local")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := d.metric(t, "hamlet_gateway_labels_total", "outcome", "not-allowed"); n != 1 {
		t.Errorf("%v refused labels counted, want 1", n)
	}
}

// TestReport checks that a report of any verdict has short lines of ASCII, none empty.
func TestReport(t *testing.T) {
	v := spam
	for range 30 {
		v.Reasons = append(v.Reasons, stream.Reason{Name: strings.Repeat("name\r\n\n", 20), Contribution: -100, SD: 100})
		v.Words = append(v.Words, stream.Word{Text: strings.Repeat("\u5b57", 30), Where: strings.Repeat("x", 70), Contribution: 1e-9})
	}
	text := reportText(&v)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if want := 6 + reportReasons + 1 + reportWords + 1; len(lines) != want {
		t.Errorf("%d lines, want %d:\n%s", len(lines), want, text)
	}
	for _, line := range lines {
		if line == "" || len(line) > reportWidth || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("line %q", line)
		}
	}
}

// TestTenants checks that a user chooses among the operator's tenants only.
func TestTenants(t *testing.T) {
	tenants := writeTenants(t, "default: isp\nusers: {alice: wonderland}\nrecipients: {'@example.org': example}\n")
	d := open(t, gateway.Config{Tenants: tenants})
	for user, want := range map[string]string{"alice": "wonderland", "bob@Example.org": "example", "example": "isp", "": "isp"} {
		d.ask(t, mailRequest("CHECK SPAMC/1.5", hamMail, "User: "+user))
		if got := strings.Join(d.scorer.asked(), " "); got != want {
			t.Errorf("user %q: tenant %q, want %q", user, got, want)
		}
	}
}

// TestClientThatStaysOpen checks that a client need not end its half to get its answer.
func TestClientThatStaysOpen(t *testing.T) {
	d := open(t, gateway.Config{})
	conn := d.dial(t)
	_, _ = conn.Write([]byte(mailRequest("CHECK SPAMC/1.5", spamMail)))
	answer, err := io.ReadAll(conn)
	if want := "SPAMD/1.1 0 EX_OK\r\nSpam: True ; 7.1 / 5.0\r\n\r\n"; string(answer) != want || err != nil {
		t.Errorf("got %q, %v, want %q", answer, err, want)
	}
}

// TestShutdown checks that a door that stops finishes the request in hand, and lets go of
// clients that asked for nothing.
func TestShutdown(t *testing.T) {
	d := open(t, gateway.Config{Deadline: patience})
	d.scorer.wait = make(chan struct{})
	silent, conn := d.dial(t), d.dial(t)
	_, _ = conn.Write([]byte(mailRequest("CHECK SPAMC/1.5", spamMail)))
	waitFor(t, "the question", func() bool { return len(d.scorer.asked()) == 1 })
	stopped := make(chan struct{})
	go func() { d.stop(); close(stopped) }()
	if n, err := silent.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("a silent client: %d bytes, %v, want the end", n, err)
	}
	close(d.scorer.wait)
	answer, _ := io.ReadAll(conn)
	if want := "SPAMD/1.1 0 EX_OK\r\nSpam: True ; 7.1 / 5.0\r\n\r\n"; string(answer) != want {
		t.Errorf("got %q, want %q", answer, want)
	}
	_ = conn.Close()
	<-stopped
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s in %v", what, patience)
		}
	}
}

// TestHeadersOfAnyMail checks the law that clients of HEADERS rely on: the answer and the
// message's own bytes behind its first empty line are what PROCESS answers.
func TestHeadersOfAnyMail(t *testing.T) {
	d := open(t, gateway.Config{})
	for _, message := range []string{
		spamMail, hamMail, lostMail, "no header", "\n\nbuy pills", "\nfirst\n\nbuy pills\n",
		"Subject: x", "Subject: x\n", "Subject: x\nno field\nbuy pills\n\nmore\n", "A: b\r\n\nbuy pills\n\nmore",
		"A: b\n\r\nbuy pills\n\nmore", "From x\nA: b\n\nbuy pills", "A: b\r\nC: d\n\nbuy pills\r\n\r\nx",
		"A: b\n\nbuy pills\x00\xff\n", strings.Repeat("A: b\n", 100000) + "\nbuy pills",
		"A: b\nno field\n" + strings.Repeat("nobody answers ", 1000) + "\n\nmore",
	} {
		processed := d.ask(t, mailRequest("PROCESS SPAMC/1.5", message))
		header := d.ask(t, mailRequest("HEADERS SPAMC/1.5", message))
		_, whole, _ := strings.Cut(processed, "\r\n\r\n")
		_, part, _ := strings.Cut(header, "\r\n\r\n")
		if got := part + message[headerEnd([]byte(message)):]; got != whole {
			t.Errorf("message %.60q:\nHEADERS and the rest %.200q\nPROCESS %.200q", message, got, whole)
		}
		if said := fmt.Sprintf("Content-length: %d\r\n", len(part)); !strings.Contains(header, said) {
			t.Errorf("message %.60q: HEADERS answers %.60q, want %s", message, header, said)
		}
	}
	if n := d.metric(t, "hamlet_gateway_held_bytes"); n != 0 {
		t.Errorf("%v bytes held, want none", n)
	}
}

func TestTooLarge(t *testing.T) {
	d := open(t, gateway.Config{})
	large := hamMail + strings.Repeat("x", mail.MaxSize)
	for _, test := range []struct{ request, want string }{
		{mailRequest("CHECK SPAMC/1.5", large), "SPAMD/1.1 0 EX_OK\r\nSpam: False ; 0.0 / 5.0\r\n\r\n"},
		{compressed("CHECK SPAMC/1.5", large), "SPAMD/1.1 0 EX_OK\r\nSpam: False ; 0.0 / 5.0\r\n\r\n"},
		{mailRequest("PROCESS SPAMC/1.5", large), "SPAMD/1.0 65 Not marked: message is larger than 25 MiB\r\n"},
	} {
		if got := d.ask(t, test.request); got != test.want {
			t.Errorf("%.20q: got %q, want %q", test.request, got, test.want)
		}
	}
	if n := d.metric(t, "hamlet_gateway_unmarked_total", "reason", "too-large"); n != 3 {
		t.Errorf("%v messages counted as too large, want 3", n)
	}
}
