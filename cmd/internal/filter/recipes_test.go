package filter_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/debian"
	"hamlet/cmd/internal/filter"
	"hamlet/cmd/internal/filter/filtertest"
)

// The recipes of deploy/mail, with the real programs. Each program delivers one message
// without the recipe, and then with it: where a server marks it as spam, and where nobody
// answers. What it delivers without the recipe is what must come out, but for the mark.
// So it must if the filter dies in the middle, or else the mail server must try again.

const recipes = "../../../deploy/mail"

// A delivery is one message for a program to deliver into Maildirs below dir.
type delivery struct {
	dir    string // readable and writable for everybody
	bin    string // a directory that holds hamlet-filter
	addr   string // of the spamd
	recipe string // of deploy/mail; empty: without
}

func (d delivery) path() string { return d.bin + ":/usr/bin:/bin" }

// deliveries calls deliver, which returns the program's status, for each case. Spam goes
// to the mailbox junk, all else to inbox. Died is the status if the filter dies.
func deliveries(t *testing.T, recipe, junk, inbox string, died int, deliver func(*testing.T, delivery) int) {
	bin := readable(t)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "hamlet/cmd/hamlet-filter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(recipes, recipe))
	if err != nil {
		t.Fatal(err)
	}
	addr := filtertest.Start(t, filtertest.Serve)
	socket := strings.TrimPrefix(addr, "unix:")
	permit(t, filepath.Dir(filepath.Dir(socket)), filepath.Dir(socket), socket)

	half := readable(t)
	write(t, half, "hamlet-filter", "#!/bin/sh\nhead -n 2\nexit 75\n", 0o755)

	bare := delivery{dir: readable(t), bin: bin}
	if status := deliver(t, bare); status != 0 {
		t.Fatalf("without the recipe the status is %d", status)
	}
	unmarked := onlyMail(t, filepath.Join(bare.dir, inbox))
	if !strings.Contains(unmarked, "Subject: minutes") {
		t.Fatalf("without the recipe it delivers %q", unmarked)
	}
	for name, c := range map[string]struct {
		bin, addr     string
		mailbox, want string
		status        int
	}{
		"marked": {bin, addr, junk, string(filtertest.Marked([]byte(unmarked))), 0},
		"absent": {bin, "unix:/nonexistent/spamd.sock", inbox, unmarked, 0},
		"dies":   {half, addr, inbox, unmarked, died},
	} {
		t.Run(name, func(t *testing.T) {
			d := delivery{readable(t), c.bin, c.addr, string(text)}
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
			"PATH="+d.path(), filter.Variable+"="+d.addr, rc), mbox)
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
				"PATH="+dir+":/usr/bin:/bin", rc), mbox)
			if got := onlyMail(t, filepath.Join(dir, mailbox)); !strings.HasPrefix(got, plain) {
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
	deliveries(t, "mailfilter", "Maildir/.Junk", "Maildir", filter.StatusTempFail, func(t *testing.T, d delivery) int {
		for _, sub := range []string{"Maildir/cur", "Maildir/new", "Maildir/tmp", "Maildir/.Junk/cur", "Maildir/.Junk/new", "Maildir/.Junk/tmp"} {
			if err := os.MkdirAll(filepath.Join(d.dir, sub), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		set := fmt.Sprintf("HOME=%q\nDEFAULT=%q\nPATH=%q\n%s=%q\n", d.dir, d.dir+"/Maildir", d.path(), filter.Variable, d.addr)
		rc := write(t, d.dir, "mailfilter", set+d.recipe, 0o600)
		return feed(t, debian.Command(t, "maildrop", "maildrop", rc), mbox)
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
		script := strings.Replace(d.recipe, "\nfilter \"hamlet-filter\"", fmt.Sprintf("\nfilter \"hamlet-filter\" [\"--socket\", %q]", d.addr), 1)
		here := strings.NewReplacer("/etc/dovecot/hamlet.sieve", write(t, d.dir, "hamlet.sieve", script, 0o644),
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
		return feed(t, cmd, plain)
	})
}
