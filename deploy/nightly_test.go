package deploy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// script runs a script of folder/.ci and returns what it printed.
func script(t *testing.T, folder, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("bash", append([]string{filepath.Join(folder, ".ci", name)}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// ciFolder returns a repository of one commit whose .ci has these scripts of ours and files.
func ciFolder(t *testing.T, scripts []string, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range scripts {
		files[".ci/"+name] = read(t, "../.ci/"+name)
	}
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."},
		{"-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "all"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("git %v: %v\n%s", args, err, out)
		}
	}
	return folder
}

// rows returns the rows of the table of folder/.ci/NIGHTLY.md by the names of the blocks.
func rows(t *testing.T, folder string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for line := range strings.Lines(read(t, filepath.Join(folder, ".ci/NIGHTLY.md"))) {
		if cells := strings.Split(strings.Trim(line, "| \n"), " | "); len(cells) == 6 {
			found[cells[0]] = cells[1:]
		}
	}
	delete(found, "block")
	return found
}

// Each block of the list has its function and its row in the table, and the other way round.
func TestNightlyBlocks(t *testing.T) {
	out, err := script(t, "..", "nightly", "--list")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var names []string
	for line := range strings.Lines(out) {
		if name, covers, _ := strings.Cut(line, " "); name != "" {
			names = append(names, name)
			if len(strings.TrimSpace(covers)) < 10 {
				t.Errorf("%s says nothing of what it covers", name)
			}
		}
	}
	table, blocks := rows(t, ".."), read(t, "../.ci/blocks")
	for _, name := range names {
		if !strings.Contains(blocks, "\nblock_"+strings.ReplaceAll(name, "-", "_")+"() {\n") {
			t.Errorf(".ci/blocks has no function for %s", name)
		}
		if _, there := table[name]; !there {
			t.Errorf(".ci/NIGHTLY.md has no row for %s: write it by .ci/nightly --table", name)
		}
	}
	slices.Sort(names)
	if n := strings.Count(blocks, "\nblock_"); n != len(names) || n != len(slices.Compact(names)) || n != len(table) || n < 16 {
		t.Errorf("%d functions for the %d blocks %v, %d rows", n, len(names), names, len(table))
	}
}

// Blocks run one by one, one that fails or hangs stops no other, and the table says how each ended.
func TestNightlyRuns(t *testing.T) {
	t.Setenv("NIGHTLY_LIMIT", "5s")
	folder := ciFolder(t, []string{"nightly"}, map[string]string{".ci/blocks": `# blocks of a test
blocks="
good   what works
bad    what fails in its first command
hangs  what never ends
skips  what has no network
two-d  what is not chosen
"
block_good() { echo of good >"$work/shared"; note 3 of 4; }
block_bad() { false; note not reached; }
block_skips() { not_done no network; note not reached; }
block_hangs() { cat "$work/shared"; tail -f /dev/null; }
block_two_d() { echo "$programs"; }
`})
	out, err := script(t, folder, "nightly", "good", "bad", "skips", "hangs")
	if err == nil || !strings.Contains(out, "these blocks failed: bad hangs") || !strings.Contains(out, "of good") {
		t.Errorf("%v\n%s", err, out)
	}
	table := rows(t, folder)
	for name, want := range map[string]string{"good": "ok: 3 of 4", "bad": "FAILED", "skips": "NOT DONE: no network", "hangs": "ENDED after 5s", "two-d": "–"} {
		row := table[name]
		if len(row) != 5 || row[4] != want {
			t.Errorf("%s: %q, want %q", name, row, want)
		} else if ran := row[2] != "never"; ran != (name != "two-d") || ran && len(row[3]) != 12 {
			t.Errorf("%s: %q", name, row)
		}
	}
	t.Setenv("NIGHTLY_LIMIT", "150m")
	if out, err := script(t, folder, "nightly", "--programs", filepath.Join(folder, "trees"), "two-d"); err != nil ||
		!strings.Contains(out, "\n"+filepath.Join(folder, "trees")+"\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if after := rows(t, folder); after["two-d"][4] != "ok" || after["good"][4] != "ok: 3 of 4" {
		t.Errorf("%q", after)
	}
	if out, err := script(t, folder, "nightly", "good", "other"); err == nil || !strings.Contains(out, "no block other") ||
		strings.Contains(out, "what works") {
		t.Errorf("%v\n%s", err, out)
	}
}

// .ci/fuzz finds each function that the compiler takes for a fuzz target.
func TestFuzzFindsAllTargets(t *testing.T) {
	out, err := script(t, "..", "fuzz", "--list")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var want []string
	err = filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel("..", filepath.Dir(path))
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
				want = append(want, filepath.ToSlash(folder)+":"+f.Name.Name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	got := strings.Fields(out)
	slices.Sort(got)
	if len(want) < 60 || !slices.Equal(got, want) {
		t.Errorf("it finds %d targets of %d\n%s\nwant\n%s", len(got), len(want), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A target that fails stops no other. The input that failed is kept and named.
func TestFuzzKeepsWhatFails(t *testing.T) {
	folder := ciFolder(t, []string{"fuzz"}, map[string]string{
		"go.mod": "module fuzzed\n",
		// The word is put together here: .ci/fuzz would find this file.
		"a/a_test.go": strings.ReplaceAll(`package a

import "testing"

func FUZZHolds(f *testing.F) {
	f.Add(byte(1))
	f.Fuzz(func(t *testing.T, b byte) {})
}

func FUZZFails(f *testing.F) {
	f.Add(byte(1))
	f.Fuzz(func(t *testing.T, b byte) {
		if b != 1 {
			t.Error("not 1")
		}
	})
}
`, "FUZZ", "Fuzz")})
	out, err := script(t, folder, "fuzz", "--time", "1000x", "--parallel", "1")
	if err == nil || !strings.Contains(out, "2 targets, 1 failed") || !strings.Contains(out, "input that failed: a/testdata/fuzz/FuzzFails/") {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 3 && strings.HasPrefix(fields[0], "a:Fuzz") {
			if failed := slices.Contains(fields, "FAILED"); failed != (fields[0] == "a:FuzzFails") || fields[0] == "a:FuzzHolds" && fields[1] == "0" {
				t.Error(line)
			}
		}
	}
	if kept, err := filepath.Glob(filepath.Join(folder, "a/testdata/fuzz/FuzzFails/*")); len(kept) != 1 || err != nil {
		t.Errorf("kept %q, %v", kept, err)
	}
}
