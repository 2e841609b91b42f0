package algos_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "hamlet"

// pureStd is what algos may use of the standard library: no network, files,
// clock, environment or logger.
var pureStd = []string{
	"bytes", "cmp", "container/heap", "context", "crypto/sha256", "encoding",
	"encoding/binary", "encoding/hex", "encoding/json", "errors", "fmt", "hash", "io",
	"iter", "maps", "math", "math/big", "math/bits", "math/rand/v2", "reflect", "runtime", "slices", "sort",
	"strconv", "strings", "sync", "sync/atomic", "unicode", "unicode/utf8",
}

// goList returns what `go list -f format` prints of the packages below the
// module's folder tree, a line each.
func goList(t *testing.T, format, tree string) []string {
	t.Helper()
	list := exec.Command("go", "list", "-f", format, "./"+tree+"/...")
	list.Dir = ".."
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list ./%s/...: %v\n%s", tree, err, &stderr)
	}
	return slices.Sorted(strings.FieldsSeq(string(out)))
}

// The rule of the tree: mathematics imports gonum, a hash function and the pure part
// of the standard library. Packages below algotest support tests: they may import
// testing and read files, and no other package imports them outside its tests. Packages
// hugepages and ahead are of advice about memory, which changes no value. What is below lab is the
// laboratory's, and nothing else imports it.
func TestImports(t *testing.T) {
	const algotest, lab = module + "/algos/algotest", module + "/algos/lab/"
	for _, line := range goList(t, `{{$p := .ImportPath}}{{range .Imports}}{{$p}}→{{.}}{{"\n"}}{{end}}`, "algos") {
		pkg, path, _ := strings.Cut(line, "→")
		if strings.HasPrefix(pkg, algotest) && slices.Contains([]string{"testing", "os", "path/filepath"}, path) {
			continue
		}
		if pkg == module+"/algos/internal/hugepages" && slices.Contains([]string{"syscall", "unsafe"}, path) {
			continue
		}
		if pkg == module+"/algos/internal/ahead" && path == "unsafe" {
			continue
		}
		if strings.HasPrefix(path, lab) && !strings.HasPrefix(pkg, lab) {
			t.Errorf("%s imports %s, which is the laboratory's", pkg, path)
		}
		if strings.HasPrefix(path, algotest) && !strings.HasPrefix(pkg, algotest) {
			t.Errorf("%s imports %s outside its tests", pkg, path)
		}
		if !strings.HasPrefix(path, module+"/algos") && !strings.HasPrefix(path, "gonum.org/v1/gonum/") &&
			path != "github.com/cespare/xxhash/v2" && !slices.Contains(pureStd, path) {
			t.Errorf("%s imports %s", pkg, path)
		}
	}
}

// algos, stream and state never import one another, nor cmd, in tests neither.
func TestTreesAreApart(t *testing.T) {
	const format = `{{$p := .ImportPath}}{{range .Imports}}{{$p}}→{{.}}{{"\n"}}{{end}}` +
		`{{range .TestImports}}{{$p}}→{{.}}{{"\n"}}{{end}}{{range .XTestImports}}{{$p}}→{{.}}{{"\n"}}{{end}}`
	for _, tree := range []string{"algos", "stream", "state"} {
		for _, line := range goList(t, format, tree) {
			pkg, path, _ := strings.Cut(line, "→")
			inModule := path == module || strings.HasPrefix(path, module+"/")
			inTree := path == module+"/"+tree || strings.HasPrefix(path, module+"/"+tree+"/")
			if inModule && !inTree {
				t.Errorf("%s imports %s; only cmd may join the trees", pkg, path)
			}
		}
	}
}

// The loops name a store and a publisher of alerts in the words of state and
// stream. Which adapter they get is for the commands to say.
func TestLoopsImportNoStore(t *testing.T) {
	for _, loop := range []string{"learner", "scorer"} {
		for _, path := range goList(t, `{{join .Imports "\n"}}`, "cmd/internal/service/"+loop) {
			if strings.HasPrefix(path, module+"/state/") || loop == "learner" && path == module+"/stream/nats" {
				t.Errorf("cmd/internal/service/%s imports %s", loop, path)
			}
		}
	}
}

// floors are the folders of cmd/internal. A package imports those of its own floor and of lower
// ones.
var floors = map[string]int{
	"data": 0, "process": 0, "show": 0, // files, the process and what it prints
	"service": 1,           // the loops: events in, a model, answers out
	"door":    2,           // the ways in
	"offline": 2, "web": 2, // without servers; the frame of pages
	"operate": 3, // what an operator does, on a terminal and in a browser
	"lab":     4, // only cmd/hamlet-lab imports it
}

// Packages that put a process together import every floor. Of the services none imports them.
var whole = []string{"service/parts", "service/program", "service/up"}

func TestFloors(t *testing.T) {
	const inner = module + "/cmd/internal/"
	for _, line := range goList(t, `{{$p := .ImportPath}}{{range .Imports}}{{$p}}→{{.}}{{"\n"}}{{end}}`, "cmd/internal") {
		pkg, path, _ := strings.Cut(line, "→")
		pkg, path = strings.TrimPrefix(pkg, inner), strings.TrimPrefix(path, inner)
		from, _, _ := strings.Cut(pkg, "/")
		to, _, below := strings.Cut(path, "/")
		floor, known := floors[from]
		if !known && from != "testkit" {
			t.Errorf("cmd/internal/%s has no floor", pkg)
		}
		target, inside := floors[to]
		switch {
		case from == "testkit" || !inside || !below || strings.HasPrefix(path, module):
		case slices.Contains(whole, pkg):
		case target > floor:
			t.Errorf("%s imports %s, which is above it", pkg, path)
		case from == "service" && slices.Contains(whole, path):
			t.Errorf("%s imports %s, which puts a process together", pkg, path)
		}
	}
}
