package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// These tests install the package in a container whose PID 1 is systemd, so the units run under
// systemd itself with all that they ask for. They take minutes and Debian's docker.io and
// debootstrap: .ci/nightly runs them.

// A box is a container that systemd runs.
type box struct {
	t *testing.T
	d *docker
}

// newBox makes and boots a box. It has loopback and no other network.
func newBox(t *testing.T) *box {
	t.Helper()
	d := newDocker(t)
	if _, err := os.Stat("/sys/fs/cgroup/systemd"); err != nil {
		if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
			t.Skip("systemd needs control groups: mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd")
		}
	}
	d.debian()
	d.run("create", "--name", "box", "--hostname", "box", "--network", "none", "--cap-add", "SYS_ADMIN",
		"--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined", "--cgroupns", "host",
		"--volume", "/sys/fs/cgroup:/sys/fs/cgroup:rw", "--tmpfs", "/run:exec", "--tmpfs", "/run/lock",
		"--tmpfs", "/tmp:exec", "--stop-signal", "SIGRTMIN+3", "--env", "container=docker", "debian:init", "/sbin/init")
	b := &box{t, d}
	b.boot()
	return b
}

// boot starts the box and waits until all its units run.
func (b *box) boot() {
	b.t.Helper()
	began := time.Now()
	b.d.run("start", "box")
	b.until("systemctl is-system-running", "running")
	b.t.Logf("systemd says running after %v", time.Since(began).Round(10*time.Millisecond))
	b.healthy()
}

// healthy fails the test if a unit has failed.
func (b *box) healthy() {
	b.t.Helper()
	if failed := b.sh("systemctl --failed --no-legend --plain"); failed != "" {
		b.t.Errorf("units failed:\n%s\n%s", failed, b.sh("journalctl -b --no-pager -p 4"))
	}
}

// try runs a script of the shell as root and returns what it prints.
func (b *box) try(script string) (string, error) {
	out, err := b.d.command("exec", "box", "sh", "-ec", script).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// sh is try for what has to succeed.
func (b *box) sh(script string) string {
	b.t.Helper()
	out, err := b.try(script)
	if err != nil {
		b.t.Fatalf("%s: %v: %s\n%s", script, err, out, b.journal())
	}
	return out
}

// journal returns the last lines of the journal.
func (b *box) journal() string {
	return b.d.try("exec", "box", "journalctl", "-b", "--no-pager", "-n", "50")
}

// until waits until a script prints a text.
func (b *box) until(script, want string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; {
		got, err := b.try(script)
		if got == want {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s says %q (%v), want %q\n%s", script, got, err, want, b.journal())
		}
		<-time.After(100 * time.Millisecond)
	}
}

// put writes a file of the box.
func (b *box) put(path, text string) {
	b.t.Helper()
	cmd := b.d.command("exec", "-i", "box", "sh", "-ec", `cat >"$1"`, "sh", path)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("%s: %v: %s", path, err, out)
	}
}

// install gives dpkg a package.
func (b *box) install(file string) {
	b.t.Helper()
	b.d.run("cp", file, "box:/root/hamlet.deb")
	out := b.sh("DEBIAN_FRONTEND=noninteractive dpkg -i /root/hamlet.deb")
	if strings.Contains(strings.ToLower(out), "warning") || strings.Contains(out, "ailed") {
		b.t.Errorf("dpkg -i says:\n%s", out)
	}
}

// tell appends lines to the settings of hamlet.service.
func (b *box) tell(lines string) {
	b.t.Helper()
	b.put("/root/lines", lines)
	b.sh("cat /root/lines >>/etc/hamlet/hamlet.yaml; echo HAMLET_TOKEN=secret >/etc/hamlet/hamlet.env")
}

// post sends a request to the HTTP door.
func (b *box) post(path, kind, body string) (a answer, err error) {
	cmd := b.d.command("exec", "-i", "box", "curl", "-sS", "--fail-with-body", "--max-time", "60",
		"--data-binary", "@-", "-H", "Authorization: Bearer secret", "-H", "Content-Type: "+kind,
		"http://127.0.0.1:9104"+path)
	cmd.Stdin = strings.NewReader(body)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return a, fmt.Errorf("%s: %w: %s", path, err, text)
	}
	if len(text) == 0 {
		return a, nil
	}
	return a, json.Unmarshal(text, &a)
}

