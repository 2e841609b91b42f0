package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hamlet/cmd/internal/service/strictness"
	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/questions"
	"hamlet/stream/servertest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// A fakeClient answers as its function says.
type fakeClient func(ctx context.Context, tenant string) (stream.Verdict, error)

func (c fakeClient) Ask(ctx context.Context, q questions.Question) ([]stream.Verdict, error) {
	v, err := c(ctx, q.Tenant)
	return []stream.Verdict{v}, err
}

// ham is a verdict.
var ham = stream.Verdict{P: .1, Interval: [2]float64{.05, .2}, Decision: stream.DecideHam, Margin: -4}

func (c fakeClient) Info(context.Context) (stream.Info, error) { return stream.Info{}, nil }

func newGateway(t testing.TB, cfg Config) *Gateway {
	t.Helper()
	cfg.Deadline, cfg.Memory = cmp.Or(cfg.Deadline, 2*time.Second), cmp.Or(cfg.Memory, 256<<20)
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

const message = "Subject: hello\n\nbody\n"

func TestScore(t *testing.T) {
	registry := prometheus.NewRegistry()
	d := newGateway(t, Config{Registerer: registry, Asker: fakeClient(func(_ context.Context, tenant string) (stream.Verdict, error) {
		v := ham
		v.ID = tenant
		return v, nil
	})}).Door("test")
	verdicts, err := d.Score(t.Context(), []string{"a", ""}, []byte(message), false)
	if err != nil || len(verdicts) != 2 || verdicts[0].ID != "a" || verdicts[1].ID != "default" {
		t.Errorf("%+v, %v", verdicts, err)
	}
	for raw, want := range map[string]error{" \n": mail.ErrEmpty, strings.Repeat("x", mail.MaxSize+1): ErrTooLarge} {
		if _, err := d.Score(t.Context(), []string{"a"}, []byte(raw), false); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", len(raw), err, want)
		}
	}
	for reason, want := range map[string]float64{passedRefused: 1, passedTooLarge: 1, passedNoAnswer: 0} {
		if got := testutil.ToFloat64(d.metrics.passed.WithLabelValues("test", reason)); got != want {
			t.Errorf("passed for %s: %v, want %v", reason, got, want)
		}
	}
}

