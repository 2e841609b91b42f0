package rspamd

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"hamlet/cmd/internal/debian"
	"hamlet/cmd/internal/gateway"
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
	b := open(t, gateway.Config{Client: c, Tenants: tenants(t)}, scan)
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
	b := open(t, gateway.Config{Client: spam(), Teacher: school}, controllerDoor)
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

	b = open(t, gateway.Config{Client: spam()}, controllerDoor)
	printed, status = b.rspamc(message, "-P", "secret", "learn_spam")
	b.shows(printed, status, 1, "Unauthorized")
}

func TestExim(t *testing.T) {
	c := spam()
	b := open(t, gateway.Config{Client: c, Tenants: tenants(t)}, scan)
	host, port, _ := strings.Cut(b.addr, ":")
	exim := debian.NewExim(t, host+" "+port+" variant=rspamd", `
  warn spam = nobody
       add_header = X-Spam: yes
  warn spam = nobody:true
       add_header = X-Score: $spam_score; $spam_action
       add_header = ${sg{$spam_report}{\N(?s)^.*X-Milter-Add: (X-Hamlet)\[0\]: ([^\n]*)\n.*$\N}{\$1: \$2}}
`)
	mail := strings.ReplaceAll(message, "\r\n", "\n")
	delivered, said := exim.Send(mail, "x@a", "y@b")
	for _, want := range []string{"X-Spam: yes\n", "X-Score: 19.3; add header\n", "X-Hamlet: spam; p=0.9987;", "\n\nbuy now\n"} {
		if !strings.Contains(string(delivered), want) {
			t.Errorf("%q is missing in\n%s\n%s", want, delivered, said)
		}
	}
	if got := strings.Join(c.seen(), " "); got != "a b" { // the second condition uses the first one's answer
		t.Errorf("asked for %s", got)
	}
	c.err = errors.New("no responders")
	delivered, said = exim.Send(mail, "x@a")
	if !strings.Contains(string(delivered), "X-Score: 0.0; no action\n") || strings.Contains(string(delivered), "X-Spam: yes") {
		t.Errorf("scorer absent:\n%s\n%s", delivered, said)
	}
	b.stop()
	if err := <-b.done; err != nil {
		t.Fatal(err)
	}
	b.done <- nil
	delivered, said = exim.Send(mail, "x@a")
	if !strings.Contains(string(delivered), "\n\nbuy now\n") || strings.Contains(string(delivered), "X-S") {
		t.Errorf("hamlet absent:\n%s\n%s", delivered, said)
	}
}
