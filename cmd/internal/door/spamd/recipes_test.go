package spamd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/testkit/debian"
)

// The recipes of deploy/mail, with the real programs and Debian's spamc. Each program
// delivers one message without the recipe, and then with it: where the door marks it as
// spam, and where nobody answers. What it delivers without the recipe is what must come
// out, but for the mark. So it must if spamc dies in the middle, or else the mail server
// must try again.

const recipes = "../../../../deploy/mail"

const (
	plainMail = "Received: by a\n\tfor b\nSubject: minutes\nX-Spam-Flag: NO\n\nHello, buy pills\n\nFrom here on: nothing.\n"
	mboxMail  = "From a@example.org Mon Jan  1 00:00:00 2024\n" + plainMail
)

// A delivery is one message for a program to deliver into Maildirs below dir.
type delivery struct {
	dir    string // readable and writable for everybody
	bin    string // a directory that holds spamc
	recipe string // of deploy/mail; empty: without
}

func (d delivery) path() string { return d.bin + ":/usr/bin:/bin" }

// spamcAt returns a directory with a spamc that has the settings of spamc.conf, for the door at a socket.
func spamcAt(t *testing.T, socket string) string {
	t.Helper()
	settings, err := os.ReadFile(filepath.Join(recipes, "spamc.conf"))
	if err != nil {
		t.Fatal(err)
	}
	dir := readable(t)
	conf := write(t, dir, "spamc.conf", strings.Replace(string(settings), "/run/hamlet/spamd.sock", socket, 1), 0o644)
	run := filepath.Join(debian.Tree(t, "spamc"), "run")
	write(t, dir, "spamc", fmt.Sprintf("#!/bin/sh\nexec %q spamc -F %q \"$@\"\n", run, conf), 0o755)
	return dir
}

