package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"hamlet/cmd/internal/testkit/await"
	"hamlet/stream"
	"hamlet/stream/lockfile"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// A rig is a service, the machine that it asks over HTTP, and what it reads and teaches.
type rig struct {
	t      *testing.T
	s      *Service
	url    string
	file   string
	log    *lines
	stop   func()
	mu     sync.Mutex
	says   func(id string) string // the machine's label
	asked  []string               // ids
	labels []stream.JournalEntry
	taught []stream.Event
	fails  error // of the learner's log
}

func (r *rig) Publish(_ context.Context, events ...stream.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails == nil {
		r.taught = append(r.taught, events...)
	}
	return r.fails
}

// ServeHTTP is the machine's.
func (r *rig) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var q Question
	if err := json.NewDecoder(request.Body).Decode(&q); err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, q.ID)
	label := r.says(q.ID)
	if label == "down" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"label": label})
}

func (r *rig) read(context.Context, time.Time) iter.Seq2[stream.JournalEntry, error] {
	r.mu.Lock()
	all := append([]stream.JournalEntry(nil), r.labels...)
	r.mu.Unlock()
	return func(yield func(stream.JournalEntry, error) bool) {
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func newRig(t *testing.T, says func(id string) string) *rig {
	r := &rig{t: t, says: says, log: new(lines), file: filepath.Join(t.TempDir(), "oracle.json")}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// start runs a service until stop is called or the test ends.
func (r *rig) start(questions int, not ...string) {
	r.t.Helper()
	s, err := New(Config{
		URL: r.url, Questions: questions, Not: not, File: r.file, Teacher: r, Labels: r.read,
		Log: slog.New(slog.NewTextHandler(r.log, nil)), poll: 2 * time.Millisecond, pause: time.Millisecond,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Run(ctx) }()
	r.s, r.stop = s, sync.OnceFunc(func() { cancel(); <-ended })
	r.t.Cleanup(r.stop)
}

func (r *rig) counts() (asked, taught int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked), len(r.taught)
}

func (r *rig) until(what string, is func() bool) {
	r.t.Helper()
	await.Until(r.t, is, func() string {
		asked, taught := r.counts()
		return fmt.Sprintf("%s: %d asked, %d taught, %s; the log is\n%s", what, asked, taught, r.s.state.Load(), r.log)
	})
}

// pass lets a message pass a door. It is doubtful, or surely ham.
func (r *rig) pass(id, tenant string, doubtful bool) {
	v := &stream.Verdict{Identity: id, P: .5, Interval: [2]float64{.1, .9}, Decision: stream.DecideUnsure}
	if !doubtful {
		v = &stream.Verdict{Identity: id, P: .001, Interval: [2]float64{.0005, .002}, Decision: stream.DecideHam}
	}
	r.s.Answered(tenant, []byte("From: a@b.example\nSubject: canary "+id+"\n\ntext\n"), v)
	r.until("the message does not get there", func() bool { return len(r.s.queue) == 0 && r.s.bytes.Load() == 0 })
}

// label is what people say of a message.
func (r *rig) label(id, source string, label stream.Label) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.labels = append(r.labels, stream.JournalEntry{ID: id, Source: source, Label: label, Time: time.Now()})
}

func (r *rig) is(state State) func() bool { return func() bool { return r.s.state.Load() == state } }

// compare lets n messages pass that people then label ham, and waits until they were compared.
func (r *rig) compare(prefix string, n int) {
	r.t.Helper()
	before, _ := r.counts()
	for i := range n {
		id := fmt.Sprint(prefix, i)
		r.pass(id, "default", true)
		r.label(id, "users", stream.Ham)
	}
	r.until("not all are compared", func() bool { asked, _ := r.counts(); return asked == before+n || r.is(Stopped)() })
}

func ham(string) string  { return "ham" }
func spam(string) string { return "spam" }

// A machine on trial is asked about labelled mail alone. A trusted one labels doubtful mail, and nothing else.
func TestTrialAndTrust(t *testing.T) {
	t.Parallel()
	r := newRig(t, ham)
	r.start(1000, "secret")
	r.pass("early", "default", true)
	r.pass("sure", "default", false)
	r.pass("hidden", "secret", true)
	r.label("self", "self-label", stream.Ham)
	r.label("early", "self-label", stream.Ham)
	r.label("early", Source, stream.Ham)
	r.label("sure", "users", stream.Ham)
	r.label("hidden", "users", stream.Ham)
	r.until("labelled mail is not asked about", func() bool { asked, _ := r.counts(); return asked == 1 })
	r.compare("trial", 10) // with the one before as many as show it
	r.until("it is not trusted", r.is(Trusted))
	if asked, taught := r.counts(); asked != 11 || taught != 0 {
		t.Fatalf("on trial %d are asked, %d taught", asked, taught)
	}
	r.pass("later", "alice", true)
	r.pass("later-sure", "alice", false)
	r.pass("later-hidden", "secret", true)
	r.until("doubtful mail is not taught", func() bool { _, taught := r.counts(); return taught == 1 })
	e := r.taught[0]
	if e.ID != "later/oracle" || e.Of != "later" || e.Source != Source || e.Tenant != "alice" || e.Action != stream.Assume ||
		e.Label != stream.Ham || !bytes.Contains(e.Body.Mail, []byte("canary later")) || e.Validate() != nil {
		t.Errorf("taught %+v", e)
	}
	r.label("later", "users", stream.Spam)
	r.until("the taught answer is not compared", func() bool { return testutil.ToFloat64(r.s.metrics.compared.WithLabelValues("wrong")) == 1 })
	if asked, _ := r.counts(); asked != 12 {
		t.Errorf("%d are asked: %v", asked, r.asked)
	}
	if said := r.log.String(); strings.Contains(said, "canary") || strings.Count(said, "the oracle is trusted") != 1 {
		t.Errorf("the log is\n%s", said)
	}
}

// A machine that is mostly wrong teaches nothing, is stopped within few questions, and a restart does not
// forget that. Another machine starts on trial.
func TestABadMachineIsStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t, spam)
	r.start(1000)
	r.compare("bad", 12)
	r.until("it is not stopped", r.is(Stopped))
	asked, taught := r.counts()
	if asked > 12 || taught != 0 || testutil.ToFloat64(r.s.metrics.state.WithLabelValues("stopped")) != 1 {
		t.Errorf("%d are asked, %d taught", asked, taught)
	}
	if said := r.log.String(); !strings.Contains(said, "level=ERROR") || !strings.Contains(said, "hamlet withdraw --source oracle") ||
		!strings.Contains(said, "oracle="+strings.TrimPrefix(r.url, "http://")) {
		t.Errorf("the log is\n%s", said)
	}
	r.stop()
	r.start(1000)
	r.pass("again", "default", true)
	r.label("again", "users", stream.Ham)
	r.label("other", "users", stream.Ham)
	if after, _ := r.counts(); after != asked || r.s.state.Load() != Stopped {
		t.Errorf("after a restart it is %s", r.s.state.Load())
	}
	r.stop()
	r.url += "/other"
	r.start(1000)
	if r.s.state.Load() != Trial || r.s.book.asked != asked {
		t.Errorf("another machine is %s, and %d questions are asked today", r.s.state.Load(), r.s.book.asked)
	}
}

