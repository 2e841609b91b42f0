package debian

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An Exim is a private mail server with Debian's exim4-daemon-heavy. It has no daemon and
// no port: each message is one SMTP session on its standard input.
type Exim struct {
	t   testing.TB
	dir string
	env []string
}

// eximUser is the id that Exim takes for its user Debian-exim, which need not exist here.
// Exim refuses to be root.
const eximUser = 65534

// NewExim returns an Exim that listens to spamd_address (such as "127.0.0.1 783", with
// options behind) and runs the ACL dataACL after each message. It accepts all recipients.
func NewExim(t testing.TB, spamdAddress, dataACL string) *Exim {
	t.Helper()
	dir, err := os.MkdirTemp("", "exim") // Exim's user must get there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	user := eximUser
	if os.Getuid() != 0 {
		user = os.Getuid()
	}
	e := &Exim{t: t, dir: dir, env: []string{
		"NSS_WRAPPER_PASSWD=" + dir + "/passwd", "NSS_WRAPPER_GROUP=" + dir + "/group",
		"LD_PRELOAD=" + dir + "/bin/libnss_wrapper.so", "LD_LIBRARY_PATH=" + dir + "/bin",
	}}
	e.fetch()
	e.write("passwd", fmt.Sprintf("root:x:0:0::/:/bin/false\nDebian-exim:x:%d:%[1]d::/:/bin/false\n", user))
	e.write("group", fmt.Sprintf("root:x:0:\nmail:x:8:\nDebian-exim:x:%d:\n", user))
	e.write("conf", fmt.Sprintf(eximConfig, dir, spamdAddress, dataACL, user))
	for _, name := range []string{"", "spool", "log", "mail"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(dir, name), user, -1); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

const eximConfig = `
exim_path = %[1]s/bin/exim4
primary_hostname = exim.example
spool_directory = %[1]s/spool
log_file_path = %[1]s/log/%%slog
spamd_address = %[2]s
acl_smtp_rcpt = accept
acl_smtp_data = data
host_lookup =
keep_environment = NSS_WRAPPER_PASSWD : NSS_WRAPPER_GROUP : LD_PRELOAD : LD_LIBRARY_PATH
tls_advertise_hosts =
message_logs = false
begin acl
data:
%[3]s
  accept
begin routers
all:
  driver = accept
  transport = file
begin transports
file:
  driver = appendfile
  directory = %[1]s/mail
  user = %[4]d
  group = %[4]d
  return_path_add = false
  delivery_date_add = false
  envelope_to_add = false
`

// Send hands Exim a message with lines that end in LF. It returns what Exim delivered, and
// what it said in the session and in its log. Each recipient gets a copy; delivered is one.
func (e *Exim) Send(message string, recipients ...string) (delivered []byte, said string) {
	e.t.Helper()
	session := "EHLO client.example\r\nMAIL FROM:<sender@client.example>\r\n"
	for _, r := range recipients {
		session += "RCPT TO:<" + r + ">\r\n"
	}
	session += "DATA\r\n" + strings.ReplaceAll(message, "\n", "\r\n") + ".\r\nQUIT\r\n"
	cmd := exec.CommandContext(e.t.Context(), filepath.Join(e.dir, "bin/exim4"),
		"-C", filepath.Join(e.dir, "conf"), "-odf", "-bs")
	cmd.Env = append(os.Environ(), e.env...)
	cmd.Stdin = strings.NewReader(session)
	var answers bytes.Buffer
	cmd.Stdout, cmd.Stderr = &answers, &answers
	if err := cmd.Run(); err != nil {
		e.t.Fatalf("exim: %v\n%s", err, answers.String())
	}
	log, _ := os.ReadFile(filepath.Join(e.dir, "log", "mainlog"))
	files, err := filepath.Glob(filepath.Join(e.dir, "mail", "*"))
	if err != nil {
		e.t.Fatal(err)
	}
	for _, file := range files {
		if delivered, err = os.ReadFile(file); err != nil {
			e.t.Fatal(err)
		}
		if err := os.Remove(file); err != nil {
			e.t.Fatal(err)
		}
	}
	_ = os.Remove(filepath.Join(e.dir, "log", "mainlog"))
	return delivered, answers.String() + string(log)
}

func (e *Exim) write(name, text string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o644); err != nil {
		e.t.Fatal(err)
	}
}

// fetch copies the program and its libraries: Exim starts itself again as its user, who
// may be unable to enter the folders above the trees. libnss-wrapper tells it of a user
// whom this machine does not have.
func (e *Exim) fetch() {
	e.t.Helper()
	tree := Tree(e.t, "exim4-daemon-heavy")
	files := []string{filepath.Join(tree, "usr/sbin/exim4")}
	for _, tree := range []string{tree, Tree(e.t, "libnss-wrapper")} {
		err := filepath.WalkDir(tree, func(path string, f fs.DirEntry, err error) error {
			if err == nil && !f.IsDir() && strings.Contains(f.Name(), ".so") {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			e.t.Fatal(err)
		}
	}
	bin := filepath.Join(e.dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		e.t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			e.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, filepath.Base(file)), data, 0o755); err != nil {
			e.t.Fatal(err)
		}
	}
}