// Who is told the answers hears of mail at a mail server's door, once for each tenant, and of
// nothing that a program asks.
func TestAnswersAreTold(t *testing.T) {
	var told []string
	d := newGateway(t, Config{
		Asker: fakeClient(func(_ context.Context, tenant string) (stream.Verdict, error) {
			if tenant == "away" {
				return stream.Verdict{}, errors.New("away")
			}
			v := ham
			v.Identity = "of-" + tenant
			return v, nil
		}),
		Answered: func(tenant string, reduced []byte, v *stream.Verdict) {
			told = append(told, tenant+" "+v.Identity+" "+string(reduced))
		},
	}).Door("test")
	_, err := d.Score(t.Context(), []string{"a", ""}, []byte(message), false)
	if _, asked := d.Ask(t.Context(), time.Now(), []string{"b"}, []byte(message), questions.Mail, false); err != nil || asked != nil {
		t.Fatal(err, asked)
	}
	if _, err := d.Score(t.Context(), []string{"a", "away"}, []byte(message), false); err == nil {
		t.Error("a half answer is one")
	}
	if want := []string{"a of-a " + message, "default of-default " + message}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// What is no verdict is no answer, and nothing of it reaches a header field.
func TestAnswersThatAreNone(t *testing.T) {
	for name, change := range map[string]func(*stream.Verdict){
		"no decision":      func(v *stream.Verdict) { v.Decision = "" },
		"another decision": func(v *stream.Verdict) { v.Decision = "ham\r\nX: y" },
		"p beyond 1":       func(v *stream.Verdict) { v.P = 1.5 },
		"p outside":        func(v *stream.Verdict) { v.P = .9 },
		"no margin":        func(v *stream.Verdict) { v.Margin = 0 },
		"spam below":       func(v *stream.Verdict) { v.Decision = stream.DecideSpam },
		"injection":        func(v *stream.Verdict) { v.Model.Name = "a\r\nX-Y: z" },
		"identity":         func(v *stream.Verdict) { v.Identity = "a; p=0" },
	} {
		d := newGateway(t, Config{Asker: fakeClient(func(context.Context, string) (stream.Verdict, error) {
			v := ham
			change(&v)
			return v, nil
		})}).Door("test")
		if v, err := d.Score(t.Context(), []string{""}, []byte(message), false); !errors.Is(err, ErrNoAnswer) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	if err := checkAnswer(nil, questions.Mail); err == nil {
		t.Error("no verdict for a message is an answer")
	}
}

// The message that is scored has no fields that a sender wrote in our name, so its identity
// is that of the message that is delivered.
func TestForgedFieldsAreNotScored(t *testing.T) {
	var scored []byte
	d := newGateway(t, Config{Asker: clientFunc(func(body []byte) { scored = body }), Marks: Marks{Tag: "[SPAM] "}}).Door("test")
	forged := "X-Hamlet: ham; p=0\nX-Hamlet-Tag: Cheap pills\nSubject: Cheap pills\n\nbody\n"
	if _, err := d.Score(t.Context(), []string{""}, []byte(forged), false); err != nil {
		t.Fatal(err)
	}
	if want := "Subject: Cheap pills\n\nbody\n"; string(scored) != want {
		t.Errorf("scored %q, want %q", scored, want)
	}
	delivered := d.Marks.Rewrite([]byte(forged), &ham)
	before, after := mail.Parse(scored), mail.Parse(append(delivered.Header, delivered.Body...))
	if mail.Identity("", &before) != mail.Identity("", &after) {
		t.Error("the delivered message has another identity")
	}
}

type clientFunc func(body []byte)

func (c clientFunc) Ask(_ context.Context, q questions.Question) ([]stream.Verdict, error) {
	c(q.Body)
	return []stream.Verdict{ham}, nil
}

func (c clientFunc) Info(context.Context) (stream.Info, error) { return stream.Info{}, nil }

// Large messages wait for each other, within the deadline; others pass them.
func TestLargeMessagesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newGateway(t, Config{Asker: clientFunc(func([]byte) {}), Deadline: time.Second}).Door("test")
		if err := d.large.Acquire(t.Context(), maxReducing); err != nil {
			t.Fatal(err)
		}
		large := []byte(message + strings.Repeat("x", largeMessage))
		score := func(message []byte) (time.Duration, error) {
			start := time.Now()
			_, err := d.Score(t.Context(), []string{""}, message, false)
			return time.Since(start), err
		}
		if took, err := score(large); !errors.Is(err, ErrMemory) || took != time.Second {
			t.Errorf("a third large message: %v after %v", err, took)
		}
		if took, err := score([]byte(message)); err != nil || took != 0 {
			t.Errorf("a small message beside large ones: %v after %v", err, took)
		}
		waiting := make(chan error)
		go func() {
			_, err := score(large)
			waiting <- err
		}()
		time.Sleep(time.Second / 2)
		d.large.Release(maxReducing)
		if err := <-waiting; err != nil {
			t.Errorf("the next large message: %v", err)
		}
	})
}

// In an outage one question has the whole deadline, the others a tenth. A late answer
// ends the outage.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var delay atomic.Int64
		delay.Store(int64(time.Hour))
		var log bytes.Buffer
		d := newGateway(t, Config{
			Deadline: time.Second, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Asker: fakeClient(func(ctx context.Context, _ string) (stream.Verdict, error) {
				select {
				case <-ctx.Done():
					return stream.Verdict{}, ctx.Err()
				case <-time.After(time.Duration(delay.Load())):
					return ham, nil
				}
			}),
		}).Door("test")
		ask := func() (time.Duration, error) {
			start := time.Now()
			_, err := d.Score(t.Context(), []string{""}, []byte(message), false)
			return time.Since(start), err
		}
		if took, err := ask(); took != time.Second || !errors.Is(err, ErrNoAnswer) {
			t.Fatalf("first question: %v, %v", took, err)
		}
		probe := make(chan time.Duration)
		go func() {
			took, _ := ask()
			probe <- took
		}()
		synctest.Wait()
		if took, err := ask(); took != time.Second/impatience || !errors.Is(err, ErrNoAnswer) {
			t.Errorf("beside the probe: %v, %v", took, err)
		}
		if took := <-probe; took != time.Second {
			t.Errorf("the probe: %v", took)
		}
		if n := strings.Count(log.String(), "messages pass unmarked"); n != 1 {
			t.Errorf("told %d times in a minute:\n%s", n, log.String())
		}
		delay.Store(int64(time.Second / 2)) // later than the impatient wait for
		if took, err := ask(); took != time.Second/2 || err != nil {
			t.Errorf("the service answers late: %v, %v", took, err)
		}
		results := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := ask()
				results <- err
			}()
		}
		if err := errors.Join(<-results, <-results); err != nil {
			t.Errorf("after the outage: %v", err)
		}
		delay.Store(int64(time.Hour))
		gone, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := d.Score(gone, []string{""}, []byte(message), false); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrNoAnswer) || d.outage.failing {
			t.Errorf("a client that goes away says something of the service: %v", err)
		}
		_, _ = ask()
		time.Sleep(time.Minute)
		_, _ = ask()
		if n := strings.Count(log.String(), "messages pass unmarked"); n != 2 {
			t.Errorf("told %d times in two minutes:\n%s", n, log.String())
		}
	})
}

