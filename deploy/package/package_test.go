package main

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// release and tree are those of this machine's architecture. TestMain writes them.
var (
	release *Release
	tree    []File
)

func TestMain(m *testing.M) {
	status, err := prepare(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func prepare(m *testing.M) (int, error) {
	work, err := os.MkdirTemp("", "hamlet-package-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(work)
	if release, err = NewRelease(context.Background(), "../..", work); err != nil {
		return 1, err
	}
	if tree, err = release.Tree(context.Background(), host); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// command runs a program and fails the test if it fails.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// debFile builds a package of the files.
func debFile(t *testing.T, r *Release) string {
	t.Helper()
	path, err := writeDeb(r, tree, host, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// built returns the package of this release, which is built once.
var built = sync.OnceValues(func() (string, error) { return writeDeb(release, tree, host, release.work) })

func ours(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// unpacked returns a root that holds the package's files.
func unpacked(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	command(t, "dpkg-deb", "-x", ours(t), root)
	return root
}

// The same files make the same bytes, in another directory as well.
func TestPackageIsReproducible(t *testing.T) {
	first, err := os.ReadFile(ours(t))
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(debFile(t, release))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two packages of the same files differ")
	}
	t.Logf("%s: %.1f MB", filepath.Base(ours(t)), float64(len(first))/1e6)
	if os.Getenv("HAMLET_NIGHTLY") == "" {
		return
	}
	again, err := NewRelease(t.Context(), "../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files, err := again.Tree(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	path, err := writeDeb(again, files, host, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if third, err := os.ReadFile(path); err != nil || !bytes.Equal(first, third) {
		t.Errorf("another build differs (%v)", err)
	}
}

// The laboratory is a package of its own: one program, which needs no library.
func TestLaboratoryIsAPackage(t *testing.T) {
	path, err := writeLabDeb(release, host, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(command(t, "dpkg-deb", "-f", path, "Package")); got != laboratory {
		t.Errorf("the package is %q", got)
	}
	root := t.TempDir()
	command(t, "dpkg-deb", "-x", path, root)
	if said := command(t, root+"/usr/bin/"+laboratory, "--version"); !strings.HasPrefix(said, laboratory+" "+release.Version) {
		t.Errorf("it says %q", said)
	}
	if _, err := os.Stat(unpacked(t) + "/usr/bin/" + laboratory); err == nil {
		t.Error("the package hamlet has it too")
	}
}

func TestVersionsAreOrdered(t *testing.T) {
	r := *release
	r.Version = "0.1.0-dev"
	older := r.debVersion()
	r.Time = r.Time.Add(1e9)
	newer := r.debVersion()
	r.Version = "0.1.0"
	final := r.debVersion()
	for _, pair := range [][2]string{{older, newer}, {newer, final}} {
		if err := exec.CommandContext(t.Context(), "dpkg", "--compare-versions", pair[0], "lt", pair[1]).Run(); err != nil {
			t.Errorf("%s is not older than %s", pair[0], pair[1])
		}
	}
}

// The package says what it is, its configuration is the operator's, and its programs need
// no library.
func TestPackage(t *testing.T) {
	path := ours(t)
	for field, want := range map[string]string{
		"Package": "hamlet", "Architecture": host, "Depends": "systemd", "Version": release.debVersion(),
	} {
		if got := strings.TrimSpace(command(t, "dpkg-deb", "-f", path, field)); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	control := t.TempDir()
	command(t, "dpkg-deb", "-e", path, control)
	conffiles, err := os.ReadFile(control + "/conffiles")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for name := range configurations {
		want = append(want, "/etc/hamlet/"+name)
	}
	slices.Sort(want)
	if got := strings.Fields(string(conffiles)); !slices.Equal(got, want) {
		t.Errorf("the operator's files are %q, want %q", got, want)
	}
	root := unpacked(t)
	program, err := elf.Open(root + "/usr/bin/hamlet")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if libraries, err := program.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("hamlet needs %q (%v)", libraries, err)
	}

	for _, file := range []string{
		"/usr/share/man/man1/hamlet.1.gz", "/usr/share/man/man1/hamlet-model-pin.1.gz", "/usr/share/man/man1/hamlet-learner.1.gz",
		"/usr/share/bash-completion/completions/hamlet", "/usr/share/zsh/vendor-completions/_hamlet-scorer",
		"/usr/share/fish/vendor_completions.d/hamlet.fish", "/usr/share/doc/hamlet/modules", "/usr/share/doc/hamlet/examples/mail/postfix.cf",
	} {
		if info, err := os.Stat(root + file); err != nil || info.Size() < 20 {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Recipes of 0.1.0 call hamlet-filter. It passes the message as it came, and fails where not all of it came out.
func TestFilterOfRecipes(t *testing.T) {
	const message = "Subject: x\r\n\n\x00\xff no end of line"
	filter := exec.CommandContext(t.Context(), unpacked(t)+"/usr/bin/hamlet-filter", "--socket", "unix:/run/hamlet/spamd.sock", "--user", "alice")
	said := t.TempDir()
	if err := os.WriteFile(said+"/logger", []byte("#!/bin/sh\necho \"$*\" >"+said+"/said\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	filter.Env, filter.Stdin = []string{"PATH=" + said + ":/usr/bin:/bin"}, strings.NewReader(message)
	if out, err := filter.Output(); err != nil || string(out) != message {
		t.Errorf("%v, %q, want %q", err, out, message)
	}
	if text, err := os.ReadFile(said + "/said"); err != nil || !strings.Contains(string(text), "call spamc in its place") {
		t.Errorf("syslog has %q (%v)", text, err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	filter = exec.CommandContext(t.Context(), filter.Path)
	filter.Stdin, filter.Stdout = strings.NewReader(message), full
	if _ = filter.Run(); filter.ProcessState.ExitCode() != 75 {
		t.Errorf("on a full disk: %v, want 75", filter.ProcessState)
	}
}

// units are those of the package, templates with a model.
var units = []string{
	"hamlet.service", "hamlet-learner@default.service", "hamlet-scorer@default.service", "hamlet-gateway.service", "hamlet-console.service",
	"hamlet-backup.service",
}

var exposure = regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`)

// systemd understands the units, finds their programs and pages, and counts few doors.
func TestUnits(t *testing.T) {
	root := unpacked(t)
	for _, unit := range units {
		const limit = 2.5
		out := command(t, "systemd-analyze", "--root="+root, "--offline=yes", "security", "--no-pager", unit)
		m := exposure.FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("%s: %s", unit, out)
		}
		if level, err := strconv.ParseFloat(m[1], 64); err != nil || level > limit {
			t.Errorf("%s is exposed by %s, more than %v:\n%s", unit, m[1], limit, out)
		}
		t.Logf("%s: exposure %s", unit, m[1])
	}
	// The targets that every unit has are systemd's own.
	const system = "/usr/lib/systemd/system/"
	for _, dir := range []string{"/usr/lib/systemd/system/", "/lib/systemd/system/"} {
		targets, err := filepath.Glob(dir + "*.target")
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range targets {
			if text, err := os.ReadFile(target); err == nil {
				_ = os.WriteFile(root+system+filepath.Base(target), text, 0o644)
			}
		}
	}
	out := command(t, "systemd-analyze", append([]string{"--root=" + root, "--man=no", "verify", "hamlet-backup.timer", "hamlet.socket", "hamlet-gateway.socket"}, units...)...)
	for line := range strings.Lines(out) {
		if strings.Contains(line, "hamlet") {
			t.Errorf("systemd-analyze verify: %s", line)
		}
	}
	for _, unit := range units {
		for _, page := range settingsOf(t, root, unit)["Documentation"] {
			name := strings.TrimSuffix(strings.TrimPrefix(page, "man:"), "(1)")
			if _, err := os.Stat(root + "/usr/share/man/man1/" + name + ".1.gz"); err != nil {
				t.Errorf("%s: %v", unit, err)
			}
		}
	}
}

// A crash is started again, and a refusal that no start mends is not. A panic, a fatal error and the watchdog's SIGABRT end a Go program
// with status 2.
func TestCrashIsRestarted(t *testing.T) {
	root := unpacked(t)
	for _, unit := range units {
		settings := settingsOf(t, root, unit)
		if slices.Contains(settings["Type"], "oneshot") {
			continue // the timer starts it again
		}
		if got := settings["Restart"]; !slices.Equal(got, []string{"on-failure"}) {
			t.Errorf("%s: Restart=%q", unit, got)
		}
		if got := settings["RestartPreventExitStatus"]; !slices.Equal(got, []string{"78"}) {
			t.Errorf("%s: RestartPreventExitStatus=%q: a refusal that no start mends is started again", unit, got)
		}
		for _, key := range []string{"RestartPreventExitStatus", "SuccessExitStatus"} {
			if slices.Contains(strings.Fields(strings.Join(settings[key], " ")), "2") {
				t.Errorf("%s: %s=%q prevents that a crash is started again", unit, key, settings[key])
			}
		}
	}
}

// settingsOf returns the settings of a unit and of what all units share, by name.
func settingsOf(t *testing.T, root, unit string) map[string][]string {
	t.Helper()
	name, instance := unit, ""
	if prefix, rest, ok := strings.Cut(unit, "@"); ok {
		name, instance = prefix+"@.service", strings.TrimSuffix(rest, ".service")
	}
	shared := "hamlet-.service.d"
	if unit == "hamlet.service" {
		shared = "hamlet.service.d"
	}
	settings := map[string][]string{}
	own := name + ".d/task.conf"
	for _, file := range []string{name, shared + "/service.conf", own} {
		text, err := os.ReadFile(root + "/usr/lib/systemd/system/" + file)
		if file == own && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
			if !ok || strings.HasPrefix(key, "#") {
				continue
			}
			value = strings.NewReplacer("%i", instance, "%N", strings.TrimSuffix(unit, ".service")).Replace(value)
			settings[key] = append(settings[key], value)
		}
	}
	return settings
}

// Whatever a documented program says about its files is true of the package.
func TestExamplesAreThere(t *testing.T) {
	for _, folder := range examples {
		if !slices.ContainsFunc(tree, func(f File) bool { return strings.HasPrefix(f.Path, "/usr/share/doc/hamlet/examples/"+folder+"/") }) {
			t.Errorf("no example of %s", folder)
		}
	}
}
