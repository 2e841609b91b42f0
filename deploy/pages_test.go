package deploy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// pages returns the pages for people, by their paths from here.
func pages(t *testing.T) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules") {
			return fs.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".md") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) < 10 {
		t.Fatalf("found %q, %v", paths, err)
	}
	return paths
}

// A terminal shows the README as it stands. A table has its rows, and a picture its text.
func TestReadmeFitsATerminal(t *testing.T) {
	const columns = 80
	number := 0
	for line := range strings.Lines(read(t, "../README.md")) {
		number++
		line = strings.TrimRight(line, "\n")
		if n := utf8.RuneCountInString(line); n > columns && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "![") {
			t.Errorf("line %d has %d columns, more than %d: %s", number, n, columns, line)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	unsaid  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the fragments by which the headings of a page can be linked.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		found[strings.ReplaceAll(unsaid.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return found
}

// Every link inside the repository leads to a file, and to a heading of it.
func TestLinksLeadSomewhere(t *testing.T) {
	seen := 0
	for _, path := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, path), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			seen++
			file, fragment, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s: %v", path, m[1], err)
				continue
			}
			if fragment != "" && !anchors(read(t, target))[fragment] {
				t.Errorf("%s: %s has no heading of the link %s", path, target, m[1])
			}
		}
	}
	if seen < 50 {
		t.Errorf("found %d links: the test misses its point", seen)
	}
}

// CONTRIBUTING.md and ARCHITECTURE.md say where things are. They are there.
func TestContributingNamesFilesThatExist(t *testing.T) {
	named := 0
	path := regexp.MustCompile("`((?:cmd|stream|state|algos|deploy|[.]ci)/[^` *]*)`")
	said := read(t, "../.github/CONTRIBUTING.md") + read(t, "../.github/ARCHITECTURE.md")
	for _, m := range path.FindAllStringSubmatch(said, -1) {
		named++
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Error(err)
		}
	}
	if named < 50 {
		t.Errorf("found %d paths", named)
	}
}