// label teaches one text, which has been acknowledged when it returns.
func (b *box) label(n int) {
	b.t.Helper()
	event := fmt.Sprintf(`{"id":"%d","source":"desk","label":"spam","text":"win a prize now %[1]d"}`, n)
	if n%2 == 0 {
		event = fmt.Sprintf(`{"id":"%d","source":"desk","label":"ham","text":"lunch on friday %[1]d"}`, n)
	}
	if _, err := b.post("/v1/events", "application/json", event); err != nil {
		b.t.Fatal(err)
	}
}

// scored waits for an answer by a model of so many events.
func (b *box) scored(events int) (p float64, sum string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; {
		a, err := b.post("/v1/score", "text/plain", "win a prize")
		if err == nil && len(a.Model.Positions) == 1 && a.Model.Positions[0] == events {
			return a.P, a.Model.SHA256
		}
		if time.Now().After(end) {
			b.t.Fatalf("no score by a model of %d events: %+v, %v\n%s", events, a, err, b.journal())
		}
		<-time.After(100 * time.Millisecond)
	}
}

// relearnt waits until this release's learning of the whole log answers, and returns its model's SHA-256.
func (b *box) relearnt(events int) string {
	b.t.Helper()
	b.until("journalctl --no-pager -o cat -u hamlet.service | grep -o 'the log is learnt again' | tail -n 1", "the log is learnt again")
	_, sum := b.scored(events)
	return sum
}

// replayed fails the test unless a replay of the log makes the model.
func (b *box) replayed(sum string, events int, model string) {
	b.t.Helper()
	out := b.sh(`rm -f /tmp/log.jsonl.zst
		runuser -u hamlet -- env XDG_RUNTIME_DIR=/run/hamlet hamlet log export /tmp/log.jsonl.zst >/dev/null 2>&1
		hamlet eval --json --log /tmp/log.jsonl.zst ` + model + ` 2>/dev/null`)
	var r replay
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.SHA256 != sum || r.Events != int64(events) {
		b.t.Errorf("a replay of %d events makes %s (%v), the model is %s of %d", r.Events, r.SHA256, err, sum, events)
	}
}

// pid returns the main process of a unit.
func (b *box) pid(unit string) int {
	b.t.Helper()
	n, err := strconv.Atoi(b.sh("systemctl show -P MainPID " + unit))
	if err != nil || n == 0 {
		b.t.Fatalf("%s has the process %d, %v", unit, n, err)
	}
	return n
}

// kill kills a unit's process without a warning.
func (b *box) kill(unit string) {
	b.t.Helper()
	b.sh(fmt.Sprint("kill -KILL ", b.pid(unit)))
}

// A probe is a unit of hamlet's, under the settings that all its services share. It tries what
// they forbid, and says what it could do.
const probe = `
can() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name"; fi; }
for dir in / /etc /usr /var/lib /var/lib/hamlet /root /home /sys/fs/cgroup /run; do
  can "writes $dir" touch "$dir/probe"
done
can "reads homes" ls /root/lines
can "mounts" mount -t tmpfs tmpfs /tmp
can "makes devices" mknod /tmp/null c 1 3
can "makes namespaces" unshare -U true
can "makes setuid" sh -c 'cp /bin/true /tmp/suid && chmod 4755 /tmp/suid'
can "sees the disk" ls /dev/vda /dev/sda /dev/mem
can "sets the clock" date -s '2001-01-01'
can "sees others" test -d /proc/1/fd
can "is less nice" sh -c 'test "$(nice -n -5 nice)" -lt 0'
touch /run/hamlet/probe && echo "writes /run/hamlet"
touch /tmp/probe && echo "writes /tmp"
rm /run/hamlet/probe
`

