package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait: these machines may be slow.
const patience = time.Minute

// A machine is an empty root in which dpkg installs the package.
type machine struct {
	t    *testing.T
	root string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	return machineIn(t, t.TempDir())
}

// machineIn makes an empty folder the root of a machine.
func machineIn(t *testing.T, root string) *machine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a root of its own, and another user in it, need root")
	}
	m := &machine{t, root}
	if err := os.Chmod(m.root, 0o755); err != nil { // for the user of the services
		t.Fatal(err)
	}
	for parent := filepath.Dir(m.root); parent != "/tmp" && parent != "/"; parent = filepath.Dir(parent) {
		_ = os.Chmod(parent, 0o755)
	}
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "etc", "tmp"} {
		if err := os.MkdirAll(filepath.Join(m.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(m.root+"/tmp", 0o1777); err != nil {
		t.Fatal(err)
	}
	m.write("/var/lib/dpkg/status", "")
	m.write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
	m.write("/etc/group", "root:x:0:\n")
	return m
}

func (m *machine) write(path, text string) {
	m.t.Helper()
	if err := os.WriteFile(m.root+path, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// secret gives a file the mode and the group that tmpfiles.conf gives it.
func (m *machine) secret(path string) {
	m.t.Helper()
	_, gid := m.login("hamlet")
	if err := errors.Join(os.Chown(m.root+path, 0, int(gid)), os.Chmod(m.root+path, 0o640)); err != nil {
		m.t.Fatal(err)
	}
}

// dpkg runs dpkg on the root. The scripts run on this machine and are told the root.
func (m *machine) dpkg(args ...string) {
	m.t.Helper()
	m.t.Setenv("SYSTEMD_OFFLINE", "1")
	args = append([]string{"--root=" + m.root, "--force-script-chrootless", "--force-depends", "--force-confold", "--log=/dev/null"}, args...)
	command(m.t, "dpkg", args...)
}

// login returns the ids of a user of the machine.
func (m *machine) login(name string) (uid, gid uint32) {
	m.t.Helper()
	text, err := os.ReadFile(m.root + "/etc/passwd")
	if err != nil {
		m.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, ":"); len(f) > 3 && f[0] == name {
			u, errU := strconv.ParseUint(f[2], 10, 32)
			g, errG := strconv.ParseUint(f[3], 10, 32)
			if errU != nil || errG != nil {
				m.t.Fatal(line)
			}
			return uint32(u), uint32(g)
		}
	}
	m.t.Fatalf("there is no user %s:\n%s", name, text)
	return 0, 0
}

// sandbox starts a program in a root as systemd does for a unit: ProtectSystem=strict leaves a file
// system that cannot be written, but for some paths.
const sandbox = `
root=$1 uid=$2 gid=$3 writable=$4
shift 4
/usr/bin/mount --bind "$root" "$root" || exit 226
for path in $writable; do /usr/bin/mount --bind "$root$path" "$root$path" || exit 226; done
/usr/bin/mount -o remount,bind,ro "$root" || exit 226
exec /usr/sbin/chroot --userspec="$uid:$gid" --groups="$gid" "$root" "$@"
`

// mounts reports whether this machine lets a test have mounts of its own.
var mounts = sync.OnceValue(func() bool {
	return exec.Command("/usr/bin/unshare", "-m", "--propagation", "private", "/usr/bin/mount", "--bind", "/tmp", "/tmp").Run() == nil
})

// unit returns a unit's command with its settings: user, and which files it may write.
func (m *machine) unit(settings map[string][]string, env []string, args ...string) *exec.Cmd {
	m.t.Helper()
	if !mounts() {
		m.t.Log("units may write all files: there are no mounts")
		return m.command(env, args...)
	}
	writable := []string{"/tmp"} // PrivateTmp=yes
	for _, name := range settings["StateDirectory"] {
		writable = append(writable, "/var/lib/"+name)
	}
	for _, path := range strings.Fields(strings.Join(settings["ReadWritePaths"], " ")) {
		optional := strings.HasPrefix(path, "-")
		path = strings.TrimPrefix(path, "-")
		if _, err := os.Stat(m.root + path); err == nil || !optional {
			writable = append(writable, path)
		}
	}
	uid, gid := m.login("hamlet")
	cmd := exec.CommandContext(m.t.Context(), "/usr/bin/unshare", append([]string{
		"-m", "--propagation", "private", "/bin/sh", "-c", sandbox, "sh", m.root, fmt.Sprint(uid), fmt.Sprint(gid), strings.Join(writable, " "),
	}, args...)...)
	cmd.Dir, cmd.Env = "/", append([]string{}, env...)
	return cmd
}

// command returns a program that runs in the root as the user of the services.
func (m *machine) command(env []string, args ...string) *exec.Cmd {
	m.t.Helper()
	uid, gid := m.login("hamlet")
	cmd := exec.CommandContext(m.t.Context(), args[0], args[1:]...)
	cmd.Path, cmd.Err = args[0], nil
	cmd.Dir, cmd.Env = "/", env
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: m.root, Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return cmd
}

// A service is a unit's process.
type service struct {
	m      *machine
	unit   string
	cmd    *exec.Cmd
	output bytes.Buffer // until the process has ended
	notify *net.UnixConn
	ended  chan struct{} // closed when the process has ended
	err    error         // with which it ended
}

// start starts a unit as systemd does, as far as a root without systemd allows: its command,
// user, directories, variables, mask of files and socket of notifications.
func (m *machine) start(unit string) *service {
	m.t.Helper()
	return m.startWith(unit)
}

// startWith is start with sockets that systemd holds.
func (m *machine) startWith(unit string, sockets ...*os.File) *service {
	t := m.t
	t.Helper()
	settings := settingsOf(t, m.root, unit)
	uid, gid := m.login(settings["User"][0])
	for _, name := range settings["StateDirectory"] {
		dir := m.root + "/var/lib/" + name
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, int(uid), int(gid)); err != nil {
			t.Fatal(err)
		}
	}
	s := &service{m: m, unit: unit, ended: make(chan struct{})}
	socket := "/run/notify-" + unit
	var err error
	_ = os.Remove(m.root + socket)
	// The path of a socket is short, and that of a test's directory may be long.
	short, err := os.MkdirTemp("/tmp", "n")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	if err := os.Symlink(m.root+"/run", short+"/r"); err != nil {
		t.Fatal(err)
	}
	if s.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: short + "/r/notify-" + unit, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(m.root+socket, 0o777); err != nil {
		t.Fatal(err)
	}
	env := append([]string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=3000000"}, settings["Environment"]...)
	for _, file := range settings["EnvironmentFile"] {
		if text, err := os.ReadFile(m.root + strings.TrimPrefix(file, "-")); err == nil {
			env = append(env, strings.Fields(string(text))...)
		}
	}
	args := strings.Fields(settings["ExecStart"][0])
	if len(sockets) > 0 {
		env = append(env, fmt.Sprint("LISTEN_FDS=", len(sockets)))
		args = append([]string{activate(m)}, args...)
	}
	s.cmd = m.unit(settings, env, args...)
	s.cmd.ExtraFiles = sockets
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	before := syscall.Umask(0o077)
	err = s.cmd.Start()
	syscall.Umask(before)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(s.kill)
	return s
}

// await reads notifications until one has a line that begins so.
func (s *service) await(line string) {
	s.m.t.Helper()
	end := time.Now().Add(patience)
	for b := make([]byte, 4096); ; {
		ended := s.hasEnded() // before the last notification is read
		_ = s.notify.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		size, err := s.notify.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) && !ended && time.Now().Before(end) {
			continue
		}
		if err != nil {
			s.kill()
			s.m.t.Fatalf("%s says no %s:\n%s", s.unit, line, s.output.String())
		}
		if slices.ContainsFunc(strings.Split(string(b[:size]), "\n"), func(got string) bool { return strings.HasPrefix(got, line) }) {
			return
		}
	}
}

func (s *service) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

func (s *service) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// stop ends the service as systemd does.
func (s *service) stop() {
	s.m.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	s.await("STOPPING=1")
	select {
	case <-s.ended:
		if s.err != nil {
			s.m.t.Errorf("%s ends with %v:\n%s", s.unit, s.err, s.output.String())
		}
	case <-time.After(patience):
		s.kill()
		s.m.t.Errorf("%s does not end:\n%s", s.unit, s.output.String())
	}
}

// port returns an address of loopback that is free.
func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// An answer is what the test reads of one of /v1/score.
type answer struct {
	P     float64
	Model struct {
		Positions []int // one: how many events
		SHA256    string
	}
}

// ask sends a request and returns its answer.
func ask(t *testing.T, url, kind, token, body string) (a answer, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return a, err
	}
	return a, json.Unmarshal(text, &a)
}

// The life of a package: installed into an empty root, every unit started, upgraded with
// what was learnt and set, removed, purged.
func TestLife(t *testing.T) {
	m := newMachine(t)
	m.dpkg("-i", ours(t))
	uid, _ := m.login("hamlet")
	if info, err := os.Stat(m.root + "/run/hamlet"); err != nil || info.Mode().Perm() != 0o750 || info.Mode()&os.ModeSetgid == 0 || info.Sys().(*syscall.Stat_t).Uid != uid {
		t.Errorf("/run/hamlet: %v, %v", info, err)
	}
	m.groups()
	if info, err := os.Stat(m.root + "/etc/hamlet/hamlet.yaml"); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("hamlet.yaml: %v, %v", info, err)
	}

	// What an operator sets.
	natsAddr, web := port(t), port(t)
	config, err := os.ReadFile(m.root + "/etc/hamlet/hamlet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(config), "http: 127.0.0.1:9104", "http: "+web, 1)
	edited += fmt.Sprintf("\nlisten-nats: %s\ntable-bits: 12\nsave-every: 100ms\n", natsAddr)
	m.write("/etc/hamlet/hamlet.yaml", edited)
	m.write("/etc/hamlet/hamlet.env", "HAMLET_TOKEN=secret\n")
	user := m.command(nil, "/usr/bin/hamlet", "console", "user", "ann", "--roles", "look")
	user.Stdin = strings.NewReader("correct horse battery staple\n")
	line, err := user.Output()
	if err != nil {
		t.Fatalf("hamlet console user: %v", err)
	}
	m.write("/etc/hamlet/users.txt", string(line))
	m.secret("/etc/hamlet/users.txt")

	up := m.start("hamlet.service")
	up.await("READY=1")
	up.await("WATCHDOG=1")
	label := func(id, label, text string) {
		t.Helper()
		event := fmt.Sprintf(`{"id":%q,"source":"desk","label":%q,"text":%q}`, id, label, text)
		if _, err := ask(t, "http://"+web+"/v1/events", "application/json", "secret", event); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		label(fmt.Sprint("s", i), "spam", fmt.Sprintf("win a prize now %d", i))
		label(fmt.Sprint("h", i), "ham", fmt.Sprintf("lunch on friday %d", i))
	}
	if p, _ := scored(t, web, 40); p < 0.5 {
		t.Errorf("a prize is spam with %v", p)
	}
	m.kept("/var/lib/hamlet")
	m.others(natsAddr) // one of them teaches
	_, sum := scored(t, web, 41)
	m.backup(41, 41)
	m.backup(41, 41, "HAMLET_DATA=/var/lib/hamlet")

	// An upgrade keeps the settings and the model.
	up.stop()
	m.backup(41, 41, "HAMLET_DATA=/var/lib/hamlet")
	newer := *release
	newer.Version += ".1"
	m.dpkg("-i", debFile(t, &newer))
	if kept, err := os.ReadFile(m.root + "/etc/hamlet/hamlet.yaml"); err != nil || string(kept) != edited {
		t.Errorf("the upgrade changed hamlet.yaml (%v)", err)
	}
	up = m.start("hamlet.service")
	up.await("READY=1")
	if _, again := scored(t, web, 41); again != sum || sum == "" {
		t.Errorf("the model is %q, before the upgrade it was %q", again, sum)
	}
	up.stop()

	m.dpkg("-r", "hamlet")
	for path, kept := range map[string]bool{"/usr/bin/hamlet": false, "/usr/lib/systemd/system/hamlet.service": false, "/etc/hamlet/hamlet.yaml": true, "/var/lib/hamlet": true} {
		if _, err := os.Stat(m.root + path); (err == nil) != kept {
			t.Errorf("after the removal: %s: %v", path, err)
		}
	}
	m.dpkg("-P", "hamlet")
	var left []string
	_ = filepath.WalkDir(m.root, func(path string, _ os.DirEntry, _ error) error {
		if strings.Contains(strings.TrimPrefix(path, m.root), "hamlet") && !strings.Contains(path, "/run/notify-") {
			left = append(left, path)
		}
		return nil
	})
	if len(left) > 0 {
		t.Errorf("after the purge there are %q", left)
	}
}

// scored waits until answers come from a model of so many events, and returns what it says of a prize.
func scored(t *testing.T, web string, events int) (p float64, model string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		answer, err := ask(t, "http://"+web+"/v1/score", "text/plain", "secret", "win a prize")
		if err == nil && slices.Equal(answer.Model.Positions, []int{events}) {
			return answer.P, answer.Model.SHA256
		}
		if time.Now().After(end) {
			t.Fatalf("no score by a model of %d events: %+v, %v", events, answer, err)
		}
	}
}

