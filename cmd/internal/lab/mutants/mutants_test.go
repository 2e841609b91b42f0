package mutants

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	shard = flag.String("shard", "1/1", "which part of the mutants TestFound plants: 2/3 is the second of three")
	only  = flag.String("only", "", "a regular expression: of the part only those whose name it matches")
	seeds = flag.Int("seeds", 100, "how many worlds the simulator runs for a mutant that no law finds")
	alone = flag.Bool("simulator-alone", false, "no law is tried")
	table = flag.String("table", "", "a file to which the table is appended")
)

func mutants(t *testing.T) (root string, all []Mutant) {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	if all, err = Read("testdata"); err != nil {
		t.Fatal(err)
	}
	return root, all
}

// Each mutant can still be planted, and its laws are there.
func TestNoneIsStale(t *testing.T) {
	root, all := mutants(t)
	if n := len(all); n < 60 {
		t.Errorf("there are %d mutants, and should be 60", n)
	}
	tests := map[string][]string{} // by package
	for i := range all {
		m := &all[i]
		if _, err := m.Plant(root); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		for _, law := range m.Laws {
			if tests[law.Package] == nil {
				tests[law.Package] = testsOf(t, filepath.Join(root, law.Package))
			}
			top, _, _ := strings.Cut(law.Tests, "/")
			for name := range strings.SplitSeq(top, "|") {
				pattern, err := regexp.Compile(name)
				if err != nil {
					t.Errorf("%s: %v", m.Name, err)
				} else if !slices.ContainsFunc(tests[law.Package], pattern.MatchString) {
					t.Errorf("%s: %v: there is no test %s", m.Name, law, name)
				}
			}
		}
	}
}

// testsOf returns the names of a package's tests.
func testsOf(t *testing.T, folder string) (names []string) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, is := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(b, -1) {
			names = append(names, string(is[1]))
		}
	}
	return names
}

func TestParse(t *testing.T) {
	const good = "what: a\nhurts: b\nfile: c.go\nlaws: ./d -run ^TestE$\nold:\n\tx := 1\n\nnew:\n"
	m, err := parse(good)
	if err != nil || m.What != "a" || m.Hurts != "b" || m.Laws[0] != (Law{"./d", "^TestE$"}) ||
		m.Edits[0] != (Edit{"c.go", "\tx := 1\n\n", ""}) {
		t.Errorf("%+v, %v", m, err)
	}
	for _, bad := range []string{"", "what: a\nhurts: b\nold:\nx\nnew:\ny\n", "what: a\nhurts: b\nfile: c.go\n",
		"odd\n", "new:\n", good + "laws: ./d\n", "what: a\nhurts: b\nfile: c\nold:\nx\nnew:\nx\n"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is read as a mutant", bad)
		}
	}
}

func TestPlant(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("one\ntwo\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := Mutant{Edits: []Edit{{"a.go", "one\n", "three\n"}, {"a.go", "three\n", "four\n"}}}
	if changed, err := m.Plant(root); err != nil || changed["a.go"] != "four\ntwo\ntwo\n" {
		t.Errorf("%q, %v", changed, err)
	}
	for _, old := range []string{"two\n", "zero\n"} {
		m := Mutant{Edits: []Edit{{"a.go", old, ""}}}
		if _, err := m.Plant(root); err == nil || !strings.Contains(err.Error(), "is stale") {
			t.Errorf("%q is planted: %v", old, err)
		}
	}
}

func TestShard(t *testing.T) {
	for i, want := range []string{"[a d]", "[b]", "[c]"} {
		if got := fmt.Sprint(Shard([]string{"a", "b", "c", "d"}, i+1, 3)); got != want {
			t.Errorf("part %d is %s, and should be %s", i+1, got, want)
		}
	}
}

// A law or the simulator finds each mutant, and nothing where there is none. A mutant that nobody finds
// fails the test.
func TestFound(t *testing.T) {
	if os.Getenv("HAMLET_NIGHTLY") == "" {
		t.Skip("plants each defect and looks who finds it: HAMLET_NIGHTLY=1 runs it, -shard 1/3 a third")
	}
	var part, parts int
	if n, err := fmt.Sscanf(*shard, "%d/%d", &part, &parts); n != 2 || err != nil || part < 1 || part > parts {
		t.Fatalf("-shard %q: 2/3 is the second of three", *shard)
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	root, all := mutants(t)
	all = slices.DeleteFunc(Shard(all, part, parts), func(m Mutant) bool { return !pattern.MatchString(m.Name) })
	f := &Finder{Root: root, Seeds: *seeds, Law: 3 * time.Minute, All: 30 * time.Minute}
	began := time.Now()
	rows, found := []string{}, 0
	t.Run("control", func(t *testing.T) {
		var laws []Law
		for i := range all {
			laws = append(laws, all[i].Laws...)
		}
		slices.SortFunc(laws, func(a, b Law) int {
			return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Tests, b.Tests))
		})
		got, err := f.Find(t.Context(), nil, slices.Compact(laws))
		if err != nil || got.By != "" {
			t.Fatalf("without a mutant: %+v, %v", got, err)
		}
	})
	if t.Failed() {
		return // what fails by itself finds nothing
	}
	for i := range all {
		m := &all[i]
		t.Run(m.Name, func(t *testing.T) {
			laws := m.Laws
			if *alone {
				laws = nil
			}
			got, err := f.Find(t.Context(), m, laws)
			by := got.By
			switch {
			case err != nil:
				t.Error(err)
				by = "(it cannot be planted)"
			case by == "":
				t.Errorf("nobody finds it: %s", m.What)
				by = "**nobody**"
			case got.Seed > 0:
				by = fmt.Sprintf("simulator, seed %d", got.Seed)
				found++
			default:
				found++
			}
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %.0f |", m.Name, m.What, by, got.CPU.Seconds()))
			t.Logf("found by %s after %v, %v of a processor: %.300s",
				by, got.After.Round(time.Second), got.CPU.Round(time.Second), got.Said)
			report(t, rows[len(rows)-1])
		})
	}
	t.Logf("%d of %d are found, in %v:\n| mutant | what is planted | found by | CPU s |\n|---|---|---|---|\n%s",
		found, len(all), time.Since(began).Round(time.Second), strings.Join(rows, "\n"))
}

// report appends a row to the file of the table.
func report(t *testing.T, row string) {
	if *table == "" {
		return
	}
	f, err := os.OpenFile(*table, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, row)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
