package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// release010 is the commit of hamlet 0.1.0.
const release010 = "0b917fe"

// package010 returns hamlet's sources of 0.1.0, and the package that they make.
func package010(t *testing.T) (sources, file string) {
	t.Helper()
	sources, out := filepath.Join(t.TempDir(), "hamlet"), t.TempDir()
	command(t, "git", "clone", "-q", "--no-checkout", "../..", sources)
	command(t, "git", "-C", sources, "checkout", "-q", release010)
	build := exec.CommandContext(t.Context(), "go", "run", ".", "--out", out, "--arch", host, "deb")
	build.Dir = filepath.Join(sources, "deploy/package")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the package of 0.1.0: %v\n%s", err, said)
	}
	files, err := filepath.Glob(filepath.Join(out, "hamlet_0.1.0*.deb"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v: want one package of 0.1.0", files, err)
	}
	return sources, files[0]
}

// A disk is a file with a file system, on which a machine has its root.
type disk struct {
	t         *testing.T
	image, at string
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a disk of its own needs root")
	}
	d := &disk{t, filepath.Join(t.TempDir(), "disk"), t.TempDir()}
	command(t, "truncate", "-s", "2G", d.image)
	command(t, "mkfs.ext4", "-q", "-F", d.image)
	if out, err := exec.Command("mount", "-o", "loop", d.image, d.at).CombinedOutput(); err != nil {
		t.Skipf("a disk of its own needs loop devices: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", d.at).Run() })
	return d
}

// written returns the device's counters of writes, of sectors and of what is in flight.
func (d *disk) written() string {
	d.t.Helper()
	device := strings.TrimSpace(command(d.t, "findmnt", "-no", "SOURCE", d.at))
	fields := strings.Fields(command(d.t, "cat", filepath.Join("/sys/block", filepath.Base(device), "stat")))
	return strings.Join([]string{fields[4], fields[6], fields[8]}, " ")
}

// cut takes the power from a service and its disk. What was written to the device is there afterwards, and
// nothing that was in memory.
func (d *disk) cut(s *service) {
	d.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		d.t.Fatal(err)
	}
	copied := d.image + ".copy"
	for tries := 0; ; tries++ {
		before := d.written()
		command(d.t, "cp", "--sparse=always", d.image, copied)
		if d.written() == before {
			break
		}
		if tries == 50 { // the copy mixes two moments
			d.t.Fatal("the kernel writes to the disk all the time: it cannot be copied")
		}
	}
	s.kill()
	_ = s.notify.Close()
	command(d.t, "umount", "-l", d.at)
	if err := os.Rename(copied, d.image); err != nil {
		d.t.Fatal(err)
	}
	var exit *exec.ExitError
	if out, err := exec.Command("e2fsck", "-p", d.image).CombinedOutput(); err != nil &&
		!(errors.As(err, &exit) && exit.ExitCode() == 1) { // status 1: it has mended the disk
		d.t.Fatalf("e2fsck: %v: %s", err, out)
	}
	command(d.t, "mount", "-o", "loop", d.image, d.at)
}

// An operator is who set 0.1.0 up, and changes nothing afterwards but the package.
type operator struct {
	*machine
	web     string
	sources string // of 0.1.0
	acked   []string
}

// label sends a label, and notes it once it is acknowledged.
func (o *operator) label(id, label, text string) error {
	event := fmt.Sprintf(`{"id":%q,"source":"desk","label":%q,"text":%q}`, id, label, text)
	_, err := ask(o.t, "http://"+o.web+"/v1/events", "application/json", "secret", event)
	if err == nil {
		o.acked = append(o.acked, id)
	}
	return err
}

// teach sends n labels.
func (o *operator) teach(what string, n int) {
	o.t.Helper()
	for i := range n {
		label, text := "spam", "win a prize"
		if i%2 == 1 {
			label, text = "ham", "lunch on friday"
		}
		if err := o.label(fmt.Sprint(what, i), label, fmt.Sprintf("%s now %d", text, i)); err != nil {
			o.t.Fatal(err)
		}
	}
}

