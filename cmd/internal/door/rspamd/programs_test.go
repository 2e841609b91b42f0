package rspamd

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/testkit/debian"
	"hamlet/stream"
)

// These tests run Debian's programs against a door on loopback.

// rspamc runs rspamc against the door. It returns what it printed and its exit status.
func (b *bench) rspamc(input string, args ...string) (string, int) {
	b.Helper()
	cmd := debian.Command(b.T, "rspamd", "rspamc", append([]string{"-h", b.addr, "-t", "30"}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.Fatal(err)
	}
	return printed.String(), cmd.ProcessState.ExitCode()
}

// shows fails the test if a program did not print all of lines, or had another status.
func (b *bench) shows(printed string, status, wantStatus int, lines ...string) {
	b.Helper()
	for _, line := range lines {
		if !strings.Contains(printed, line) {
			b.Errorf("%q is missing in\n%s", line, printed)
		}
	}
	if status != wantStatus {
		b.Errorf("exit status %d, want %d:\n%s", status, wantStatus, printed)
	}
}

func TestRspamcScans(t *testing.T) {
	c := spam()
	b := open(t, gateway.Config{Asker: c, Tenants: tenants(t)}, scan)
	for _, options := range [][]string{{}, {"--compressed"}} {
		printed, status := b.rspamc(message, append(options, "-r", "x@a", "-r", "y@b", "-i", "192.0.2.1", "symbols")...)
		b.shows(printed, status, 0, "Action: add header\nSpam: true\nScore: 19.32 / 15.00\n",
			"Symbol: HAMLET_SPAM (19.32)[p=0.9987, lo=0.9921, hi=0.9998]", "Message-ID: a@b")
	}
	if got := strings.Join(c.seen(), " "); got != "a b a b" {
		t.Errorf("asked for %s", got)
	}
	printed, status := b.rspamc(message, "--mime")
	b.shows(printed, status, 0, "X-Spam: yes\r\nX-Spam-Action: add header\r\nX-Spam-Score: 19.32 / 15.00", "X-Spam-Symbols: HAMLET_SPAM", "\r\n\r\nbuy now")
	c.err = errors.New("no responders")
	printed, status = b.rspamc(message)
	b.shows(printed, status, 0, "Action: no action\nSpam: false\nScore: 0.00 / 15.00\n", "Symbol: HAMLET_UNAVAILABLE (0.00)")
	printed, _ = b.rspamc(message, "-j", "--compact")
	b.shows(printed, 0, 0, `"is_skipped":true`)
}

func TestRspamcTeaches(t *testing.T) {
	school := &teacher{}
	b := open(t, gateway.Config{Asker: spam(), Teacher: school}, controllerDoor)
	printed, status := b.rspamc(message, "-P", "secret", "learn_spam")
	b.shows(printed, status, 0, "success = true")
	printed, status = b.rspamc(message, "-P", "secret", "learn_ham")
	b.shows(printed, status, 0, "success = true")
	if len(school.events) != 2 || school.events[0].Label != stream.Spam || school.events[1].Label != stream.Ham {
		t.Errorf("%+v", school.events)
	}
	printed, status = b.rspamc(message, "-P", "wrong", "learn_spam")
	b.shows(printed, status, 1, "Unauthorized")
	printed, status = b.rspamc("", "-P", "secret", "stat")
	b.shows(printed, status, 0, "Messages learned: 2\n", "Statfile: HAMLET type: default;", "Total learns: 1234\n")

	b = open(t, gateway.Config{Asker: spam()}, controllerDoor)
	printed, status = b.rspamc(message, "-P", "secret", "learn_spam")
	b.shows(printed, status, 1, "Unauthorized")
}

func TestExim(t *testing.T) {
	c := spam()
	b := open(t, gateway.Config{Asker: c, Tenants: tenants(t)}, scan)
	host, port, _ := strings.Cut(b.addr, ":")
	recipe, err := os.ReadFile("../../../../deploy/mail/exim-rspamd.acl")
	if err != nil {
		t.Fatal(err)
	}
	exim := debian.NewExim(t, host+" "+port+" variant=rspamd", string(recipe))
	mail := "X-Hamlet: ham; forged\nX-Spam-Flag: NO\n" + strings.ReplaceAll(message, "\r\n", "\n")
	delivered, said := exim.Send(mail, "x@a", "y@b")
	for _, want := range []string{"X-Spam-Flag: YES\n", "X-Spam-Score: 19.3 (add header)\n", "\nX-Hamlet: spam; p=0.9987;", "\n\nbuy now\n"} {
		if !strings.Contains(string(delivered), want) {
			t.Errorf("%q is missing in\n%s\n%s", want, delivered, said)
		}
	}
	if strings.Contains(string(delivered), "forged") || strings.Contains(string(delivered), "X-Spam-Flag: NO") {
		t.Errorf("fields from outside stay:\n%s", delivered)
	}
	if got := strings.Join(c.seen(), " "); got != "a b" { // the second condition uses the first one's answer
		t.Errorf("asked for %s", got)
	}
	c.err = errors.New("no responders")
	delivered, said = exim.Send(mail, "x@a")
	if !strings.Contains(string(delivered), "\n\nbuy now\n") || strings.Contains(string(delivered), "\nX-") {
		t.Errorf("scorer absent:\n%s\n%s", delivered, said)
	}
	b.stop()
	if err := <-b.done; err != nil {
		t.Fatal(err)
	}
	b.done <- nil
	delivered, said = exim.Send(mail, "x@a")
	if !strings.Contains(string(delivered), "\n\nbuy now\n") || strings.Contains(string(delivered), "\nX-") {
		t.Errorf("hamlet absent:\n%s\n%s", delivered, said)
	}
}

// rspamdConf is a whole configuration: one worker, one symbol that rspamd always finds,
// hamlet's module, and no server of names.
const rspamdConf = `
options {
  pidfile = "$RUNDIR/pid"; tempdir = "$RUNDIR"; cache_file = "$DBDIR/cache"; hs_cache_dir = "$DBDIR";
  url_tld = "$RUNDIR/tld"; filters = ""; local_addrs = []; dns { nameserver = ["127.0.0.1:1"]; }
}
logging { type = "console"; level = "info"; }
actions { reject = 15; add_header = 6; }
worker "normal" { bind_socket = "$RUNDIR/rspamd.sock mode=0666"; count = 1; }
modules { path = "$MODULE"; }
lua = "$RUNDIR/always.lua";
hamlet { url = "$URL"; timeout = 20s; offset = 6; least = -5; }
`

// startRspamd starts a real rspamd with deploy/rspamd/hamlet.lua, which asks the address
// hamlet. It returns the path of its socket.
func startRspamd(t *testing.T, hamlet string) string {
	t.Helper()
	share := filepath.Join(debian.Tree(t, "rspamd"), "usr/share/rspamd")
	module, err := filepath.Abs("../../../../deploy/rspamd/hamlet.lua")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"conf":       rspamdConf,
		"tld":        "example\n",
		"always.lua": "rspamd_config:register_symbol{name = 'ALWAYS', callback = function() return true end, score = 1}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--no-fork", "--insecure", "--config", filepath.Join(dir, "conf")}
	for name, value := range map[string]string{
		"RUNDIR": dir, "DBDIR": dir, "LOGDIR": dir, "CONFDIR": dir, "LOCAL_CONFDIR": dir,
		"SHAREDIR": share, "LUALIBDIR": share + "/lualib", "RULESDIR": share + "/rules", "PLUGINSDIR": share + "/plugins",
		"MODULE": module, "URL": "http://" + hamlet + "/checkv2",
	} {
		args = append(args, "--var", name+"="+value)
	}
	cmd := debian.Command(t, "rspamd", "rspamd", args...)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("rspamd said\n%s", text)
		}
	})
	socket := filepath.Join(dir, "rspamd.sock")
	for end := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
			return socket
		}
		if time.Now().After(end) {
			t.Fatalf("rspamd does not listen: %v", err)
		}
	}
}

