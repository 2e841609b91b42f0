package learn

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hamlet/cmd/internal/testkit/debian"
)

const deployed = "../../../../deploy/dovecot"

// A dovecot is a private Dovecot with the files of deploy/dovecot, and one user.
type dovecot struct {
	t   *testing.T
	dir string // all users may write here
}

// newDovecot returns a Dovecot whose hamlet-learn asks the service at url.
func newDovecot(t *testing.T, url string) *dovecot {
	t.Helper()
	debian.Tree(t, "dovecot-imapd")         // or the test is skipped
	dir, err := os.MkdirTemp("", "dovecot") // its user must get there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &dovecot{t, dir}
	for _, name := range []string{"", "told", "home", "run", "bin"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	here := strings.NewReplacer("/etc/dovecot", dir, "/etc/hamlet", dir, "/var/lib", dir, "http://127.0.0.1:9100", url,
		"/usr/lib/dovecot/sieve-pipe", dir+"/bin", "exec hamlet", "exec "+dir+"/bin/hamlet")
	settings := `
base_dir = ` + dir + `/run
state_dir = ` + dir + `/run
mail_location = maildir:` + dir + `/home/Maildir
log_path = /dev/stderr
ssl = no
namespace inbox {
  inbox = yes
  mailbox Junk {
    auto = create
  }
  mailbox Trash {
    auto = create
  }
  mailbox Papierkorb {
    auto = create
    special_use = \Trash
  }
}
`
	for name, mode := range map[string]os.FileMode{"dovecot.conf": 0o644, "learn-spam.sieve": 0o644, "learn-ham.sieve": 0o644, "hamlet-learn": 0o755} {
		text, err := os.ReadFile(filepath.Join(deployed, name))
		if err != nil {
			t.Fatal(err)
		}
		to := name
		if name == "hamlet-learn" {
			to = "bin/" + name
		}
		d.write(to, here.Replace(map[bool]string{true: settings}[name == "dovecot.conf"]+string(text)), mode)
	}
	return d
}

func (d *dovecot) write(name, text string, mode os.FileMode) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), mode); err != nil {
		d.t.Fatal(err)
	}
}