// kept fails the test unless a directory has what deploy/INSTALL.md says, for its owner alone.
func (m *machine) kept(dir string) {
	m.t.Helper()
	for _, name := range []string{"logs/hamlet.events.default", "models", "nats", "passwords.json", "socket"} {
		info, err := os.Stat(filepath.Join(m.root, dir, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			m.t.Errorf("%s/%s: %v, %v", dir, name, info, err)
		}
	}
}

// groups fails the test if a mail server, which joins the group of /run/hamlet, can read
// hamlet's passwords.
func (m *machine) groups() {
	m.t.Helper()
	text, err := os.ReadFile(m.root + "/etc/group")
	if err != nil {
		m.t.Fatal(err)
	}
	mail := ""
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, ":"); f[0] == "hamlet-mail" {
			mail = f[2]
		}
	}
	group := func(path string) string {
		m.t.Helper()
		info, err := os.Stat(m.root + path)
		if err != nil {
			m.t.Fatal(err)
		}
		return fmt.Sprint(info.Sys().(*syscall.Stat_t).Gid)
	}
	_, own := m.login("hamlet")
	if at := group("/run/hamlet"); mail == "" || at != mail {
		m.t.Errorf("/run/hamlet belongs to the group %s, that of mail servers is %q", at, mail)
	}
	for _, path := range []string{"/etc/hamlet", "/etc/hamlet/hamlet.yaml"} {
		if at := group(path); at != fmt.Sprint(own) || at == mail {
			m.t.Errorf("%s belongs to the group %s, hamlet's is %d", path, at, own)
		}
	}
}