// A refusal of one message is an answer: the service lives.
func TestRefusalIsNoOutage(t *testing.T) {
	d := newGateway(t, Config{Asker: fakeClient(func(context.Context, string) (stream.Verdict, error) {
		return stream.Verdict{}, &questions.Refusal{Code: questions.BadRequest, Text: "no"}
	})}).Door("test")
	if _, err := d.Score(t.Context(), []string{""}, []byte(message), false); !errors.Is(err, ErrNoAnswer) || d.outage.failing {
		t.Errorf("%v, failing %v", err, d.outage.failing)
	}
}

func TestBody(t *testing.T) {
	g := newGateway(t, Config{Asker: fakeClient(nil), Memory: 1 << 20})
	d := g.Door("test")
	hog, small := d.NewBody(), d.NewBody()
	if _, err := hog.Write(make([]byte, FreeBytes+700<<10)); err != nil {
		t.Fatal(err)
	}
	if _, err := small.Write(make([]byte, FreeBytes)); err != nil {
		t.Errorf("a small message beside the hog: %v", err)
	}
	if _, err := small.Write(make([]byte, 512<<10)); !errors.Is(err, ErrMemory) || small.Bytes() != nil || small.Err() == nil {
		t.Errorf("a large message beside the hog: %v, %d bytes", err, len(small.Bytes()))
	}
	if n, err := small.ReadFrom(bytes.NewReader(make([]byte, 100_000))); n != 100_000 || !errors.Is(err, ErrMemory) {
		t.Errorf("reading on: %d, %v", n, err)
	}
	hog.Release()
	small.Release()
	if n, err := small.ReadFrom(io.LimitReader(zeros{}, mail.MaxSize+1)); n != mail.MaxSize+1 || !errors.Is(err, ErrMemory) {
		t.Errorf("a message beyond the budget: %d, %v", n, err)
	}
	small.Release()
	if !g.Acquire(1 << 20) {
		t.Error("bytes were not given back")
	}
	g.Return(1 << 20)
	g = newGateway(t, Config{Asker: fakeClient(nil)})
	b := g.Door("test").NewBody()
	defer b.Release()
	if n, err := b.ReadFrom(io.LimitReader(zeros{}, mail.MaxSize)); n != mail.MaxSize || err != nil || len(b.Bytes()) != mail.MaxSize {
		t.Errorf("a message of the limit: %d, %v", n, err)
	}
	if _, err := b.Write([]byte{0}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a byte more: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestServe(t *testing.T) {
	d := newGateway(t, Config{Asker: fakeClient(nil), MaxConns: 2}).Door("test")
	path := filepath.Join(t.TempDir(), "door")
	l, err := Listen("unix:"+path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := Listen("unix:"+path, 0o600); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("a second listener: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- d.Serve(ctx, l, func(_ context.Context, conn net.Conn) {
			line := make([]byte, 1)
			_, _ = conn.Read(line)
			if line[0] == 'p' {
				panic("over this byte")
			}
			_, _ = conn.Write(line)
		})
	}()
	ask := func(text string) string {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		_, _ = conn.Write([]byte(text))
		answer, _ := io.ReadAll(conn)
		return string(answer)
	}
	for range 3 {
		if got := ask("p"); got != "" {
			t.Errorf("a panic answered %q", got)
		}
		if got := ask("x"); got != "x" {
			t.Errorf("after a panic: %q", got)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A socket that a killed process left behind is replaced; a file is not.
func TestStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "door")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	again, err := Listen("unix:"+path, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
	if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix:"+path, 0o660); err == nil {
		t.Error("a file was replaced")
	}
}

func TestTenants(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenants.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("default: isp\nrecipients:\n  Alice@Example.org: alice\n  \"@example.org\": example\nusers:\n  bob: bobs\ntokens:\n  SECRET: shop\nstrictness:\n  shop: {cost: 50}\n")
	tenants, err := OpenTenants(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want string }{
		{tenants.OfRecipient("<alice@EXAMPLE.org>"), "alice"},
		{tenants.OfRecipient("carol@example.org"), "example"},
		{tenants.OfRecipient("x@elsewhere.org"), "isp"},
		{tenants.OfRecipient(""), "isp"},
		{tenants.OfUser("bob"), "bobs"},
		{tenants.OfUser("alice@example.org"), "alice"},
		{tenants.OfUser("shop"), "isp"}, // a client cannot name a tenant
		{(*Tenants)(nil).OfUser("bob"), "default"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	if tenant, ok := tenants.OfToken("SECRET"); tenant != "shop" || !ok {
		t.Errorf("token: %q, %v", tenant, ok)
	}
	if _, ok := tenants.OfToken("secret"); ok {
		t.Error("another token is known")
	}
	if rules := tenants.Strictness(); rules["shop"] != (strictness.Rule{Cost: 50}) || len((*Tenants)(nil).Strictness()) > 0 {
		t.Errorf("rules: %+v", rules)
	}
	for text, want := range map[string]string{
		"users: {bob: \"b \"}": "blank",
		"users: {bob: b}\nstrictness:\n  b: {spam-at: 0.9, cost: 2}": "line 3: spam-at and cost",
		"recipient: {}":                        "recipient",
		"recipients: {bob: x}":                 "neither an address",
		"users: {bob: \"\"}":                   "empty",
		"default: " + strings.Repeat("x", 300): "bytes",
	} {
		write(text)
		if _, err := OpenTenants(path, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestLearn(t *testing.T) {
	closed := newGateway(t, Config{Asker: fakeClient(nil)}).Door("spamd")
	if err := closed.Learn(t.Context(), "default", []byte(message), LearnSpam); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("without a teacher: %v", err)
	}
	var got []stream.Event
	d := newGateway(t, Config{Asker: fakeClient(nil), Teacher: teacherFunc(func(events ...stream.Event) error {
		got = append(got, events...)
		return nil
	})}).Door("spamd")
	for _, lesson := range []Lesson{LearnSpam, LearnHam, LearnSpam, Forget} {
		if err := d.Learn(t.Context(), "acme", []byte(message), lesson); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	ids := map[string]bool{}
	for _, e := range got {
		if err := e.Validate(); err != nil {
			t.Error(err)
		}
		if !e.OwnOnly || len(e.Of) != 32 || !strings.HasPrefix(e.ID, e.Of+"/") || ids[e.ID] {
			t.Errorf("%s is about %s, only its own: %v, or has been told", e.ID, e.Of, e.OwnOnly)
		}
		ids[e.ID] = true
		told = append(told, fmt.Sprint(e.Source, e.Tenant, " ", e.Action, " ", e.Label))
	}
	want := "spamdacme correct spam, spamdacme correct ham, spamdacme correct spam, spamdacme unlearn "
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// A mail server's message and label begin a trace each, which goes on to the scoring service
// and to the learner's log. A trace that came in goes on as it is.
func TestTraces(t *testing.T) {
	const given stream.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var lines bytes.Buffer
	var asked, taught []stream.Trace
	d := newGateway(t, Config{
		Asker: fakeClient(func(ctx context.Context, _ string) (stream.Verdict, error) {
			asked = append(asked, stream.ContextTrace(ctx))
			return ham, nil
		}),
		Teacher: tracedTeacher(func(trace stream.Trace) { taught = append(taught, trace) }),
		Log:     slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}).Door("test")
	for _, ctx := range []context.Context{t.Context(), stream.WithTrace(t.Context(), given)} {
		if _, err := d.Score(ctx, []string{"a", "b"}, []byte(message), false); err != nil {
			t.Fatal(err)
		}
		if err := d.Learn(ctx, "a", []byte(message), LearnSpam); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 4 || asked[0] == "" || asked[0] != asked[1] || asked[2] != given || asked[3] != given {
		t.Errorf("asked with %q, want a new trace twice and the given one twice", asked)
	}
	if len(taught) != 2 || taught[0] == "" || taught[0] == asked[0] || taught[1] != given {
		t.Errorf("taught with %q, want another new trace and the given one", taught)
	}
	if _, err := d.Score(stream.WithTrace(t.Context(), given), []string{"a"}, nil, false); err == nil {
		t.Error("an empty message has an answer")
	}
	if want := `msg="messages pass unmarked" count=1 trace=` + given.ID() + " reason=refused door=test error="; !strings.Contains(lines.String(), want) {
		t.Errorf("no %s in\n%s", want, lines.String())
	}
	for message, traces := range map[string][]stream.Trace{"gateway: message": {asked[0], given}, "gateway: label": {taught[0], given}} {
		for _, trace := range traces {
			if !strings.Contains(lines.String(), `msg="`+message+`" trace=`+trace.ID()) {
				t.Errorf("no line %q of trace %s:\n%s", message, trace.ID(), lines.String())
			}
		}
	}
}

type tracedTeacher func(stream.Trace)

func (f tracedTeacher) Publish(ctx context.Context, _ ...stream.Event) error {
	f(stream.ContextTrace(ctx))
	return nil
}

type teacherFunc func(...stream.Event) error

func (f teacherFunc) Publish(_ context.Context, events ...stream.Event) error { return f(events...) }