// asUser returns a command of the user.
func (d *dovecot) asUser(program string, args ...string) *exec.Cmd {
	d.t.Helper()
	cmd := debian.OverAll(d.t, []string{"dovecot-imapd", "dovecot-sieve"}, "setpriv",
		append([]string{"--reuid=nobody", "--regid=nogroup", "--clear-groups", program}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+d.dir+"/home", "USER=nobody")
	return cmd
}

// session runs an IMAP session of the user: messages go into folders, then come commands. All
// are answered as OK. It returns what Dovecot said and logged.
func (d *dovecot) session(into [][2]string, commands ...string) string {
	d.t.Helper()
	var session bytes.Buffer
	for i, m := range into {
		fmt.Fprintf(&session, "a%d APPEND %s {%d+}\r\n%s\r\n", i, m[0], len(m[1]), m[1])
	}
	for i, command := range commands {
		fmt.Fprintf(&session, "b%d %s\r\n", i, command)
	}
	cmd := d.asUser("/usr/lib/dovecot/imap", "-c", filepath.Join(d.dir, "dovecot.conf"))
	cmd.Stdin = &session
	out, err := cmd.CombinedOutput()
	for i := range commands {
		if err != nil || !strings.Contains(string(out), fmt.Sprintf("b%d OK", i)) {
			d.t.Errorf("command %d: %v:\n%s", i, err, out)
		}
	}
	return string(out)
}

// A user moves a message into Junk, out of it, and a copy into Junk again, and throws another
// away: into the trash by its names, by its mark, and into a folder below Junk. Dovecot starts the program of deploy/dovecot for each move, and for nothing else, and
// what it gives to hamlet learn changes the next answer.
func TestDovecot(t *testing.T) {
	d := newDovecot(t, "http://127.0.0.1:9100")
	// In the place of hamlet a program that keeps what it is told.
	d.write("bin/hamlet", fmt.Sprintf("#!/bin/sh\nf=%s/told/$(ls %[1]s/told | wc -l)\n{ echo \"$@\"; cat; } > $f\n", d.dir), 0o755)
	other := strings.ReplaceAll(letter, "1@", "2@")
	out := d.session([][2]string{{"INBOX", letter}, {"Junk", other}},
		"SELECT INBOX", "MOVE 1 Junk", // spam
		"SELECT Junk", "MOVE 2 INBOX", // ham
		"SELECT INBOX", "COPY 1 Junk", // spam
		"CREATE INBOX.Trash", "CREATE Junk.old", "CREATE \"Deleted Messages\"",
		"SELECT Junk", "COPY 1 INBOX.Trash", "COPY 1 Papierkorb", "COPY 1 Junk.old", "COPY 1 \"Deleted Messages\"",
		"MOVE 1 Trash",                            // thrown away
		"STORE 1:* +FLAGS (\\Deleted)", "EXPUNGE", // emptied
		"SELECT INBOX", "MOVE 1 Trash", "LOGOUT")
	if strings.Contains(out, "Error") {
		t.Fatal(out)
	}

	l, url := newLog(t)
	for i, spam := range []bool{true, false, true} {
		told, err := os.ReadFile(filepath.Join(d.dir, "told", fmt.Sprint(i)))
		if err != nil {
			t.Fatalf("%v; Dovecot said:\n%s", err, out)
		}
		arguments, message, _ := strings.Cut(string(told), "\n")
		label := map[bool]string{true: "--spam", false: "--ham"}[spam]
		if !strings.HasPrefix(arguments, "learn --spool "+d.dir+"/hamlet-learn --timeout 2s --url http://127.0.0.1:9100 --token-file ") || !strings.HasSuffix(arguments, " "+label) {
			t.Errorf("move %d: hamlet %s, want %s", i+1, arguments, label)
		}
		if _, errs, err := run(t, Command{Spam: spam, Ham: !spam, URL: url, Token: "secret", Source: "users", Timeout: 20 * time.Second}, message); err != nil || errs != "" {
			t.Fatal(errs, err)
		}
		l.judges(spam)
	}
	if files, err := os.ReadDir(filepath.Join(d.dir, "told")); err != nil || len(files) != 3 {
		t.Errorf("%d labels, %v; want 3", len(files), err)
	}
	l.wants("correct spam users", "correct ham users replaced", "correct spam users replaced")
}

// kill −9 of hamlet learn between a user's move and the learning. The move succeeds, and the
// label arrives once with the timer's flush. The next label of the message takes its place.
func TestDovecotKill(t *testing.T) {
	if os.Getenv("HAMLET_NIGHTLY") == "" {
		t.Skip("kills hamlet learn under Dovecot: HAMLET_NIGHTLY=1 runs it")
	}
	l, url, requests := newStalled(t, 1, 3) // the flushes go through
	d := newDovecot(t, url)
	d.write("learn.token", "secret\n", 0o644)
	hamlet := filepath.Join(d.dir, "bin", "hamlet")
	if out, err := exec.Command("go", "build", "-o", hamlet, "hamlet/cmd/hamlet").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	slow := strings.NewReplacer("--timeout 2s", "--timeout 60s") // the machine may be slow
	script, err := os.ReadFile(filepath.Join(d.dir, "bin", "hamlet-learn"))
	if err != nil {
		t.Fatal(err)
	}
	d.write("bin/hamlet-learn", slow.Replace(string(script)), 0o755)
	config, err := os.ReadFile(filepath.Join(d.dir, "dovecot.conf"))
	if err != nil {
		t.Fatal(err)
	}
	d.write("dovecot.conf", strings.Replace(string(config), "sieve_pipe_exec_timeout = 30s", "sieve_pipe_exec_timeout = 120s", 1), 0o644)

	moves := []struct {
		into     [][2]string
		commands []string
		spam     bool
	}{
		{[][2]string{{"INBOX", letter}}, []string{"SELECT INBOX", "MOVE 1 Junk", "LOGOUT"}, true},
		{nil, []string{"SELECT Junk", "MOVE 1 INBOX", "LOGOUT"}, false},
	}
	for i, move := range moves {
		moved := make(chan string, 1)
		go func() { moved <- d.session(move.into, move.commands...) }()
		var held *held
		select {
		case held = <-requests:
		case out := <-moved:
			t.Fatalf("no label arrives; Dovecot said:\n%s", out)
		}
		if i == 1 { // the log has the label before the kill
			close(held.enter)
			await(t, "the label is learnt", held.learnt)
		}
		killRunning(t, hamlet)
		if out := await(t, "Dovecot goes on", moved); !strings.Contains(out, "hamlet-learn") {
			t.Errorf("Dovecot does not name the program that was killed:\n%s", out)
		}
		if out, err := d.asUser(filepath.Join(d.dir, "bin", "hamlet-learn"), "--flush").CombinedOutput(); err != nil || string(out) != "1 sent\n" {
			t.Errorf("flush: %v, %s", err, out)
		}
		l.judges(move.spam)
	}
	l.wants("correct spam default", "correct ham default replaced", "correct ham default again")
}

// killRunning is kill −9 of the one process that runs a program.
func killRunning(t *testing.T, program string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != program {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		killed++
	}
	if killed != 1 {
		t.Errorf("%d processes run hamlet, want one", killed)
	}
}
