package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A docker is a daemon of a test: its socket, its images and its containers are in one folder,
// which goes with the test.
type docker struct {
	t   *testing.T
	dir string
}

// newDocker starts Debian's dockerd. It makes no bridge and no rule of a firewall by itself.
func newDocker(t *testing.T) *docker {
	t.Helper()
	if os.Getenv("HAMLET_NIGHTLY") == "" {
		t.Skip("containers take minutes: set HAMLET_NIGHTLY=1")
	}
	if os.Getuid() != 0 {
		t.Skip("dockerd needs root")
	}
	for _, program := range []string{"dockerd", "docker"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%v: apt-get install docker.io", err)
		}
	}
	dir, err := os.MkdirTemp("/tmp", "d") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	d := &docker{t, dir}
	t.Cleanup(d.clear)
	log, err := os.Create(dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.group()
	// Not with the test's context, which ends before the containers are removed.
	daemon := exec.Command("dockerd", "-H", "unix://"+dir+"/sock", "--data-root", dir+"/data", "--exec-root", dir+"/exec",
		"--pidfile", dir+"/pid", "--bridge=none", "--iptables=false", "--ip6tables=false",
		"--cgroup-parent", d.parent())
	daemon.Stdout, daemon.Stderr = log, log
	// A test that is killed takes the daemon along, and a daemon that ends stops its containers.
	daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = daemon.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		if ids := strings.Fields(d.try("ps", "-aq")); len(ids) > 0 {
			d.try(append([]string{"rm", "-f", "-v"}, ids...)...)
		}
		// Their networks are bridges of this machine.
		for _, name := range strings.Fields(d.try("network", "ls", "-q", "--filter", "type=custom")) {
			d.try("network", "rm", name)
		}
		_ = daemon.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(patience):
			_ = syscall.Kill(-daemon.Process.Pid, syscall.SIGKILL)
			<-ended
		}
	})
	for end := time.Now().Add(patience); exec.Command("docker", "-H", "unix://"+dir+"/sock", "info").Run() != nil; {
		select {
		case <-ended:
			text, _ := os.ReadFile(log.Name())
			t.Skipf("dockerd does not run on this machine:\n%s", text)
		case <-time.After(100 * time.Millisecond):
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("dockerd does not answer:\n%s", text)
		}
	}
	return d
}

// parent is the control group of the containers.
func (d *docker) parent() string { return "/hamlet-" + filepath.Base(d.dir) }

// group makes the control group where groups are of version 1. Without a weight all containers together
// get as much of the processor as one process beside them.
func (d *docker) group() {
	dir := "/sys/fs/cgroup/cpu" + d.parent()
	if _, err := os.Stat("/sys/fs/cgroup/cpu/cpu.shares"); err != nil {
		return
	}
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(dir+"/cpu.shares", []byte("8192"), 0o644)); err != nil {
		d.t.Logf("the containers may be slow: %v", err)
	}
}

// ungroup removes the control group of each hierarchy, with what systemd made below it.
func (d *docker) ungroup() {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*" + d.parent())
	for _, root := range append(roots, "/sys/fs/cgroup"+d.parent()) {
		var dirs []string
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for _, dir := range slices.Backward(dirs) {
			_ = syscall.Rmdir(dir)
		}
	}
}

// clear removes the folder and what is mounted in it.
func (d *docker) clear() {
	d.ungroup()
	text, _ := os.ReadFile("/proc/mounts")
	lines := strings.Split(string(text), "\n")
	for _, line := range slices.Backward(lines) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], d.dir+"/") {
			_ = syscall.Unmount(f[1], syscall.MNT_DETACH)
		}
	}
	if err := os.RemoveAll(d.dir); err != nil {
		d.t.Error(err)
	}
}

// command returns docker with arguments.
func (d *docker) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	d.t.Cleanup(cancel)
	return exec.CommandContext(ctx, "docker", append([]string{"-H", "unix://" + d.dir + "/sock"}, args...)...)
}

// run runs docker and fails the test if it fails.
func (d *docker) run(args ...string) string {
	d.t.Helper()
	out, err := d.command(args...).CombinedOutput()
	if err != nil {
		d.t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// try runs docker and returns what it prints, whatever it says.
func (d *docker) try(args ...string) string {
	out, _ := d.command(args...).Output()
	return strings.TrimSpace(string(out))
}

// initRoot returns the folder of a Debian of this machine's release with systemd, which is made
// once. HAMLET_TEST_INIT_ROOT may name one that is there.
var initRoot = sync.OnceValues(func() (dir string, err error) {
	if dir := os.Getenv("HAMLET_TEST_INIT_ROOT"); dir != "" {
		return dir, nil
	}
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", err
	}
	codename := "bookworm"
	if strings.Contains(string(text), "\nID=debian\n") {
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); ok {
				codename = name
			}
		}
	}
	dir = filepath.Join(release.work, "init")
	args := []string{"--variant=minbase", "--include=systemd,systemd-sysv,dbus,ca-certificates,procps,curl",
		codename, dir, "http://deb.debian.org/debian"}
	cmd := exec.Command("debootstrap", args...)
	if programs := os.Getenv("HAMLET_TEST_PROGRAMS"); programs != "" {
		tree := filepath.Join(programs, "debootstrap")
		cmd = exec.Command(tree+"/run", append([]string{"debootstrap"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBOOTSTRAP_DIR="+tree+"/usr/share/debootstrap")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("debootstrap: %w: %s", err, out)
	}
	return dir, nil
})

// debian imports the image debian:init.
func (d *docker) debian() {
	t := d.t
	t.Helper()
	if os.Getenv("HAMLET_TEST_INIT_ROOT") == "" && os.Getenv("HAMLET_TEST_PROGRAMS") == "" {
		if _, err := exec.LookPath("debootstrap"); err != nil {
			t.Skipf("%v: apt-get install debootstrap", err)
		}
	}
	root, err := initRoot()
	if err != nil {
		t.Fatal(err)
	}
	d.importTree(root, "debian:init")
}

// importTree makes an image of a folder. Changes are lines of a Dockerfile.
func (d *docker) importTree(root, name string, changes ...string) {
	t := d.t
	t.Helper()
	args := []string{"import"}
	for _, change := range changes {
		args = append(args, "--change", change)
	}
	tar := exec.CommandContext(t.Context(), "tar", "-C", root, "--numeric-owner", "-c", ".")
	load := d.command(append(args, "-", name)...)
	var said bytes.Buffer
	load.Stdout, load.Stderr, tar.Stderr = &said, &said, os.Stderr
	var err error
	if load.Stdin, err = tar.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(load.Start(), tar.Run(), load.Wait()); err != nil {
		t.Fatalf("image %s: %v: %s", name, err, &said)
	}
}