// logged returns the ids in the log.
func (o *operator) logged() (ids []string) {
	o.t.Helper()
	const file = "/tmp/log.jsonl"
	out, err := o.command([]string{"XDG_RUNTIME_DIR=/run/hamlet"}, "/usr/bin/hamlet", "log", "export", file).CombinedOutput()
	if err != nil {
		o.t.Fatalf("hamlet log export: %v\n%s", err, out)
	}
	text, err := os.ReadFile(o.root + file)
	if err := errors.Join(err, os.Remove(o.root+file)); err != nil {
		o.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var record struct {
			Headers []struct {
				Key   string
				Value []byte
			}
		}
		if err := json.Unmarshal(line, &record); err != nil {
			o.t.Fatal(err)
		}
		for _, h := range record.Headers {
			if h.Key == "ce_id" {
				ids = append(ids, string(h.Value))
			}
		}
	}
	return ids
}

// timer runs what the timer starts, which the operator of 0.1.0 has enabled, and returns the backups.
func (o *operator) timer() (backups []string) {
	o.t.Helper()
	link := o.root + "/etc/systemd/system/timers.target.wants/hamlet-backup.timer"
	unit, err := os.Readlink(link)
	if err != nil {
		o.t.Fatal(err)
	}
	if _, err := os.Stat(o.root + unit); err != nil {
		o.t.Errorf("the timer that was enabled: %v", err)
	}
	s := o.start("hamlet-backup.service")
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.kill()
		o.t.Fatalf("hamlet-backup.service does not end:\n%s", s.output.String())
	}
	_ = s.notify.Close()
	if s.err != nil {
		o.t.Fatalf("hamlet-backup.service: %v\n%s", s.err, s.output.String())
	}
	backups, err = filepath.Glob(o.root + "/var/lib/hamlet-backup/*.json")
	if err != nil {
		o.t.Fatal(err)
	}
	for i, path := range backups {
		backups[i] = strings.TrimPrefix(path, o.root)
	}
	return backups
}

// examples runs the examples of 0.1.0: one over HTTP, and with the packages that HAMLET_EXAMPLES has, two over NATS.
func (o *operator) examples() {
	o.t.Helper()
	packages, python := os.Getenv("HAMLET_EXAMPLES"), "python3"
	env := append(os.Environ(), "HAMLET_HTTP=http://"+o.web, "HAMLET_TOKEN=secret")
	names := map[string]string{"label_http": `^1\n$`}
	if packages == "" {
		o.t.Log("HAMLET_EXAMPLES names no folder: the examples over NATS do not run")
	} else {
		python = packages + "/venv/bin/python"
		env = append(env, "NODE_PATH="+packages+"/node_modules")
		names["ask_nats"] = `^(spam|ham|unsure) 0\.\d+ \[`
		names["alerts"] = `^$` // none, and no error
		said, err := o.command([]string{"XDG_RUNTIME_DIR=/run/hamlet"}, "/usr/bin/hamlet", "env", "--for", "sh").Output()
		if err != nil {
			o.t.Fatalf("hamlet env: %v", err)
		}
		for _, m := range regexp.MustCompile(`(?m)^export (\w+)='(.*)'$`).FindAllStringSubmatch(string(said), -1) {
			env = append(env, m[1]+"="+m[2])
		}
	}
	for name, wanted := range names {
		for _, program := range [][]string{{python, name + ".py"}, {"node", name + ".cjs"}} {
			cmd := exec.CommandContext(o.t.Context(), program[0], filepath.Join(o.sources, "deploy/examples", program[1]))
			cmd.Env = env
			var said bytes.Buffer
			cmd.Stderr = &said
			out, err := cmd.Output()
			if err != nil || !regexp.MustCompile(wanted).Match(out) {
				o.t.Errorf("%s of 0.1.0 prints %q, want %s: %v: %s", program[1], out, wanted, err, &said)
			}
		}
	}
}

