package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Postfix is a private mail server with directories and ports of its own. It takes mail
// for example.com by SMTP on loopback, puts it into one Maildir, and sends nothing
// anywhere.
//
//	p := debian.NewPostfix(t, "smtpd_milters = inet:127.0.0.1:11332")
//	err := smtp.SendMail(p.Addr, nil, "ann@example.org", []string{"bob@example.com"}, message)
//	files := p.Delivered(1)
type Postfix struct {
	Addr  string // SMTP
	Plain string // SMTP, without milters

	t    testing.TB
	dir  string
	tree string
}

// patience bounds each wait for Postfix.
const patience = time.Minute

// The user and the group that stand for Postfix's own; Debian's base has them.
const (
	postfixUser  = "mail"
	postfixGroup = "uucp"
)

// NewPostfix starts a Postfix with further lines of main.cf. It ends with the test. Without
// root, as which Postfix starts, the test is skipped.
func NewPostfix(t testing.TB, settings ...string) *Postfix {
	t.Helper()
	tree := Tree(t, "postfix")
	if os.Geteuid() != 0 {
		t.Skip("Postfix starts as root alone")
	}
	// The daemons give up root, so others must reach the directory.
	dir, err := os.MkdirTemp("", "postfix-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &Postfix{t: t, dir: dir, tree: tree, Addr: freeAddr(t), Plain: freeAddr(t)}
	if err := p.configure(settings); err != nil {
		t.Fatal(err)
	}
	p.start()
	return p
}

// freeAddr returns an address of loopback on which nobody listens.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// configure makes the directories and the two files of the configuration.
func (p *Postfix) configure(settings []string) error {
	u, err := user.Lookup(postfixUser)
	if err != nil {
		return err
	}
	var uid, gid int
	if _, err := fmt.Sscan(u.Uid+" "+u.Gid, &uid, &gid); err != nil {
		return err
	}
	for _, d := range strings.Fields("conf data box queue queue/pid queue/active queue/bounce queue/corrupt " +
		"queue/defer queue/deferred queue/flush queue/hold queue/incoming queue/maildrop queue/private " +
		"queue/public queue/saved queue/trace") {
		path := filepath.Join(p.dir, d)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
		if d == "conf" || d == "queue" || d == "queue/pid" {
			err = os.Chmod(path, 0o755)
		} else {
			err = os.Chown(path, uid, gid)
		}
		if err != nil {
			return err
		}
	}
	if err := os.Chmod(p.dir, 0o755); err != nil {
		return err
	}
	main := []string{
		"compatibility_level = 3.6",
		"queue_directory = " + p.dir + "/queue",
		"data_directory = " + p.dir + "/data",
		"daemon_directory = " + p.tree + "/usr/lib/postfix/sbin",
		"command_directory = " + p.tree + "/usr/sbin",
		"shlib_directory = " + p.tree + "/usr/lib/postfix",
		"meta_directory = " + p.dir + "/conf",
		"maillog_file = " + p.dir + "/log",
		"maillog_file_prefixes = " + p.dir,
		"import_environment = MAIL_CONFIG LD_LIBRARY_PATH TZ=UTC",
		"mail_owner = " + postfixUser,
		"setgid_group = " + postfixGroup,
		"default_privs = nobody",
		"myhostname = mail.example.com",
		"mydestination =",
		"inet_interfaces = 127.0.0.1",
		"inet_protocols = ipv4",
		"mynetworks = 127.0.0.0/8",
		"default_transport = error:this instance sends nothing",
		"relay_transport = error:this instance sends nothing",
		"alias_maps =",
		"local_recipient_maps =",
		"virtual_mailbox_domains = example.com",
		"virtual_mailbox_base = " + p.dir,
		"virtual_mailbox_maps = static:box/",
		fmt.Sprintf("virtual_minimum_uid = %d", min(uid, 1)),
		fmt.Sprintf("virtual_uid_maps = static:%d", uid),
		fmt.Sprintf("virtual_gid_maps = static:%d", gid),
		"smtpd_client_connection_rate_limit = 0",
		"smtpd_client_message_rate_limit = 0",
		"smtpd_client_event_limit_exceptions = static:all",
		"message_size_limit = 52428800",
		"virtual_mailbox_limit = 0",
	}
	master := `postlog unix-dgram n - n - 1 postlogd
%s inet n - n - - smtpd
%s inet n - n - - smtpd -o smtpd_milters=
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
`
	return errors.Join(
		os.WriteFile(p.dir+"/conf/main.cf", []byte(strings.Join(append(main, settings...), "\n")+"\n"), 0o644),
		os.WriteFile(p.dir+"/conf/master.cf", fmt.Appendf(nil, master, p.Addr, p.Plain), 0o644),
	)
}

// start runs the master process until the test ends.
func (p *Postfix) start() {
	t := p.t
	t.Helper()
	var output bytes.Buffer
	// It ends after half an hour, if the test is killed and cannot end it.
	cmd := p.command(context.Background(), "usr/lib/postfix/sbin/master", "-c", p.dir+"/conf", "-e", "1800")
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // the master ends the others
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("Postfix does not end")
		}
		if t.Failed() {
			t.Logf("Postfix's log:\n%s%s", output.String(), p.Log())
		}
	})
	p.wait("Postfix answers", func() bool {
		conn, err := net.DialTimeout("tcp", p.Addr, time.Second)
		if err != nil {
			return false
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		greeting := make([]byte, 4)
		_, err = conn.Read(greeting)
		return err == nil && string(greeting) == "220 "
	})
}

// command is a program of the tree, with the tree's libraries.
func (p *Postfix) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, p.tree+"/run", append([]string{filepath.Join(p.tree, program)}, args...)...)
}

// wait polls until ready, and fails the test where that takes too long.
func (p *Postfix) wait(what string, ready func() bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); !ready(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("waited for %v: %s; Postfix's log:\n%s", patience, what, p.Log())
		}
	}
}

// Log returns what Postfix logged.
func (p *Postfix) Log() string {
	b, err := os.ReadFile(p.dir + "/log")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Delivered waits for n messages and returns their files.
func (p *Postfix) Delivered(n int) []string {
	p.t.Helper()
	var files []string
	p.wait(fmt.Sprintf("%d messages", n), func() bool {
		files, _ = filepath.Glob(p.dir + "/box/new/*")
		return len(files) >= n
	})
	return files
}

// Folder makes a folder below the queue for sockets that Postfix's group may open, and
// returns its path.
func (p *Postfix) Folder(name string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, "queue", name)
	g, err := user.LookupGroup(postfixUser)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := exec.CommandContext(p.t.Context(), "install", "-d", "-g", g.Name, "-m", "2750", path).Run(); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// Empty reports whether no message is on its way.
func (p *Postfix) Empty() bool {
	for _, queue := range []string{"incoming", "active", "deferred", "maildrop"} {
		if p.count(queue) > 0 {
			return false
		}
	}
	return true
}

// Held returns how many messages are in the hold queue.
func (p *Postfix) Held() int { return p.count("hold") }

// count returns how many files a queue has, whose folders may be nested.
func (p *Postfix) count(queue string) (n int) {
	_ = filepath.WalkDir(filepath.Join(p.dir, "queue", queue), func(_ string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			n++
		}
		return nil
	})
	return n
}
