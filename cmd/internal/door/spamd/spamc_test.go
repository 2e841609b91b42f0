package spamd

import (
	"bytes"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/testkit/debian"
)

// spamc runs Debian's spamc with that message, and returns its output and exit code. With a
// Unix socket (-U) it has the recipe of deploy/mail, too.
func spamc(t testing.TB, message string, args ...string) (string, int) {
	t.Helper()
	recipe := "/dev/null"
	if args[0] == "-U" {
		recipe = "../../../../deploy/mail/spamc.conf"
	}
	cmd := debian.Command(t, "spamc", "spamc", append([]string{"-F", recipe, "-l"}, args...)...)
	cmd.Stdin = strings.NewReader(message)
	var errout bytes.Buffer
	cmd.Stderr = &errout
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if errout.Len() > 0 {
		t.Logf("spamc %s: %s", strings.Join(args, " "), errout.Bytes())
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestSpamc asks by each way that Debian's spamc has. It is built without -z.
func TestSpamc(t *testing.T) {
	debian.Tree(t, "spamc")
	taught := &teacher{}
	d := open(t, gateway.Config{Teacher: taught})
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.serve(t, tcp)

	spamAfter := marked + strings.Replace(spamMail, "X-Hamlet: ham; p=0.0000\r\n", "", 1)
	lostAfter := strings.Replace(lostMail, "X-hamlet: ham\n", "", 1)
	explained := spam
	explained.Reasons, explained.Words = reasons, words
	scored := reportText(&explained)
	for _, test := range []struct {
		args, message, want string
		code                int
	}{
		{"", spamMail, spamAfter, 0},
		{"-E", spamMail, spamAfter, 1},
		{"-x", spamMail, spamAfter, 0},
		{"--headers", spamMail, spamAfter, 0},
		{"--headers -E", spamMail, spamAfter, 1},
		{"-c", spamMail, "7.1/5.0\n", 1},
		{"-c", hamMail, "-1.0/5.0\n", 0},
		{"-y", spamMail, "HAMLET_SPAM", 0},
		{"-y", hamMail, "HAMLET_HAM", 0},
		{"-R", spamMail, "7.1/5.0\n" + scored, 0},
		{"-r", spamMail, "7.1/5.0\n" + scored, 0},
		{"-r", hamMail, "", 0},
		{"-L spam", spamMail, "Message successfully un/learned\n", 0},
		{"-L ham", hamMail, "Message successfully un/learned\n", 0},
		{"-L forget", hamMail, "Message successfully un/learned\n", 0},
		{"-K", "", "SPAMD/1.5 0\n", 0},
		{"-u alice", hamMail, "X-Hamlet: ham; p=0.0213; lo=0.0101; hi=0.0452; model=default/0123456789ab\n" + hamMail, 0},

		{"-x", lostMail, lostAfter, 0},
		{"-E --headers", lostMail, lostAfter, 0},
		{"-c", lostMail, "0.0/5.0\n", 0},
	} {
		for _, to := range [][]string{{"-U", d.addr}, {"-d", "127.0.0.1", "-p", strconv.Itoa(tcp.Addr().(*net.TCPAddr).Port)}} {
			got, code := spamc(t, test.message, append(to, strings.Fields(test.args)...)...)
			if got != test.want || code != test.code {
				t.Errorf("spamc %s %s of %.40q\n got %q, exit %d\nwant %q, exit %d", to, test.args, test.message, got, code, test.want, test.code)
			}
		}
	}
	var labels []string
	for _, e := range taught.taught(nil) {
		labels = append(labels, strings.TrimSpace(e.Action.String()+" "+e.Label.String()))
	}
	const want = "correct spam, correct spam, correct ham, correct ham, unlearn, unlearn" // by both ways
	if got := strings.Join(labels, ", "); got != want {
		t.Errorf("taught %s, want %s", got, want)
	}
}

// TestSpamcNotAllowed checks that spamc says that nothing was learnt.
func TestSpamcNotAllowed(t *testing.T) {
	debian.Tree(t, "spamc")
	d := open(t, gateway.Config{})
	if out, code := spamc(t, spamMail, "-U", d.addr, "-L", "spam"); code == 0 {
		t.Errorf("got %q, exit 0, want an error", out)
	}
}

// TestSpamcAlone checks what spamc does without us: the message passes, unless -x.
func TestSpamcAlone(t *testing.T) {
	debian.Tree(t, "spamc")
	to := []string{"-U", filepath.Join(t.TempDir(), "nobody")}
	for _, test := range []struct {
		args, want string
		code       int
	}{
		{"", spamMail, 0},
		{"--headers", spamMail, 0},
		{"-E", spamMail, 0},
		{"-c", "0/0\n", 0},
	} {
		if got, code := spamc(t, spamMail, append(to, strings.Fields(test.args)...)...); got != test.want || code != test.code {
			t.Errorf("spamc %s: got %q, exit %d, want %q, exit %d", test.args, got, code, test.want, test.code)
		}
	}
	if out, code := spamc(t, spamMail, append(to, "-x")...); code == 0 || out != "" {
		t.Errorf("spamc -x: got %q, exit %d, want an error and nothing else", out, code)
	}
}