// The package of 0.1.0 is installed, filled, upgraded, loses its power, and is purged. What it had learnt has
// the same bytes afterwards, and no label that was acknowledged is lost, by either program. Its timer, which was
// enabled, and its examples do under the new package what they did.
func TestPackageOf010(t *testing.T) {
	if os.Getenv("HAMLET_NIGHTLY") == "" {
		t.Skip("the package of 0.1.0 takes minutes to build: set HAMLET_NIGHTLY=1")
	}
	d := newDisk(t)
	o := &operator{machine: machineIn(t, d.at), web: port(t)}
	var old string
	o.sources, old = package010(t)
	o.dpkg("-i", old)
	config, err := os.ReadFile(o.root + "/etc/hamlet/hamlet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	settings := strings.Replace(string(config), "http: 127.0.0.1:9104", "http: "+o.web, 1) +
		fmt.Sprintf("\nlisten-kafka: %s\nlisten-redis: %s\nlisten-nats: %s\n", port(t), port(t), port(t)) +
		"table-bits: 12\nsave-every: 100ms\n"
	o.write("/etc/hamlet/hamlet.yaml", settings)
	o.write("/etc/hamlet/hamlet.env", "HAMLET_TOKEN=secret\n")
	command(t, "systemctl", "--root="+o.root, "enable", "hamlet-backup.timer")

	up := o.start("hamlet.service")
	up.await("READY=1")
	o.teach("old", 60)
	scored(t, o.web, 60)
	before := o.timer()
	if len(before) != 1 {
		t.Fatalf("0.1.0 makes the backups %q", before)
	}
	up.stop()
	_ = up.notify.Close()

	o.dpkg("-i", ours(t))
	if kept, err := os.ReadFile(o.root + "/etc/hamlet/hamlet.yaml"); err != nil || string(kept) != settings {
		t.Errorf("the upgrade changed hamlet.yaml (%v)", err)
	}
	up = o.start("hamlet.service")
	up.await("READY=1")
	o.relearnt(o.web, 60, "--table-bits", "12")
	o.examples()
	o.acked = append(o.acked, "python-http", "node-http")
	backups := o.timely(before)
	command(t, "sync", "-f", o.root) // what the operator wrote, and dpkg

	// The power fails while labels come, three times.
	for i := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var sending sync.WaitGroup
		acked := len(o.acked)
		sending.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := o.label(fmt.Sprintf("cut%d.%d", i, n), "spam", fmt.Sprint("win a prize ", n)); err != nil {
					return
				}
			}
		})
		time.Sleep(2 * time.Second)
		d.cut(up)
		cancel()
		sending.Wait()
		if len(o.acked) < acked+10 {
			t.Fatalf("before loss of power %d only %d labels were acknowledged", i+1, len(o.acked)-acked)
		}
		http.DefaultClient.CloseIdleConnections()
		// What dpkg has installed is whole.
		command(t, "dpkg", "--root="+o.root, "--audit")
		said := strings.TrimSpace(command(t, "dpkg", "--root="+o.root, "--verify", "hamlet"))
		if said != "??5?????? c /etc/hamlet/hamlet.yaml" { // which the operator has changed
			t.Errorf("after the loss of power files of the package differ:\n%s", said)
		}
		up = o.start("hamlet.service")
		up.await("READY=1")
		ids := o.logged()
		there := map[string]bool{}
		for _, id := range ids {
			there[id] = true
		}
		if lost := slices.DeleteFunc(slices.Clone(o.acked), func(id string) bool { return there[id] }); len(lost) > 0 {
			t.Errorf("loss of power %d loses what was acknowledged: %q", i+1, lost)
		}
		_, sum := scored(t, o.web, len(ids))
		if r := o.replay("--table-bits", "12"); r.SHA256 != sum {
			t.Errorf("after loss of power %d the model is %s, a replay of its log %s", i+1, sum, r.SHA256)
		}
	}
	t.Logf("%d labels were acknowledged, %d are in the log", len(o.acked), len(o.logged()))
	o.timely(backups)
	up.stop()

	o.dpkg("-P", "hamlet")
	left := strings.Fields(command(t, "find", o.root, "-path", "*/run/notify-*", "-prune", "-o", "-name", "*hamlet*", "-print"))
	if want := o.root + "/var/lib/hamlet-backup"; len(left) != 1 || left[0] != want {
		t.Errorf("after the purge there is %q, want %q", left, want)
	}
}

// timely runs the timer, and returns the backups: all that there were, which are whole, and a new one.
func (o *operator) timely(before []string) (after []string) {
	o.t.Helper()
	after = o.timer()
	for _, path := range before {
		if !slices.Contains(after, path) {
			o.t.Errorf("the backup %s is gone", path)
		}
	}
	if len(after) <= len(before) {
		o.t.Errorf("the timer makes no backup: %q, there were %q", after, before)
	}
	if out, err := o.command(nil, "/usr/bin/hamlet", "verify", "/var/lib/hamlet-backup").CombinedOutput(); err != nil {
		o.t.Errorf("hamlet verify: %v\n%s", err, out)
	}
	return after
}