// One message counts once, however often it passes and its label is read. A trusted machine is asked about a
// doubtful message once.
func TestAMessageIsAskedAboutOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, ham)
	r.start(1000)
	r.pass("again", "default", true)
	r.label("again", "users", stream.Ham)
	r.until("it is not asked", func() bool { asked, _ := r.counts(); return asked == 1 })
	for range 15 {
		r.pass("again", "default", true)
		r.label("again", "users", stream.Ham)
	}
	r.compare("marker", 1)
	if asked, _ := r.counts(); asked != 2 || r.is(Trusted)() {
		t.Fatalf("%d are asked, and it is %s", asked, r.s.state.Load())
	}
	r.compare("trial", 9)
	r.until("it is not trusted", r.is(Trusted))
	for range 20 {
		r.pass("often", "default", true)
	}
	r.pass("last", "default", true)
	r.until("the last is not taught", func() bool { _, taught := r.counts(); return taught == 2 })
	if asked, _ := r.counts(); asked != 13 {
		t.Errorf("%d are asked: %v", asked, r.asked)
	}
}

// A label that was withdrawn is none.
func TestAWithdrawnLabel(t *testing.T) {
	t.Parallel()
	r := newRig(t, ham)
	r.start(1000)
	r.pass("withdrawn", "default", true)
	r.mu.Lock()
	r.labels = append(r.labels, stream.JournalEntry{
		ID: "withdrawn", Source: "users", Label: stream.Spam, Withdrawn: true, Time: time.Now(),
	})
	r.mu.Unlock()
	r.compare("given", 1)
	if asked, _ := r.counts(); asked != 1 {
		t.Errorf("%d are asked: %v", asked, r.asked)
	}
}

// The day's questions are bounded, also by a restart.
func TestBudget(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(string) string { return "unknown" })
	r.start(3)
	for i := range 3 {
		id := fmt.Sprint(i)
		r.pass(id, "default", true)
		r.label(id, "users", stream.Ham)
	}
	r.until("they are not asked", func() bool { asked, _ := r.counts(); return asked == 3 })
	r.stop()
	r.start(3)
	r.pass("4", "default", true)
	r.label("4", "users", stream.Ham)
	r.until("the budget does not hold", func() bool { return testutil.ToFloat64(r.s.metrics.unasked.WithLabelValues(unaskedBudget)) == 1 })
	if asked, _ := r.counts(); asked != 3 || r.s.policy.total != 0 {
		t.Errorf("%d are asked", asked)
	}
	b := book{}
	day := time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
	if !b.take(1, day) || b.take(1, day) || !b.take(1, day.Add(2*time.Hour)) {
		t.Error("a new day has no new questions")
	}
}

