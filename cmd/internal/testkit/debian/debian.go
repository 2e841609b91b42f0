// Package debian starts programs of Debian that .ci/programs has unpacked, for tests.
//
//	.ci/programs DIR
//	HAMLET_TEST_PROGRAMS=DIR go test ./cmd/internal/door/spamd
//
//	cmd := debian.Command(t, "procmail", "procmail", "-m", rcfile)
//
// Without HAMLET_TEST_PROGRAMS a test that calls it is skipped. With it, a program that is
// absent fails the test.
package debian

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Variable names the directory that .ci/programs filled.
const Variable = "HAMLET_TEST_PROGRAMS"

// Tree returns the directory that holds the files of a package: Tree(t, "procmail") has
// usr/bin/procmail.
func Tree(t testing.TB, pkg string) string {
	t.Helper()
	dir := os.Getenv(Variable)
	if dir == "" {
		t.Skipf("%s names no directory of Debian's programs: .ci/programs DIR makes one", Variable)
	}
	tree, err := filepath.Abs(filepath.Join(dir, pkg))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(tree, "run")); err != nil {
		t.Fatalf("%s=%s has no package %s: run .ci/programs %[2]s %[3]s", Variable, dir, pkg)
	}
	return tree
}

// Command returns a command that starts a program of a package with the libraries of its
// tree. It ends with the test.
func Command(t testing.TB, pkg, program string, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), filepath.Join(Tree(t, pkg), "run"), append([]string{program}, args...)...)
}

// Over returns a command like Command's for a program that finds its own files by fixed
// names, such as /usr/lib/dovecot. It sees the tree's usr over the system's. No other
// process does, because the command has a mount namespace of its own. That needs root;
// for other users the test is skipped.
func Over(t testing.TB, pkg, program string, args ...string) *exec.Cmd {
	t.Helper()
	return OverAll(t, []string{pkg}, program, args...)
}

// OverAll is Over with the trees of several packages, such as a program and its plugin. The
// libraries are those of the first.
func OverAll(t testing.TB, pkgs []string, program string, args ...string) *exec.Cmd {
	t.Helper()
	layers := ""
	for _, pkg := range pkgs {
		layers += Tree(t, pkg) + "/usr:"
	}
	if os.Getuid() != 0 {
		t.Skip("a mount namespace needs root")
	}
	const script = `mount -t overlay overlay -o "lowerdir=$0/usr" /usr && exec "$@"`
	run := append([]string{filepath.Join(Tree(t, pkgs[0]), "run"), program}, args...)
	return exec.CommandContext(t.Context(), "unshare", append([]string{"--mount", "sh", "-c", script, layers}, run...)...)
}