// confined fails the test unless the limits of the unit are in force.
func (b *box) confined(unit string) {
	b.t.Helper()
	for key, want := range map[string]string{
		"ProtectSystem": "strict", "ProtectHome": "yes", "NoNewPrivileges": "yes", "PrivateDevices": "yes",
		"PrivateTmp": "yes", "DevicePolicy": "closed", "ProtectProc": "invisible", "MemoryDenyWriteExecute": "yes",
		"CapabilityBoundingSet": "", "User": "hamlet", "UMask": "0077", "LimitNOFILE": "65536", "Type": "notify",
		"RestartUSec": "5s", "WatchdogUSec": "30s",
	} {
		if got := b.sh("systemctl show -P " + key + " " + unit); got != want {
			b.t.Errorf("%s of %s is %q, want %q", key, unit, got, want)
		}
	}
	calls := " " + b.sh("systemctl show -P SystemCallFilter "+unit) + " "
	if got := calls; strings.Contains(got, "~") || strings.Contains(got, " mount ") || !strings.Contains(got, " openat ") {
		b.t.Errorf("%s may call %s", unit, got)
	}
	status := b.sh(fmt.Sprintf("cat /proc/%d/status", b.pid(unit)))
	for _, want := range []string{
		"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
	} {
		if !strings.Contains(status, want) {
			b.t.Errorf("%s has no %q:\n%s", unit, want, status)
		}
	}
	level := b.sh("systemd-analyze security --no-pager " + unit + " | tail -1")
	memory := b.sh("systemctl show -p MemoryCurrent -p MemoryMax " + unit)
	b.t.Logf("%s: %s; %s", unit, strings.ReplaceAll(memory, "\n", " "), level)
	if !strings.Contains(level, "OK") {
		b.t.Errorf("systemd-analyze says %s", level)
	}
}

// quiet fails the test if the journal says that something was refused to a unit of hamlet.
func (b *box) quiet() {
	b.t.Helper()
	const words = "denied|not permitted|read-only file|SIGSYS|Unknown key|Failed to"
	if said, err := b.try("journalctl -b --no-pager -u 'hamlet*' | grep -iE '" + words + "'"); err == nil {
		b.t.Errorf("the journal:\n%s", said)
	}
}

