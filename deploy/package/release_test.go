package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// One version stands in the programs, and everywhere else where there must be one.
func TestVersion(t *testing.T) {
	for path, pattern := range map[string]string{
		"CHANGELOG.md":                     `(?m)^## (\S+), \d+ [A-Z][a-z]+ \d{4}$`, // the newest
		"deploy/python/hamlet/__init__.py": `(?m)^__version__ = "(.*)"$`,
		"deploy/compose.yaml":              `hamlet:([0-9][^}\s]*)`,
		"deploy/kubernetes/overlays/production/kustomization.yaml": `newTag: ([^}\s]+)`,
		"deploy/kubernetes/overlays/trial/kustomization.yaml":      `newTag: ([^}\s]+)`,
		"deploy/INSTALL.md": `registry\.example/hamlet:(\S+)`,
	} {
		text, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil || string(m[1]) != release.Version {
			t.Errorf("%s has the version %q, the programs have %s", path, m, release.Version)
		}
	}
}

// A program that is built in a clone says of which commit, and whether files differ from it.
func TestCommitIsSaid(t *testing.T) {
	clone := t.TempDir()
	command(t, "git", "clone", "-q", "--shared", "../..", clone)
	commit := strings.TrimSpace(command(t, "git", "-C", clone, "rev-parse", "HEAD"))[:12]
	for _, change := range []string{"", " with changes"} {
		if change != "" {
			if err := os.WriteFile(clone+"/go.mod", append([]byte("// A change.\n"), read(t, clone+"/go.mod")...), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=auto", "-o", clone+"/bin/", "./cmd/scorer")
		cmd.Dir, cmd.Env = clone, append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		want := "scorer " + release.Version + " (commit " + commit + change + ")\n"
		if got := command(t, clone+"/bin/scorer", "--version"); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The archive of programs has the same bytes twice, and what a machine without dpkg needs.
func TestArchive(t *testing.T) {
	var archives [][]byte
	var path string
	for range 2 {
		var err error
		if path, err = writeArchive(release, tree, host, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		archives = append(archives, read(t, path))
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same files differ")
	}
	folder := strings.TrimSuffix(filepath.Base(path), ".tar.gz")
	out := t.TempDir()
	command(t, "tar", "-C", out, "-xzf", path)
	for _, name := range []string{"bin/hamlet", "bin/hamlet-learner", "share/man/man1/hamlet.1.gz", "share/doc/hamlet/copyright", "share/doc/hamlet/README.md"} {
		if _, err := os.Stat(filepath.Join(out, folder, name)); err != nil {
			t.Error(err)
		}
	}
}

// The list of modules has a hash for each, and the package has a licence of each.
func TestModulesAndLicences(t *testing.T) {
	list, deps, err := release.modules()
	if err != nil {
		t.Fatal(err)
	}
	if len(deps) < 20 || !strings.Contains(list, "\nhamlet "+release.Version+" commit ") {
		t.Errorf("%d modules: %s", len(deps), list)
	}
	licences, err := release.copyright(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range deps {
		if !strings.HasPrefix(m.Sum, "h1:") || !strings.Contains(list, m.Path+" "+m.Version+" "+m.Sum+"\n") {
			t.Errorf("%s has the hash %q", m.Path, m.Sum)
		}
		if !strings.Contains(licences, "\n"+m.Path+" "+m.Version+": ") {
			t.Errorf("no licence of %s", m.Path)
		}
	}
}

func TestChecksums(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"b", "a"} {
		paths = append(paths, filepath.Join(dir, name))
		if err := os.WriteFile(paths[len(paths)-1], []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sums, err := checksums(paths, dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", sums)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "a: OK\nb: OK\n" {
		t.Errorf("%v: %s", err, out)
	}
}