func TestRspamdModule(t *testing.T) {
	c := spam()
	b := open(t, gateway.Config{Asker: c, Tenants: tenants(t)}, scan)
	asked := *b
	asked.addr = startRspamd(t, b.addr)
	printed, status := asked.rspamc(message, "-r", "x@a", "-r", "y@b")
	asked.shows(printed, status, 0, "Action: add header\n", "Score: 11.32 / 15.00\n", "Symbol: ALWAYS (1.00)", "Symbol: HAMLET (10.32)[spam, p=0.9987, lo=0.9921, hi=0.9998]")
	if got := strings.Join(c.seen(), " "); got != "a b" {
		t.Errorf("asked for %s", got)
	}
	many := []string{"-r", "x@a"}
	for i := range 1000 {
		many = append(many, "-r", fmt.Sprintf("%d@%s.example", i, strings.Repeat("x", 60)))
	}
	printed, status = asked.rspamc(message, many...)
	asked.shows(printed, status, 0, "Symbol: HAMLET (10.32)[spam, ")
	if got := strings.Join(c.seen(), " "); got != "a b a isp" {
		t.Errorf("asked for %s", got)
	}
	c.mu.Lock()
	c.tenants = c.tenants[:2]
	c.verdicts[""] = verdict(stream.DecideHam, -20)
	c.mu.Unlock()
	printed, status = asked.rspamc(message, "-d", "z@c", "-r", "x@a")
	asked.shows(printed, status, 0, "Score: -4.00 / 15.00\n", "Symbol: HAMLET (-5.00)[ham, ")
	if got := strings.Join(c.seen(), " "); got != "a b c" {
		t.Errorf("asked for %s", got)
	}
	c.mu.Lock()
	c.err = errors.New("no responders")
	c.mu.Unlock()
	printed, status = asked.rspamc(message)
	asked.shows(printed, status, 0, "Score: 1.00 / 15.00\n", "Symbol: HAMLET_UNAVAILABLE (0.00)[no answer from the scoring service]")
	b.stop()
	if err := <-b.done; err != nil {
		t.Fatal(err)
	}
	b.done <- nil
	printed, status = asked.rspamc(message)
	asked.shows(printed, status, 0, "Score: 1.00 / 15.00\n", "Symbol: HAMLET_UNAVAILABLE (0.00)")
}