// The life of the package under systemd: installed, started, confined, killed, restarted with
// requests at the door, rebooted, upgraded, removed, purged. No label that was acknowledged is
// lost, and the model is always the replay of the log.
func TestInit(t *testing.T) {
	b := newBox(t)
	b.install(ours(t))
	running, _ := b.try("systemctl is-active hamlet.service hamlet.socket hamlet-backup.timer")
	if running != "inactive\ninactive\ninactive" {
		t.Errorf("after the installation: %s", running)
	}
	if said := b.sh(`cd /usr/lib/systemd/system
		systemd-analyze verify --man=no hamlet*.service hamlet*.socket hamlet*.timer 2>&1 | grep hamlet || :`); said != "" {
		t.Errorf("systemd-analyze verify says:\n%s", said)
	}
	const model = "--table-bits 12"
	b.tell("\ntable-bits: 12\nsave-every: 100ms\n")
	b.sh("systemctl enable --now hamlet.socket hamlet.service 2>&1")
	events := 0
	teach := func(n int) {
		t.Helper()
		for range n {
			events++
			b.label(events)
		}
	}
	teach(10)
	if p, _ := b.scored(events); p < 0.5 {
		t.Errorf("a prize is spam with %v", p)
	}
	b.confined("hamlet.service")
	b.probe()

	// Killed, it is started again. Who asks meanwhile waits at the door.
	teach(1)
	b.kill("hamlet.service")
	began := time.Now()
	teach(1)
	t.Logf("a label that came after kill -9 was acknowledged after %v", time.Since(began).Round(10*time.Millisecond))
	_, sum := b.scored(events)
	b.replayed(sum, events, model)
	if n := b.sh("systemctl show -P NRestarts hamlet.service"); n != "1" {
		t.Errorf("hamlet.service was restarted %s times", n)
	}

	// The same with an orderly restart.
	restarted := make(chan error, 1)
	go func() {
		_, err := b.try("systemctl restart hamlet.service")
		restarted <- err
	}()
	teach(5)
	if err := <-restarted; err != nil {
		t.Error(err)
	}
	b.scored(events)

	// A backup of the running service, and of a stopped one.
	b.sh("systemctl start hamlet-backup.service")
	b.sh("ls /var/lib/hamlet-backup/* >/dev/null")

	// A reboot.
	_, _ = b.try("systemctl reboot")
	for end := time.Now().Add(patience); b.d.run("inspect", "-f", "{{.State.Running}}", "box") != "false"; {
		if time.Now().After(end) {
			t.Fatal("it does not go down")
		}
		<-time.After(100 * time.Millisecond)
	}
	b.boot()
	_, sum = b.scored(events)
	b.replayed(sum, events, model)
	teach(1)
	_, sum = b.scored(events)

	// An upgrade restarts what runs, and starts nothing else.
	before := b.pid("hamlet.service")
	newer := *release
	newer.Version += ".1"
	b.install(debFile(t, &newer))
	b.until(fmt.Sprintf(`test "$(systemctl show -P MainPID hamlet.service)" != %d
		systemctl is-active hamlet.service`, before), "active")
	if _, again := b.scored(events); again != sum {
		t.Errorf("after the upgrade the model is %s, it was %s", again, sum)
	}
	running, _ = b.try("systemctl is-active hamlet-gateway.service hamlet-console.service")
	if running != "inactive\ninactive" {
		t.Errorf("after the upgrade: %s", running)
	}
	b.quiet()
	b.healthy()

	// Removed: what was learnt stays. Purged: backups and the user stay.
	b.sh("dpkg -r hamlet")
	if units := b.sh("systemctl list-units --no-legend --plain 'hamlet*' | grep -v slice || :"); units != "" {
		t.Errorf("after the removal: %s", units)
	}
	b.sh("test -d /var/lib/hamlet/logs; test -f /etc/hamlet/hamlet.env; test ! -e /usr/bin/hamlet; ! pgrep -x hamlet")
	b.sh("dpkg -P hamlet")
	left := b.sh("find / -xdev -path /root -prune -o -name '*hamlet*' -print | sort")
	if want := "/var/lib/hamlet-backup"; left != want {
		t.Errorf("after the purge there is\n%s\nwant %s", left, want)
	}
	b.sh("id hamlet && systemctl is-system-running")

	b.from010()
}

// probe runs the probe.
func (b *box) probe() {
	b.t.Helper()
	b.put("/usr/local/bin/probe", "#!/bin/sh\n"+probe)
	b.put("/etc/systemd/system/hamlet-probe.service", "[Service]\nExecStart=/usr/local/bin/probe\n")
	b.sh(`chmod 755 /usr/local/bin/probe; mkdir -p /etc/systemd/system/hamlet-probe.service.d
		printf '[Service]\nType=oneshot\nWatchdogSec=0\nRestart=no\n' >/etc/systemd/system/hamlet-probe.service.d/task.conf
		systemctl daemon-reload`)
	b.sh("systemctl start hamlet-probe.service")
	could := b.sh("journalctl --sync; journalctl --no-pager -o cat -t probe")
	if want := "writes /run/hamlet\nwrites /tmp"; could != want {
		b.t.Errorf("a service of hamlet can\n%s\nwant\n%s", could, want)
	}
	b.sh("rm -r /usr/local/bin/probe /etc/systemd/system/hamlet-probe.*; systemctl daemon-reload")
}

