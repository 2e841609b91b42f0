package teach

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/debian"
	"hamlet/cmd/internal/example"
	"hamlet/stream"
)

const deployed = "../../../deploy/dovecot"

// A user moves a message into Junk, out of it, and a copy into Junk again, and throws another
// away. Dovecot starts the program of deploy/dovecot for each move, and for nothing else, and
// what it gives to hamlet learn changes the next answer.
func TestDovecot(t *testing.T) {
	dir, err := os.MkdirTemp("", "dovecot") // its user must get there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	write := func(name, text string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	here := strings.NewReplacer("/etc/dovecot", dir, "/usr/lib/dovecot/sieve-pipe", dir+"/bin", "exec hamlet", "exec "+dir+"/bin/hamlet")
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
		write(to, here.Replace(map[bool]string{true: settings}[name == "dovecot.conf"]+string(text)), mode)
	}
	// In the place of hamlet a program that keeps what it is told.
	write("bin/hamlet", fmt.Sprintf("#!/bin/sh\nf=%s/told/$(ls %[1]s/told | wc -l)\n{ echo \"$@\"; cat; } > $f\n", dir), 0o755)
	for _, name := range []string{"told", "home", "run"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", "told", "home", "run"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}

	other := strings.ReplaceAll(letter, "1@", "2@")
	var session bytes.Buffer
	fmt.Fprintf(&session, "a1 APPEND INBOX {%d+}\r\n%s\r\n", len(letter), letter)
	fmt.Fprintf(&session, "a2 APPEND Junk {%d+}\r\n%s\r\n", len(other), other)
	for i, command := range []string{
		"SELECT INBOX", "MOVE 1 Junk", // spam
		"SELECT Junk", "MOVE 2 INBOX", // ham
		"SELECT INBOX", "COPY 1 Junk", // spam
		"SELECT Junk", "MOVE 1 Trash", // thrown away
		"STORE 1:* +FLAGS (\\Deleted)", "EXPUNGE", // emptied
		"SELECT INBOX", "MOVE 1 Trash", "LOGOUT",
	} {
		fmt.Fprintf(&session, "b%d %s\r\n", i, command)
	}
	cmd := debian.OverAll(t, []string{"dovecot-imapd", "dovecot-sieve"}, "setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups",
		"/usr/lib/dovecot/imap", "-c", filepath.Join(dir, "dovecot.conf"))
	cmd.Env = append(os.Environ(), "HOME="+dir+"/home", "USER=nobody")
	cmd.Stdin = &session
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "b12 OK") || strings.Contains(string(out), "Error") {
		t.Fatalf("%v:\n%s", err, out)
	}

	l, url := newLog(t)
	body, _, err := example.Body("", &stream.Body{Kind: stream.Mail, Mail: []byte(letter)})
	if err != nil {
		t.Fatal(err)
	}
	for i, spam := range []bool{true, false, true} {
		told, err := os.ReadFile(filepath.Join(dir, "told", fmt.Sprint(i)))
		if err != nil {
			t.Fatalf("%v; Dovecot said:\n%s", err, out)
		}
		arguments, message, _ := strings.Cut(string(told), "\n")
		label := map[bool]string{true: "--spam", false: "--ham"}[spam]
		if !strings.HasPrefix(arguments, "learn --spool /var/lib/hamlet-learn --timeout 2s --url http://127.0.0.1:9100 --token-file ") || !strings.HasSuffix(arguments, " "+label) {
			t.Errorf("move %d: hamlet %s, want %s", i+1, arguments, label)
		}
		if _, errs, err := run(t, Command{Spam: spam, Ham: !spam, URL: url, Token: "secret", Source: "users", Timeout: 20 * time.Second}, message); err != nil || errs != "" {
			t.Fatal(errs, err)
		}
		p, err := l.model.NewPredictor().Predict(&body)
		if err != nil || (p.LogOdds > 0) != spam {
			t.Errorf("after move %d log-odds %v, %v; want spam %v", i+1, p.LogOdds, err, spam)
		}
	}
	if files, err := os.ReadDir(filepath.Join(dir, "told")); err != nil || len(files) != 3 {
		t.Errorf("%d labels, %v; want 3", len(files), err)
	}
	if got, want := strings.Join(l.took, ", "), "correct spam users, correct ham users replaced, correct spam users replaced"; got != want {
		t.Errorf("the learner took %s\nwant %s", got, want)
	}
}
