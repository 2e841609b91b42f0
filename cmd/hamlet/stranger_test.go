package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/credentials"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/testkit/await"
)

// A runningUp is a hamlet up of this test.
type runningUp struct {
	Data, NATS string

	stderr *watched
	stop   func() error
}

// A watched is what a command writes.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

var ownLine = regexp.MustCompile(`(?m)^  (log|nats) +(?:nats://)?(\S+)$`)

// startUp starts hamlet up on two texts and waits until it serves.
func startUp(t testing.TB, args ...string) *runningUp {
	t.Helper()
	file := filepath.Join(t.TempDir(), "texts")
	if err := os.WriteFile(file, []byte("spam\twin a prize\nham\tlunch on friday\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return startUpOn(t, append([]string{file, "--format=text", "--table-bits=10"}, args...)...)
}

// startUpOn starts hamlet up and waits until it serves.
func startUpOn(t testing.TB, args ...string) *runningUp {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	u := &runningUp{stderr: new(watched)}
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, append([]string{"up", "--save-every=50ms", "--listen-nats=127.0.0.1:0"}, args...),
			cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: u.stderr})
	}()
	u.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := u.stop(); err != nil {
			t.Error(err)
		}
	})
	unserved := func() string { return "up does not serve; it said:\n" + u.stderr.String() }
	await.Until(t, func() bool {
		if len(ended) > 0 {
			t.Fatal(unserved())
		}
		return strings.Contains(u.stderr.String(), "serving on")
	}, unserved)
	for _, m := range ownLine.FindAllStringSubmatch(u.stderr.String(), -1) {
		switch m[1] {
		case "log":
			u.Data = filepath.Dir(m[2])
		case "nats":
			u.NATS = m[2]
		}
	}
	return u
}

// score asks up as `hamlet score` without any flag about users. It waits as long as a slow
// machine needs.
func (u *runningUp) score(t *testing.T, more ...string) (p float64, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = run(t.Context(), append([]string{"score", "--server", "nats://" + u.NATS, "--json", "--text", "--timeout=1m", "-"}, more...),
		cli.IO{In: strings.NewReader("win a prize"), Out: &out, Err: &errs})
	if err != nil {
		return 0, errors.Join(err, errors.New(errs.String()))
	}
	var answer struct{ P float64 }
	return answer.P, json.Unmarshal(out.Bytes(), &answer)
}

// An intrusion is what a program tries that knows the addresses of a hamlet up.
type intrusion struct {
	NATS           string
	User, Password string   // there; empty: none
	Data           string   // the folder; empty: it does not try
	Files          []string // that it tries to read
}

// succeeds returns what the intruder could do.
func (i intrusion) succeeds() (done []string) {
	did := func(what string, err error) {
		if err == nil {
			done = append(done, what)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, path := range i.Files {
		f, err := os.Open(path)
		did("read "+filepath.Base(path), err)
		if err == nil {
			f.Close()
		}
	}

	if i.Data != "" {
		m, err := machine.Dial(ctx, i.Data)
		did("reach the log and the model", err)
		if err == nil {
			m.Close()
		}
	}

	quiet := natsgo.ErrorHandler(func(*natsgo.Conn, *natsgo.Subscription, error) {}) // LastError has them
	nats, err := natsgo.Connect("nats://"+i.NATS, natsgo.UserInfo(i.User, i.Password), natsgo.Timeout(30*time.Second), natsgo.MaxReconnects(0), quiet)
	if err != nil {
		return done
	}
	defer nats.Close()
	for _, subject := range []string{"hamlet.score", "hamlet.explain"} {
		_, err = nats.QueueSubscribe(subject, "hamlet", func(m *natsgo.Msg) { _ = m.Respond([]byte(`{"p":0}`)) })
		did("answer on "+subject, errors.Join(err, nats.FlushTimeout(30*time.Second), nats.LastError()))
	}
	const waiting = 30 * time.Second
	for what, subject := range map[string]string{
		"publish an alert": "hamlet.alerts.concept.default",
		"delete alerts":    "$JS.API.STREAM.DELETE.HAMLET_ALERTS",
	} {
		refused := make(chan struct{})
		nats.SetErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
			if strings.Contains(err.Error(), subject) {
				close(refused)
			}
		})
		answers := make(chan *natsgo.Msg, 1)
		inbox := natsgo.NewInbox()
		if _, err := nats.ChanSubscribe(inbox, answers); err != nil {
			panic(err)
		}
		if err := nats.PublishRequest(subject, inbox, []byte("{}")); err != nil {
			panic(err)
		}
		select {
		case m := <-answers:
			if !bytes.Contains(m.Data, []byte(`"error"`)) {
				done = append(done, what)
			}
		case <-refused:
		case <-time.After(waiting):
			done = append(done, what+": not refused")
		}
	}
	return done
}

// all is what an intruder can do where nothing is guarded.
var all = []string{
	"answer on hamlet.explain", "answer on hamlet.score", "delete alerts", "publish an alert",
}

