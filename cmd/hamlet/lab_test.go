package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// labTrees are the folders of the laboratory. Package filters stands beside the
// filters' settings, which are no Go.
var labTrees = []string{"hamlet/algos/lab", "hamlet/cmd/internal/lab", "hamlet/cmd/hamlet-lab"}

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

// inLaboratory reports whether a package is in a folder of the laboratory.
func inLaboratory(path string) bool {
	return slices.ContainsFunc(labTrees, func(tree string) bool {
		return path == tree || strings.HasPrefix(path, tree+"/")
	})
}

// The product does not import the laboratory, whose own packages do.
func TestProductIsApartFromLaboratory(t *testing.T) {
	imports := goList(t, "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}}→{{.}}{{"\n"}}{{end}}`, "./...")
	found := 0
	for _, line := range imports {
		pkg, path, _ := strings.Cut(line, "→")
		if !inLaboratory(path) {
			continue
		}
		found++
		if !inLaboratory(pkg) {
			t.Errorf("%s imports %s: the product must not import the laboratory", pkg, path)
		}
	}
	if found == 0 {
		t.Errorf("nothing imports a package below %q: this test looks for the wrong paths", labTrees)
	}
}

// A package that only hamlet-lab contains is in a folder of the laboratory.
func TestLaboratoryIsInItsFolders(t *testing.T) {
	product := goList(t, "-deps", "./cmd/hamlet", "./cmd/ingest", "./cmd/learner", "./cmd/scorer")
	lab := goList(t, "-deps", "-f", `{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}`, "./cmd/hamlet-lab")
	found := 0
	for _, path := range lab {
		if slices.Contains(product, path) {
			continue
		}
		found++
		if !inLaboratory(path) {
			t.Errorf("only the laboratory uses %s: its folder must be below one of %q", path, labTrees)
		}
	}
	if found == 0 {
		t.Error("hamlet-lab contains no package that hamlet lacks")
	}
}