// from010 upgrades the data of 0.1.0. There is no package of it: its folder is put in place.
func (b *box) from010() {
	t := b.t
	t.Helper()
	b.install(ours(t))
	b.sh("install -d -m 700 -o hamlet -g hamlet /var/lib/hamlet")
	b.d.run("cp", "../../cmd/internal/service/machine/from010/testdata/v0.1.0.tar.gz", "box:/root/old.tar.gz")
	b.put("/var/lib/hamlet/passwords.json", `{"kafka":"K","redis":"R","nats":"N","client":"C"}`)
	b.sh(`tar xzf /root/old.tar.gz -C /var/lib/hamlet
		chown -R hamlet: /var/lib/hamlet; chmod 600 /var/lib/hamlet/passwords.json`)
	b.tell("\nlisten-kafka: 127.0.0.1:9092\nlisten-redis: 127.0.0.1:6379\n" +
		"table-bits: 8\nexperts: lean\nkeep-versions: 5\n")
	b.sh("systemctl start hamlet.service")
	if _, sum := b.scored(20); sum != from010Pinned {
		t.Errorf("the pinned model is %s, 0.1.0 had %s", sum, from010Pinned)
	}
	b.sh("runuser -u hamlet -- env XDG_RUNTIME_DIR=/run/hamlet hamlet model unpin")
	sum := b.relearnt(42)
	b.replayed(sum, 41, "--table-bits 8 --experts lean") // a record of the log was a dead letter
	b.label(1)
	_, sum = b.scored(43)
	b.kill("hamlet.service")
	if _, again := b.scored(43); again != sum {
		t.Errorf("the model is %s, before the kill it was %s", again, sum)
	}
	b.quiet()
	b.sh("dpkg -P hamlet; ! test -e /var/lib/hamlet")
	b.healthy()
}

// The units for real servers, which run beside them.
func TestInitWithServers(t *testing.T) {
	for _, program := range []string{"java", "redis-server", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("real servers: %v", err)
		}
	}
	b := newBox(t)
	b.install(ours(t))
	// The servers are this machine's, in the network of the box.
	dir := t.TempDir()
	pid := b.d.run("inspect", "-f", "{{.State.Pid}}", "box")
	servers := func(args ...string) string {
		out, err := exec.Command("nsenter", append([]string{"-t", pid, "-n", "../servers"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("deploy/servers %s: %v: %s", args, err, out)
		}
		return string(out)
	}
	command(t, "../servers", "fetch") // the box reaches no mirror
	t.Cleanup(func() { _ = exec.Command("nsenter", "-t", pid, "-n", "../servers", "stop", dir).Run() })
	servers("start", dir)
	const addresses = "kafka: 127.0.0.1:29092\nnats: nats://127.0.0.1:24222\n"
	b.put("/etc/hamlet/learner.yaml", addresses+"redis: 127.0.0.1:26379\nreplication: 1\nalert-replicas: 1\n"+
		"table-bits: 12\nsave-every: 100ms\nhttp: 127.0.0.1:9101\n")
	b.put("/etc/hamlet/scorer.yaml", "redis: 127.0.0.1:26379\nnats: nats://127.0.0.1:24222\nhttp: 127.0.0.1:9102\n")
	b.put("/etc/hamlet/gateway.yaml", addresses+
		"allow-learn: true\nhttp: 127.0.0.1:9104\nspamd: unix:/run/hamlet/spamd.sock\n")
	b.sh(`chgrp hamlet /etc/hamlet/*.yaml; chmod 640 /etc/hamlet/*.yaml
		echo HAMLET_TOKEN=secret >/etc/hamlet/hamlet-gateway.env`)
	units := []string{"hamlet-learner@default.service", "hamlet-scorer@default.service", "hamlet-gateway.service"}
	for _, unit := range units {
		b.sh("systemctl enable --now " + unit + " 2>&1")
	}
	events := 0
	teach := func() {
		t.Helper()
		events++
		for end := time.Now().Add(patience); ; {
			event := fmt.Sprintf(`{"id":"%d","source":"desk","label":"spam","text":"win a prize now %[1]d"}`, events)
			_, err := b.post("/v1/events", "application/json", event)
			if err == nil {
				return
			}
			if time.Now().After(end) {
				t.Fatal(errors.Join(err, errors.New("no label is taken")))
			}
			<-time.After(100 * time.Millisecond)
		}
	}
	for range 5 {
		teach()
	}
	b.scored(events)
	for _, unit := range units {
		b.confined(unit)
		b.kill(unit)
		teach()
		b.scored(events)
		b.until("systemctl is-active "+unit, "active")
	}
	b.quiet()
	b.healthy()
	b.sh("dpkg -P hamlet; test -z \"$(pgrep hamlet)\"; test -z \"$(ls /etc/systemd/system/*.wants | grep hamlet)\"")
}
