package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A newcomer follows a page to the letter, from its first command to a message that Postfix
// has delivered with hamlet's field. The commands are taken from the page, so the page cannot
// say what does not work. It takes minutes and a mirror of Debian: .ci/nightly runs it.
//
// What a machine has and this root lacks is systemd. A program in its place hands the commands
// about hamlet's unit to the test, which starts the unit as TestLife does.

// newcomersTime is how long a page may take.
const newcomersTime = 15 * time.Minute

// debianBase returns the folder of the smallest Debian 12, which is made once.
var debianBase = sync.OnceValues(func() (dir string, err error) {
	dir = filepath.Join(release.work, "debian")
	tree := filepath.Join(os.Getenv("HAMLET_TEST_PROGRAMS"), "debootstrap")
	cmd := exec.Command(tree+"/run", "debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", dir, "http://deb.debian.org/debian")
	cmd.Env = append(os.Environ(), "DEBOOTSTRAP_DIR="+tree+"/usr/share/debootstrap")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("debootstrap: %w: %s", err, out)
	}
	return dir, nil
})

// newDebian returns a machine with a new Debian 12 and a user ann with a mailbox.
func newDebian(t *testing.T) *machine {
	t.Helper()
	if os.Getenv("HAMLET_NIGHTLY") == "" || os.Getenv("HAMLET_TEST_PROGRAMS") == "" {
		t.Skip("a new Debian takes minutes: set HAMLET_NIGHTLY=1, and HAMLET_TEST_PROGRAMS to what .ci/programs unpacked")
	}
	if os.Getuid() != 0 {
		t.Skip("a root of its own needs root")
	}
	for _, port := range []string{"25", "9104", "11332"} {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatalf("the pages use port %s, which is taken: %v", port, err)
		}
		l.Close()
	}
	m := &machine{t, t.TempDir()}
	for parent := m.root; parent != "/tmp" && parent != "/"; parent = filepath.Dir(parent) {
		_ = os.Chmod(parent, 0o755)
	}
	t.Cleanup(m.clear)
	base, err := debianBase()
	if err != nil {
		t.Fatal(err)
	}
	command(t, "cp", "-a", base+"/.", m.root)
	if err := syscall.Mount("proc", m.root+"/proc", "proc", 0, ""); err != nil {
		t.Logf("the root goes without /proc: %v", err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	m.write("/etc/hosts", "127.0.0.1 localhost "+host+"\n")
	// It reaches the network as this machine does, which may stand behind a proxy.
	for _, path := range []string{"/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m.write(path, string(text))
	}
	// The newcomer says yes to apt, and takes what Debian asks as it is.
	m.write("/etc/apt/apt.conf.d/90newcomer", `APT::Get::Assume-Yes "true"; APT::Sandbox::User "root";`+"\n")
	m.shell(nil, "", "useradd --create-home --shell /bin/bash ann")
	m.mailbox()
	return m
}

// clear ends what runs in the root, and nothing else.
func (m *machine) clear() {
	for range 2 { // a parent may have started another child
		roots, _ := filepath.Glob("/proc/[0-9]*/root")
		for _, link := range roots {
			if root, err := os.Readlink(link); err == nil && root == m.root {
				if pid, err := strconv.Atoi(strings.Split(link, "/")[2]); err == nil {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
	}
	_ = syscall.Unmount(m.root+"/proc", syscall.MNT_DETACH)
}

// mailbox gives ann a Maildir of spam and one of ham: the SpamAssassin corpus.
func (m *machine) mailbox() {
	t := m.t
	t.Helper()
	const corpus = "../../../shared/data/spamassassin/"
	index, err := os.ReadFile(corpus + "index.csv")
	if err != nil {
		t.Skipf("ann has no mail: %v", err)
	}
	lines, err := csv.NewReader(bytes.NewReader(index)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	folder := map[string]string{}
	for _, line := range lines {
		folder[line[1]] = map[string]string{"spam": "Junk", "ham": "INBOX"}[line[0]]
	}
	f, err := os.Open(corpus + "spamassassin.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Junk", "INBOX"} {
		for _, sub := range []string{"cur", "new", "tmp"} {
			if err := os.MkdirAll(filepath.Join(m.root, "home/ann/Mail", name, sub), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	for archive := tar.NewReader(unzipped); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := folder[h.Name]
		if h.Typeflag != tar.TypeReg || name == "" {
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		m.write("/home/ann/Mail/"+name+"/cur/"+strings.ReplaceAll(h.Name, "/", ".")+":2,S", string(text))
	}
	m.shell(nil, "", "chown -R ann: /home/ann && chmod 700 /home/ann")
}

// program returns a script that runs in the root, as root or as a user, by bash.
func (m *machine) program(env []string, user, script string) *exec.Cmd {
	cmd := exec.CommandContext(m.t.Context(), "/bin/bash", "-euo", "pipefail", "-c", script)
	if user == "" {
		user = "root"
	}
	cmd.Args = append([]string{"runuser", "-u", user, "--", "env"}, append(env, cmd.Args...)...)
	cmd.Path, cmd.Err, cmd.Dir = "/usr/sbin/runuser", nil, "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "USER=" + user}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: m.root, Setsid: true}
	return cmd
}

func (m *machine) shell(env []string, user, script string) {
	m.t.Helper()
	if out, err := m.program(env, user, script).CombinedOutput(); err != nil {
		m.t.Fatalf("%s: %v: %s", script, err, out)
	}
}

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// steps returns the commands below a heading of a page, in their order.
func steps(t *testing.T, page, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var script strings.Builder
	for _, block := range shellBlock.FindAllStringSubmatch(rest, -1) {
		script.WriteString(block[1])
	}
	if strings.Count(script.String(), "\n") < 5 {
		t.Fatalf("%s, %s: the commands are %q", page, heading, script.String())
	}
	return script.String()
}

// standIn is systemctl in a root without systemd. Commands about hamlet go to the test.
const standIn = `#!/bin/sh
case $* in
*hamlet*)
  echo "$*" >/run/systemctl.ask
  read -r status </run/systemctl.answer
  exit "$status" ;;
"reload postfix") postfix status 2>/dev/null && exec postfix reload; exec postfix start ;;
*) exec /usr/bin/systemctl "$@" ;;
esac
`

// follow runs the commands of a page, and fails the test if they fail or take too long. It
// returns when ann's mail has been delivered, which the last of them waits for.
func (m *machine) follow(env []string, user, script string) {
	t := m.t
	t.Helper()
	if err := os.WriteFile(m.root+"/usr/local/bin/systemctl", []byte(standIn), 0o755); err != nil {
		t.Fatal(err)
	}
	pipes := map[string]*os.File{}
	for _, name := range []string{"ask", "answer"} {
		path := m.root + "/run/systemctl." + name
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		pipe, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer pipe.Close()
		pipes[name] = pipe
	}
	asked := make(chan string)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for lines := bufio.NewScanner(pipes["ask"]); lines.Scan(); {
			select {
			case asked <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()

	start := time.Now()
	cmd := m.program(env, user, `PS4='+ ${SECONDS}s '; set -x; `+script)
	output, err := os.Create(m.root + "/run/newcomer.log")
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	log := func() string {
		text, _ := os.ReadFile(output.Name())
		return string(text)
	}
	cmd.Stdout, cmd.Stderr = output, output // a file: what runs on in the background may keep it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for limit := time.After(newcomersTime); ; {
		select {
		case line := <-asked:
			t.Logf("systemctl %s", line)
			if line != "enable --now hamlet" {
				t.Fatalf("the test knows no systemctl %s", line)
			}
			m.start("hamlet.service").await("READY=1")
			fmt.Fprintln(pipes["answer"], 0)
		case err := <-ended:
			if err != nil {
				t.Fatalf("after %v: %v\n%s", time.Since(start).Round(time.Second), err, log())
			}
			mail, err := os.ReadFile(m.root + "/var/mail/ann")
			if err != nil || !regexp.MustCompile(`(?m)^X-Hamlet: (spam|unsure|ham); p=[0-9.]+;`).Match(mail) {
				t.Fatalf("ann's mail: %v\n%s\n%s", err, mail, log())
			}
			t.Logf("%s", log())
			t.Logf("from the first command to the first scored mail: %v", time.Since(start).Round(time.Second))
			return
		case <-limit:
			t.Fatalf("a newcomer waits longer than %v:\n%s", newcomersTime, log())
		}
	}
}

// From the Debian package to the first scored mail in Postfix.
func TestNewcomerInstallsThePackage(t *testing.T) {
	m := newDebian(t)
	file := ours(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m.write("/root/"+filepath.Base(file), string(text))
	m.follow([]string{"HOME=/root"}, "", "cd; "+steps(t, "deploy/INSTALL.md", "From the package to the first scored mail"))
}

// From git clone to the first scored mail in Postfix, with the servers inside hamlet.
func TestNewcomerClonesTheRepository(t *testing.T) {
	m := newDebian(t)
	// What the README supposes: a Postfix that runs, curl, git, sudo and Go.
	m.shell(nil, "", `apt-get update && apt-get install --no-install-recommends postfix curl git sudo
		echo 'ann ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ann
		postfix status || postfix start`)
	goroot := strings.TrimSpace(command(t, "go", "env", "GOROOT"))
	command(t, "cp", "-a", goroot, m.root+"/usr/local/go")
	command(t, "git", "clone", "-q", "--bare", "../..", m.root+"/srv/hamlet.git")
	m.shell(nil, "", "chown -R ann: /srv/hamlet.git")
	env := []string{
		"HOME=/home/ann", "PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin",
		"GOPROXY=" + strings.TrimSpace(command(t, "go", "env", "GOPROXY")),
	}
	m.follow(env, "ann", "cd; git clone /srv/hamlet.git; cd hamlet; "+steps(t, "README.md", "Your own mailbox, in three steps"))
}
