package browser

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var binary struct {
	sync.Once
	dir string
	err error
}

func TestMain(m *testing.M) {
	status := m.Run()
	if binary.dir != "" {
		_ = os.RemoveAll(binary.dir)
	}
	os.Exit(status)
}

// hamlet returns the path of hamlet, which it builds once.
func hamlet(t *testing.T) string {
	t.Helper()
	binary.Do(func() {
		if binary.dir, binary.err = os.MkdirTemp("", "hamlet-browser-"); binary.err != nil {
			return
		}
		if out, err := exec.Command("go", "build", "-o", binary.dir, "hamlet/cmd/hamlet").CombinedOutput(); err != nil {
			binary.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if binary.err != nil {
		t.Fatal(binary.err)
	}
	return filepath.Join(binary.dir, "hamlet")
}

// A rig is a running `hamlet up --console` with a home of its own.
type rig struct {
	t      *testing.T
	home   string
	origin string // of the console
	link   string // that logs in once; empty with users
	nats   string

	said *output
}

// An output is what a program says while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// users are the users of a rig, their roles and their password.
var users = map[string]string{"looker": "look", "labeller": "label", "boss": "label,operate"}

const password = "correct horse battery staple"

var (
	consoleLine = regexp.MustCompile(`(?m)^  console (http://127\.0\.0\.1:\d+)$`)
	linkLine    = regexp.MustCompile(`(?m)^ +the link in (\S+) logs you in`)
	natsLine    = regexp.MustCompile(`(?m)^  nats +(nats://\S+)$`)
)

// startUp starts hamlet up with a console, and waits until it serves.
func startUp(t *testing.T, args ...string) *rig {
	t.Helper()
	r := &rig{t: t, home: t.TempDir(), said: new(output)}
	r.start(args...)
	return r
}

// withUsers starts hamlet up with a console whose users have names and passwords.
func withUsers(t *testing.T, args ...string) *rig {
	t.Helper()
	r := &rig{t: t, home: t.TempDir(), said: new(output)}
	var lines []byte
	for name, roles := range users {
		lines = append(lines, r.run(password+"\n", "console", "user", name, "--roles", roles)...)
	}
	file := filepath.Join(r.home, "users")
	if err := os.WriteFile(file, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	r.start(append(args, "--console-users", file)...)
	return r
}

func (r *rig) start(args ...string) {
	t := r.t
	t.Helper()
	cmd := r.command(context.Background(), append([]string{"up", "--listen-nats", "127.0.0.1:0", "--save-every", "200ms",
		"--console", "127.0.0.1:0", "--keep-mail", "1"}, args...)...)
	cmd.Stdout, cmd.Stderr = r.said, r.said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("up: %v", err)
			}
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			t.Error("up does not end")
		}
		if t.Failed() {
			t.Logf("up said:\n%s", r.said)
		}
	})
	for end := time.Now().Add(patience); !strings.Contains(r.said.String(), "serving on"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) || len(ended) > 0 {
			t.Fatalf("up does not serve; it said:\n%s", r.said)
		}
	}
	at, nats := consoleLine.FindStringSubmatch(r.said.String()), natsLine.FindStringSubmatch(r.said.String())
	if at == nil || nats == nil {
		t.Fatalf("up names no console or no NATS:\n%s", r.said)
	}
	r.origin, r.nats = at[1], nats[1]
	r.link = r.newestLink()
}

// newestLink returns the path of the last link that up has made, "" if it makes none. The link
// itself stands in a file, as up writes to no terminal.
func (r *rig) newestLink() string {
	r.t.Helper()
	file := linkLine.FindStringSubmatch(r.said.String())
	if file == nil {
		return ""
	}
	text, err := os.ReadFile(file[1])
	link, ok := strings.CutPrefix(strings.TrimSpace(string(text)), r.origin)
	if err != nil || !ok {
		r.t.Fatalf("%s: %q, %v; want a link to %s", file[1], text, err, r.origin)
	}
	return link
}

// badFeed starts hamlet up on 1,500 synthetic mails. From mail 1,200 on, the source user-reports says spam for
// ham and ham for spam. An incident follows at about 1,240, which names it at about 1,380.
func badFeed(t *testing.T) *rig {
	t.Helper()
	return startUp(t, "--generate", "1500", "--bad-feed", "1200", "--bad-feed-rate", "1")
}

// command returns a hamlet that knows the rig's home, and so the addresses and passwords of
// its embedded servers.
func (r *rig) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, hamlet(r.t), args...)
	cmd.Env = append(os.Environ(), "HOME="+r.home, "XDG_CACHE_HOME="+r.home, "XDG_CONFIG_HOME="+r.home, "XDG_RUNTIME_DIR="+r.home, "XDG_STATE_HOME="+r.home)
	return cmd
}

// run runs a command of hamlet to its end and returns what it printed.
func (r *rig) run(stdin string, args ...string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := r.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		r.t.Fatalf("hamlet %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

// score asks about messages over NATS, as a mail server does, and returns what hamlet score
// printed.
func (r *rig) score(messages ...string) string {
	r.t.Helper()
	args := []string{"score", "--server", r.nats, "--json"}
	dir := r.t.TempDir()
	for i, m := range messages {
		file := filepath.Join(dir, fmt.Sprintf("%d.eml", i))
		if err := os.WriteFile(file, []byte(m), 0o600); err != nil {
			r.t.Fatal(err)
		}
		args = append(args, file)
	}
	return r.run("", args...)
}

// enter logs in by the link, as somebody who may do everything.
func (r *rig) enter(b *tab) {
	r.t.Helper()
	b.open(r.link)
	b.press("Log in")
	b.await("the first page", `location.pathname === "/"`)
}

// logIn logs a user in by name and password.
func (r *rig) logIn(b *tab, name, password string) {
	r.t.Helper()
	b.open("/login")
	b.do(chromedp.SetValue(chromedp.CSS("#name"), name), chromedp.SendKeys(chromedp.CSS("#password"), password))
	b.press("Log in")
}