const intrusionVariable = "HAMLET_TEST_INTRUSION"

// TestIntrude is the program of another user in TestUpTakesOnlyItsUser.
func TestIntrude(t *testing.T) {
	var i intrusion
	if err := json.Unmarshal([]byte(os.Getenv(intrusionVariable)), &i); err != nil {
		t.Skip("this is for a process of TestUpTakesOnlyItsUser")
	}
	fmt.Printf("as user %d: %q\n", os.Geteuid(), i.succeeds())
	_, err := (&runningUp{NATS: i.NATS}).score(t, "--timeout=30s") // it waits two seconds for a password, however long the timeout is
	fmt.Println("score:", err)
}

// temporary is the directory for temporary files outside ownFolders.
var temporary = os.TempDir()

// ownFolders keeps a test apart from every other `hamlet up` on this machine, which other
// tests and the user may run.
func ownFolders(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
}

// otherUser is nobody on most systems; it has no files.
const otherUser = 65534

// intrudeAsAnotherUser runs TestIntrude as another user.
func intrudeAsAnotherUser(t *testing.T, i intrusion) (said string) {
	t.Helper()
	// The other user may enter neither the directory of the test's program nor
	// t.TempDir.
	dir, err := os.MkdirTemp(temporary, "hamlet-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "program")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err == nil {
		err = errors.Join(os.WriteFile(program, b, 0o755), os.Chmod(program, 0o755), os.Chmod(dir, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	what, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-test.run=^TestIntrude$")
	cmd.Dir = "/"
	cmd.Env = []string{intrusionVariable + "=" + string(what), "XDG_RUNTIME_DIR=" + os.Getenv("XDG_RUNTIME_DIR")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("user %d cannot start a program in %s: %v", otherUser, dir, err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// Nobody but the user who runs up reaches its servers: other users, and programs with
// no, a wrong or the lesser password, read no mail, write no label, wipe nothing and
// answer nothing. The user's own programs need no flag.
func TestUpTakesOnlyItsUser(t *testing.T) {
	ownFolders(t)
	data := t.TempDir()
	u := startUp(t, "--data", data)
	other := startUp(t) // in memory, with passwords of its own

	running := credentials.Running()
	k := slices.IndexFunc(running, func(a credentials.Access) bool { return a.NATS.Addr == u.NATS })
	if len(running) != 2 || k < 0 {
		t.Fatalf("%d ups are announced", len(running))
	}
	access := running[k]
	files, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "hamlet", "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	files = append(files, filepath.Join(data, credentials.FileName))
	for _, path := range files {
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}

	at := intrusion{NATS: u.NATS}
	var intruders sync.WaitGroup
	for name, user := range map[string]credentials.Login{
		"nobody":              {},
		"a wrong password":    {User: credentials.ServiceUser, Password: "wrong"},
		"the other up's user": {User: credentials.ServiceUser, Password: running[1-k].NATS.Password},
		"who may only ask":    {User: credentials.AskerUser, Password: access.Asker.Password},
		"the lesser password": {User: credentials.ServiceUser, Password: access.Asker.Password},
		"the user default":    {User: "default", Password: access.Asker.Password},
	} {
		i := at
		i.User, i.Password = user.User, user.Password
		intruders.Go(func() {
			if got := i.succeeds(); len(got) > 0 {
				t.Errorf("%s can %q", name, got)
			}
		})
	}
	intruders.Wait()
	t.Run("another user", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can start a process of another user")
		}
		i := at
		i.Files, i.Data = files, data
		said := intrudeAsAnotherUser(t, i)
		if want := fmt.Sprintf("as user %d: []", otherUser); !strings.Contains(said, want) ||
			!strings.Contains(said, "Authorization Violation") || !strings.Contains(said, "hamlet env") {
			t.Errorf("the other user's program said:\n%s\nwant %q, and a score refused with advice", said, want)
		}
	})

	for _, u := range []*runningUp{u, other, u} {
		for range 10 {
			if p, err := u.score(t); err != nil || p < .5 {
				t.Fatalf("score at %s: %v, %v", u.NATS, p, err)
			}
		}
	}

	// No log tells a password, and they are the same after a restart.
	for _, a := range running {
		for _, l := range []credentials.Login{a.NATS, a.Asker} {
			if len(l.Password) < 20 || strings.Contains(u.stderr.String()+other.stderr.String(), l.Password) {
				t.Errorf("the password %q is short, or on standard error", l.Password)
			}
		}
	}
	if err := u.stop(); err != nil {
		t.Error(err)
	}
	if left := credentials.Running(); len(left) != 1 || left[0] != running[1-k] {
		t.Errorf("after the end of one, %d are announced", len(left))
	}
	passwords, err := credentials.InDir(data)
	if err != nil || passwords.NATS != access.NATS.Password || passwords.Asker != access.Asker.Password {
		t.Errorf("in --data are other passwords: %v", err)
	}
	again := startUp(t, "--data", data)
	if p, err := again.score(t); err != nil || p < .5 {
		t.Errorf("score after a restart: %v, %v", p, err)
	}
}

// With --open everything is possible to everybody, and up says so. This is also the
// test of the intruder above.
func TestOpenUp(t *testing.T) {
	ownFolders(t)
	u := startUp(t, "--open")
	if p, err := u.score(t); err != nil || p < .5 {
		t.Errorf("score: %v, %v", p, err)
	}
	got := intrusion{NATS: u.NATS}.succeeds()
	slices.Sort(got)
	if !slices.Equal(got, all) {
		t.Errorf("everybody can %q,\nwant %q", got, all)
	}
	if !strings.Contains(u.stderr.String(), "because of --open everybody") {
		t.Errorf("up said:\n%s", u.stderr.String())
	}
	if running := credentials.Running(); len(running) != 1 || running[0].NATS.Addr != "" || running[0].Data != u.Data {
		t.Errorf("announced: %+v", running)
	}
}

// 0.1.0 had a Kafka and a Redis. Who looks for them where nobody listens, or at the NATS of a running hamlet up,
// is told where its log and models are.
func TestUpHasNoServers(t *testing.T) {
	ownFolders(t)
	a, err := credentials.Announce()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	const nats, nobody = "127.0.0.1:3", "127.0.0.1:1"
	if err := a.Set(credentials.Access{PID: 7, Data: "/d", NATS: credentials.Login{Addr: nats}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program string
		args    []string
	}{
		{"hamlet", []string{"model", "list", "--redis", nobody}},
		{"hamlet", []string{"model", "list", "--redis", nats}},
		{"hamlet", []string{"log", "show", "events", "--kafka", nobody}},
		{"hamlet", []string{"log", "show", "events", "--kafka", nats}},
		{"hamlet", []string{"up", "--kafka", nats, "--once"}},
		{"hamlet-ingest", []string{"--kafka", nobody, "--format=text", "-"}},
		{"hamlet-ingest", []string{"--kafka", nats, "--format=text", "-"}},
		{"hamlet-learner", []string{"--kafka", nobody, "--redis", nobody}},
		{"hamlet-learner", []string{"--kafka", nobody, "--redis", nats}},
		{"hamlet-scorer", []string{"--nats", "nats://" + nobody, "--redis", nats}},
	} {
		_, start := programOf(c.program)
		err := start(t.Context(), c.args, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if err == nil || !strings.Contains(err.Error(), "has no Kafka and no Redis: leave --kafka and --redis out, or say --data /d") {
			t.Errorf("%s %q: %v", c.program, c.args, err)
		}
	}
}

// env prints what programs read, with the user that suits each.
func TestEnv(t *testing.T) {
	ownFolders(t)
	env := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"env"}, args...), cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard})
		return out.String(), err
	}
	if _, err := env(); err == nil || !strings.Contains(err.Error(), "no `hamlet up` of this user runs") {
		t.Errorf("without an up: %v", err)
	}
	set := func(access credentials.Access) {
		t.Helper()
		a, err := credentials.Announce()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		if err := a.Set(access); err != nil {
			t.Fatal(err)
		}
	}
	set(credentials.Access{
		PID: 7, Data: "/d",
		NATS: credentials.Login{Addr: "127.0.0.1:3", User: "hamlet", Password: "N"}, Asker: credentials.Login{Addr: "127.0.0.1:3", User: "client", Password: "A"},
	})
	want := `export HAMLET_DATA='/d'
export HAMLET_NATS='nats://127.0.0.1:3'
export HAMLET_NATS_USER='hamlet'
export HAMLET_NATS_PASSWORD='N'
export NATS_URL='nats://127.0.0.1:3'
export NATS_USER='client'
export NATS_PASSWORD='A'
`
	if got, err := env(); err != nil || got != want {
		t.Errorf("env: %v\n%s\nwant\n%s", err, got, want)
	}
	set(credentials.Access{PID: 8, NATS: credentials.Login{Addr: "127.0.0.1:4", User: "hamlet", Password: "N4"}, Asker: credentials.Login{Addr: "127.0.0.1:4", User: "client", Password: "A4"}})
	if _, err := env(); cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), "127.0.0.1:4") {
		t.Errorf("of two: %v", err)
	}
	if _, err := env("127.0.0.1:5"); err == nil || !strings.Contains(err.Error(), "listens at 127.0.0.1:5") {
		t.Errorf("of none: %v", err)
	}
	text, err := env("nats://127.0.0.1:4", "--for=json")
	var object map[string]json.RawMessage
	if err := errors.Join(err, json.Unmarshal([]byte(text), &object)); err != nil || len(object) != 3 ||
		!strings.Contains(string(object["nats_client"]), `"url": "nats://client:A4@127.0.0.1:4"`) {
		t.Errorf("in JSON: %v, %s", err, text)
	}
}