// deliveries calls deliver, which returns the program's status, for each case. Spam goes
// to the mailbox junk, all else to inbox. Died is the status if spamc dies.
func deliveries(t *testing.T, recipe, junk, inbox string, died int, deliver func(*testing.T, delivery) int) {
	text, err := os.ReadFile(filepath.Join(recipes, recipe))
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, gateway.Config{})
	permit(t, filepath.Dir(filepath.Dir(d.addr)), filepath.Dir(d.addr), d.addr)
	answers, absent, half := spamcAt(t, d.addr), spamcAt(t, "/nonexistent/spamd.sock"), readable(t)
	write(t, half, "spamc", "#!/bin/sh\nhead -n 2\nexit 75\n", 0o755)

	bare := delivery{dir: readable(t), bin: absent}
	if status := deliver(t, bare); status != 0 {
		t.Fatalf("without the recipe the status is %d", status)
	}
	unmarked := onlyMail(t, filepath.Join(bare.dir, inbox))
	if !strings.Contains(unmarked, "Subject: minutes") {
		t.Fatalf("without the recipe it delivers %q", unmarked)
	}
	from, mail := "", unmarked
	if strings.HasPrefix(unmarked, "From ") {
		from, mail, _ = strings.Cut(unmarked, "\n")
		from += "\n"
	}
	for name, c := range map[string]struct {
		bin, mailbox, want string
		status             int
	}{
		"marked": {answers, junk, from + strings.ReplaceAll(marked, "\r", "") + mail, 0},
		"absent": {absent, inbox, unmarked, 0},
		"dies":   {half, inbox, unmarked, died},
	} {
		t.Run(name, func(t *testing.T) {
			d := delivery{readable(t), c.bin, string(text)}
			if status := deliver(t, d); status != c.status {
				t.Fatalf("status %d, want %d", status, c.status)
			}
			if c.status != 0 {
				noMail(t, d.dir)
				return
			}
			if got := onlyMail(t, filepath.Join(d.dir, c.mailbox)); got != c.want {
				t.Errorf("delivered\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

// readable returns a directory that every user may read and write.
func readable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	permit(t, filepath.Dir(dir), dir)
	return dir
}

// permit lets every user use the files.
func permit(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
}

// write writes a file and returns its path.
func write(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// onlyMail returns the only message of a Maildir.
func onlyMail(t *testing.T, maildir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(maildir, "new", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s has %d messages, want one", maildir, len(files))
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// noMail checks that no file below dir holds the message: the mail server still has it.
func noMail(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "Received: by a") {
			t.Errorf("%s has a message", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// feed runs a command with the message on its standard input, and returns its status.
func feed(t *testing.T, cmd *exec.Cmd, message string) int {
	t.Helper()
	cmd.Stdin = strings.NewReader(message)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("%s: %v", cmd.Args, err)
	}
	t.Logf("%s: %v\n%s", cmd.Args, err, out)
	return cmd.ProcessState.ExitCode()
}

func TestProcmail(t *testing.T) {
	debian.Tree(t, "procmail")
	deliveries(t, "procmailrc", "Junk", "inbox", 0, func(t *testing.T, d delivery) int {
		rc := write(t, t.TempDir(), "procmailrc", d.recipe, 0o600) // where nobody else may write: procmail looks
		return feed(t, debian.Command(t, "procmail", "procmail", "-m", "MAILDIR="+d.dir, "DEFAULT="+d.dir+"/inbox/",
			"PATH="+d.path(), rc), mboxMail)
	})
}

// Procmail's :0HB gives the program header and body; its plain :0 would not. It joins
// the lines of a field.
func TestProcmailScore(t *testing.T) {
	debian.Tree(t, "procmail")
	text, err := os.ReadFile(filepath.Join(recipes, "procmailrc-score"))
	if err != nil {
		t.Fatal(err)
	}
	for flags, body := range map[string]bool{":0HB": true, ":0": false} {
		for status, mailbox := range []string{"Junk", "inbox", "inbox", "inbox"} { // spam, ham, unsure, an error
			dir := t.TempDir()
			write(t, dir, "hamlet", fmt.Sprintf("#!/bin/sh\necho \"$*\" >%s/args\ncat >%[1]s/stdin\nexit %d\n", dir, status), 0o700)
			rc := write(t, dir, "rc", strings.Replace(string(text), ":0HB", flags, 1), 0o600)
			feed(t, debian.Command(t, "procmail", "procmail", "-m", "MAILDIR="+dir, "DEFAULT="+dir+"/inbox/",
				"PATH="+dir+":/usr/bin:/bin", rc), mboxMail)
			if got := onlyMail(t, filepath.Join(dir, mailbox)); !strings.HasPrefix(got, plainMail) {
				t.Errorf("%s, status %d: delivered %q", flags, status, got)
			}
			got, err := os.ReadFile(filepath.Join(dir, "stdin"))
			if err != nil || strings.Contains(string(got), "\nFrom here on") != body {
				t.Errorf("%s: the program was given %q (%v)", flags, got, err)
			}
			if args, err := os.ReadFile(filepath.Join(dir, "args")); err != nil || !strings.HasPrefix(string(args), "score --exit-code ") {
				t.Errorf("%s: the arguments are %s (%v)", flags, args, err)
			}
		}
	}
}

func TestMaildrop(t *testing.T) {
	debian.Tree(t, "maildrop")
	deliveries(t, "mailfilter", "Maildir/.Junk", "Maildir", exTempFail, func(t *testing.T, d delivery) int {
		for _, sub := range []string{"Maildir/cur", "Maildir/new", "Maildir/tmp", "Maildir/.Junk/cur", "Maildir/.Junk/new", "Maildir/.Junk/tmp"} {
			if err := os.MkdirAll(filepath.Join(d.dir, sub), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		set := fmt.Sprintf("HOME=%q\nDEFAULT=%q\nPATH=%q\n", d.dir, d.dir+"/Maildir", d.path())
		rc := write(t, d.dir, "mailfilter", set+d.recipe, 0o600)
		return feed(t, debian.Command(t, "maildrop", "maildrop", rc), mboxMail)
	})
}

// Dovecot's delivery agent runs Sieve before the user's own script, with the settings
// that deploy/mail gives it.
func TestSieve(t *testing.T) {
	debian.Tree(t, "dovecot-sieve")
	settings, err := os.ReadFile(filepath.Join(recipes, "dovecot-sieve.conf"))
	if err != nil {
		t.Fatal(err)
	}
	deliveries(t, "hamlet.sieve", "Maildir/.Junk", "Maildir", 0, func(t *testing.T, d delivery) int {
		here := strings.NewReplacer("/etc/dovecot/hamlet.sieve", write(t, d.dir, "hamlet.sieve", d.recipe, 0o644),
			"/usr/lib/dovecot/sieve-filter", d.bin)
		conf := write(t, d.dir, "dovecot.conf", `
base_dir = `+d.dir+`/run
mail_location = maildir:`+d.dir+`/Maildir
log_path = /dev/stderr
lda_mailbox_autocreate = yes
postmaster_address = postmaster@example.org
ssl = no
protocol lda {
  mail_plugins = sieve
}
`+here.Replace(string(settings)), 0o644)
		cmd := debian.Over(t, "dovecot-sieve", "setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups",
			"/usr/lib/dovecot/dovecot-lda", "-c", conf)
		cmd.Env = append(os.Environ(), "HOME="+d.dir, "USER=nobody")
		return feed(t, cmd, plainMail)
	})
}