// While the account cannot be written nothing is asked and taught. It is written as soon as that works, also of a
// machine that is stopped.
func TestAnAccountThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t, ham)
	r.start(1000)
	folder, aside := filepath.Dir(r.file), filepath.Dir(r.file)+"-aside"
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	unasked := func() float64 { return testutil.ToFloat64(r.s.metrics.unasked.WithLabelValues(unaskedAccount)) }
	r.compare("trial", 11)
	r.until("it is not trusted", r.is(Trusted))
	move(folder, aside)
	r.pass("a", "default", true)
	r.until("it is not said", func() bool { return unasked() == 1 })
	if asked, taught := r.counts(); asked != 11 || taught != 0 {
		t.Errorf("%d are asked, %d taught, and the account cannot be written", asked, taught)
	}
	move(aside, folder)
	failing := func() float64 { return testutil.ToFloat64(r.s.metrics.failing.WithLabelValues("account")) }
	r.until("it is not written", func() bool { return failing() == 0 })
	r.pass("b", "default", true)
	r.until("it is not asked", func() bool { _, taught := r.counts(); return taught == 1 })
}

// A verdict that could not be written is written later.
func TestAStopThatCouldNotBeWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t, ham)
	r.start(1000)
	r.stop()
	file := r.s.book.path
	r.s.policy.state, r.s.book.path = Stopped, filepath.Join(file, "below")
	if r.s.keep(); !r.s.unkept {
		t.Fatal("it is written below a file")
	}
	r.s.book.path = file
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); r.s.Run(ctx) }()
	r.until("it is not written", func() bool { return testutil.ToFloat64(r.s.metrics.failing.WithLabelValues("account")) == 0 })
	cancel()
	<-ended
	if _, a, err := openBook(file, r.url); err != nil || a.State() != Stopped {
		t.Errorf("the file has %s, %v", a.State(), err)
	}
}

// Two services do not write one account.
func TestTwoServicesOfAFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, ham)
	r.start(1)
	if _, err := New(Config{URL: r.url, File: r.file}); !errors.Is(err, lockfile.ErrLocked) {
		t.Errorf("a second one: %v", err)
	}
	r.stop()
	r.start(1)
}

// A machine that is down is not asked for a while, and its failures are no answers.
func TestAMachineThatIsDown(t *testing.T) {
	t.Parallel()
	down := true
	r := newRig(t, func(string) string {
		if down {
			return "down"
		}
		return "ham"
	})
	r.start(1000)
	r.pass("a", "default", true)
	r.label("a", "users", stream.Ham)
	failing := func(want float64) func() bool {
		return func() bool { return testutil.ToFloat64(r.s.metrics.failing.WithLabelValues("ask")) == want }
	}
	r.until("it is not said to fail", failing(1))
	r.mu.Lock()
	down = false
	r.mu.Unlock()
	n := 0
	r.until("it is not asked again", func() bool {
		if n++; n < 500 {
			id := fmt.Sprint("later", n)
			r.pass(id, "default", true)
			r.label(id, "users", stream.Ham)
		}
		return failing(0)()
	})
	if r.stop(); r.s.policy.wrong != 0 {
		t.Errorf("%d of %d are wrong", r.s.policy.wrong, r.s.policy.total)
	}
}

// An answer that the learner's log never takes is counted.
func TestALogThatRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, ham)
	r.start(1000)
	r.compare("trial", 11)
	r.until("it is not trusted", r.is(Trusted))
	r.mu.Lock()
	r.fails = fmt.Errorf("publish: %w", stream.ErrTooLarge)
	r.mu.Unlock()
	r.pass("large", "default", true)
	r.until("it is not counted", func() bool { return testutil.ToFloat64(r.s.metrics.lost) == 1 })
}

// A file that is damaged or cannot be written is an error at the start.
func TestBooks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "oracle.json")
	b, a, err := openBook(path, "http://a")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 130 {
		a.Add(n%20 == 0, n%2 == 0)
	}
	b.take(10, time.Now())
	if err := b.write(&a); err != nil {
		t.Fatal(err)
	}
	again, got, err := openBook(path, "http://a")
	if err != nil || fmt.Sprint(got) != fmt.Sprint(a) || *again != *b {
		t.Errorf("read %+v, %v; wrote %+v", got, err, a)
	}
	for _, bad := range []string{"", "{}", `{"version":2,"state":"trial"}`, `{"version":1,"state":"trial","last":"x","total":1}`,
		`{"version":1,"state":"king"}`, `{"version":1,"state":"trial","last":"rr","total":1}`, strings.Repeat(" ", 1<<20)} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := openBook(path, "http://a"); err == nil || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("%.40s: %v", bad, err)
		}
	}
	if _, _, err := openBook(filepath.Join(path, "below"), "http://a"); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("below a file: %v", err)
	}
}

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