// backup runs the unit of backups, and looks at what it has made. Without env, and beside hamlet.service,
// it does so with the rights that the unit of 0.1.0 had as well.
func (m *machine) backup(events, offset int, env ...string) {
	m.t.Helper()
	settings := settingsOf(m.t, m.root, "hamlet-backup.service")
	dir := "/var/lib/" + settings["StateDirectory"][0]
	uid, gid := m.login("hamlet")
	if err := errors.Join(os.Mkdir(m.root+dir, 0o700), os.Chown(m.root+dir, int(uid), int(gid))); err != nil {
		m.t.Fatal(err)
	}
	old := maps.Clone(settings)
	old["ReadWritePaths"] = []string{"-/run/hamlet -/var/spool/postfix/hamlet"}
	ways := []map[string][]string{settings}
	if len(env) == 0 {
		ways = append(ways, old)
	}
	for _, way := range ways {
		out, err := m.unit(way, append(env, settings["Environment"]...), strings.Fields(settings["ExecStart"][0])...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "default, version ") ||
			!strings.Contains(string(out), fmt.Sprintf(": %d events up to offset %d,", events, offset)) || !strings.Contains(string(out), fmt.Sprintf("needed from offset %d on", offset)) {
			m.t.Fatalf("%s: %v\n%s", settings["ExecStart"][0], err, out)
		}
	}
	if out, err := m.command(nil, "/usr/bin/hamlet", "verify", dir).CombinedOutput(); err != nil || !strings.Contains(string(out), ": whole") {
		m.t.Errorf("hamlet verify: %v\n%s", err, out)
	}
	if err := os.RemoveAll(m.root + dir); err != nil { // a purge leaves backups
		m.t.Fatal(err)
	}
}

