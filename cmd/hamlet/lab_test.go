package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const labTree = "hamlet/cmd/internal/lab"

// goList returns the lines that go list prints in the module's root.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	list := exec.Command("go", append([]string{"list"}, args...)...)
	list.Dir = "../.."
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", args, err, &stderr)
	}
	return strings.Fields(string(out))
}

func inTree(path, tree string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }

// The product does not import the laboratory. Only cmd/hamlet does, and the
// laboratory's own packages do.
func TestProductIsApartFromLaboratory(t *testing.T) {
	imports := goList(t, "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}}→{{.}}{{"\n"}}{{end}}`, "./...")
	found := false
	for _, line := range imports {
		pkg, path, _ := strings.Cut(line, "→")
		if !inTree(path, labTree) {
			continue
		}
		found = true
		if pkg != "hamlet/cmd/hamlet" && !inTree(pkg, labTree) {
			t.Errorf("%s imports %s: the product must not import the laboratory", pkg, path)
		}
	}
	if !found {
		t.Errorf("nothing imports %s: this test looks for the wrong path", labTree)
	}
}

// Without the laboratory hamlet has no experiments and no generator.
func TestNoLabBuild(t *testing.T) {
	for _, path := range goList(t, "-deps", "-tags", "nolab", "./cmd/hamlet") {
		if inTree(path, labTree) {
			t.Errorf("with -tags nolab cmd/hamlet is built from %s", path)
		}
	}
	if deps := goList(t, "-deps", "./cmd/hamlet"); !slices.Contains(deps, labTree+"/bench") {
		t.Errorf("the full build does not contain %s either: this test looks for the wrong path", labTree)
	}
}

// A package that no service contains says in its first line that it is the
// laboratory's.
func TestLaboratorySaysSo(t *testing.T) {
	product := goList(t, "-deps", "-tags", "nolab", "./cmd/hamlet", "./cmd/ingest", "./cmd/learner", "./cmd/scorer")
	lab := goList(t, "-deps", "-f", `{{with .Module}}{{if .Main}}{{$.ImportPath}}→{{$.Dir}}{{end}}{{end}}`, "./cmd/hamlet")
	found := 0
	for _, line := range lab {
		path, dir, _ := strings.Cut(line, "→")
		if slices.Contains(product, path) {
			continue
		}
		found++
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		said := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			said = said || strings.HasPrefix(string(text), "// Laboratory: ")
		}
		if !said {
			t.Errorf("only the laboratory uses %s: the first line of its documentation must begin with %q", path, "// Laboratory: ")
		}
	}
	if found == 0 {
		t.Error("the full hamlet contains no package that the services lack")
	}
}