// servers starts a Kafka and a Redis until the test's end, and returns their addresses.
func servers(t *testing.T) (kafka, redis string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "servers")
	// The file is of this folder, and its packages are those of hamlet.
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "deploy/package/testdata/servers/main.go")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // it ends when that ends
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if _, err := fmt.Fscan(out, &kafka, &redis); err != nil {
		t.Fatal(err)
	}
	return kafka, redis
}

// others starts the other units beside hamlet.service: learner and scorer on servers of their own, and
// gateway and console on what hamlet.service has.
func (m *machine) others(natsAddr string) {
	t := m.t
	t.Helper()
	kafka, redis := servers(t)
	settings := fmt.Sprintf("HAMLET_KAFKA=%s\nHAMLET_REDIS=%s\nHAMLET_NATS=nats://%s\nHAMLET_TABLE_BITS=12\nHAMLET_SAVE_EVERY=100ms\n", kafka, redis, natsAddr)
	for _, name := range []string{"hamlet-learner@second", "hamlet-scorer@second"} {
		m.write("/etc/hamlet/"+name+".env", settings+"HAMLET_HTTP="+port(t)+"\n")
	}
	door := port(t)
	m.write("/etc/hamlet/hamlet-gateway.env", "HAMLET_NATS=nats://"+natsAddr+"\nHAMLET_HTTP="+door+
		"\nHAMLET_SPAMD=unix:/run/hamlet/gateway.sock\nHAMLET_ALLOW_LEARN=true\nHAMLET_TOKEN=secret\n")
	m.write("/etc/hamlet/hamlet-console.env", "HAMLET_NATS=nats://"+natsAddr+"\nHAMLET_LISTEN="+port(t)+"\n")

	learner := m.start("hamlet-learner@second.service")
	learner.await("READY=1")
	scorer := m.start("hamlet-scorer@second.service")
	scorer.await("READY=1") // a boot waits for no model
	scorer.await("STATUS=not ready: no model yet")
	m.write("/tmp/mail.txt", strings.Repeat("spam\twin a prize\nham\tlunch on friday\n", 10))
	ingest := m.command([]string{"XDG_RUNTIME_DIR=/run/hamlet"}, "/usr/bin/hamlet-ingest", "--model", "second", "--kafka", kafka, "--format", "text", "/tmp/mail.txt")
	if out, err := ingest.CombinedOutput(); err != nil {
		t.Fatalf("ingest: %v: %s", err, out)
	}
	scorer.await("STATUS=ready")
	gateway := m.start("hamlet-gateway.service")
	gateway.await("READY=1")
	folder, err := os.Stat(m.root + "/run/hamlet")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(m.root + "/run/hamlet/gateway.sock"); err != nil || info.Mode().Perm() != 0o660 ||
		info.Sys().(*syscall.Stat_t).Gid != folder.Sys().(*syscall.Stat_t).Gid {
		t.Errorf("the socket of spamd's door: %v, %v", info, err)
	}
	if _, err := ask(t, "http://"+door+"/v1/events", "application/json", "secret", `{"id":"gateway","source":"desk","label":"ham","text":"lunch"}`); err != nil {
		t.Errorf("a label at the gateway: %v", err)
	}
	console := m.start("hamlet-console.service")
	console.await("READY=1")
	for _, s := range []*service{console, gateway, scorer, learner} {
		s.stop()
	}
}
