package algos_test

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A fused is a place where the compiler may join a product and a sum without
// rounding the product, and why that changes no model.
type fused struct {
	file, function string
	code           string // what the line contains; "" for any line of the function
	why            string
}

// Why a fused product is allowed. A product that is exact, and no subnormal
// number, is the same number whether it is rounded or not.
const (
	halves = "a product by a power of two is exact"
	sign   = "a product by ±1 is exact"
	answer = "an answer or report that no model is made of"
	stream = "the labels of a test's stream"
)

var mayFuse = []fused{
	{"algotest/laws.go", "next", "z += st.w[j] * x[j]", stream},
	{"lab/vblr/batch.go", "newBatchFit", "cfg.A0+0.5*float64(d)", halves},
	{"lab/vblr/batch.go", "reweigh", "f.cfg.B0 + 0.5*", halves},
	{"lab/vblr/batch.go", "bound", "- 0.5*ξ +", halves},
	{"lab/vblr/batch.go", "bound", "quad + 0.5*b.LogDetV", halves},
	{"blr/exact.go", "solveExactRVGA", "- lnκ", halves},
	{"boost/stump.go", "MarginsTo", "is := (1 + m) / 2", halves},
	{"boost/stump.go", "MarginsTo", "float64(w[i] * (1 - is))", halves},
	{"lab/boosting/anyboost.go", "lineStep", "lo + (hi-lo)/2", halves},
	{"boost/data.go", "midpoint", "a/2 + b/2", halves},
	{"eval/calibration.go", "Calibrate", "", answer},
	{"eval/calibration.go", "fitOf", "", answer},
	{"eval/calibration.go", "step", "", answer},
	{"eval/calibration.go", "points", "binnedLimit", answer},
	{"eval/doubt.go", "leastFraction", "", answer},
	{"eval/eval.go", "Add", "m.brier += p", answer},
	{"eval/rank.go", "rank", "float64(t.spam)/2", answer},
	{"eval/rank.go", "add", "+= part * ", answer},
	{"lab/game/guess.go", "newTableau", "hi/4 - lo/4", halves},
	{"lab/game/guess.go", "newTableau", "v/4 - lo/4", halves},
	{"poeboost/algebra.go", "ClosedWeightsTo", "least - z", sign},
	{"poeboost/algebra.go", "ClosedWeightsTo", "(least-z)", sign},
	{"poeboost/univariate.go", "standard", "v/2 - h.Mean/2", halves},
	{"poeboost/univariate.go", "FitStep", "b += c", sign},
	{"poeboost/univariate.go", "slopesAt", "s.b += g", sign},
	{"lab/viboost/stage.go", "logBeta", "logistic.Log(b)/2", halves},
	{"internal/vi/stage.go", "Index", "int(1+sign)", sign},
	{"lab/vlog/anchor.go", "reach", "lo + (hi-lo)/2", halves},
	{"lab/vlog/distribution.go", "halve", "lo + (hi-lo)/2", halves},
	{"lab/vlog/distribution.go", "rule", "lo+(hi-lo)/2", halves},
	{"lab/vlog/distribution.go", "CDF", "at.lo+(t-at.lo)/2", halves},
	{"lab/vlog/mode.go", "ModeFrom", "lo + (hi-lo)/2", halves},
	{"lab/vlog/sample.go", "tangent", "t - sign*(height/slope)", sign},
}

var (
	fusedInstruction = regexp.MustCompile(`/algos/([^()\s]+\.go):(\d+)\)\s+FN?M(?:ADD|SUB)[SD]\s`)
	textOfFunction   = regexp.MustCompile(`^` + module + `/algos/\S+ STEXT `)
)

// A model is bit-identical on every CPU only if no product is fused with a sum:
// compilers for arm64, ppc64, s390x and riscv64 do so wherever the product is not
// rounded by float64(…). The assembly for arm64 shows where it was forgotten.
// Neither a run on amd64 does, nor GODEBUG=cpu.fma=off, which is for math.FMA.
func TestNoProductIsFused(t *testing.T) {
	if os.Getenv("HAMLET_ASSEMBLY") == "" {
		t.Skip("compiles all of algos for arm64: HAMLET_ASSEMBLY=1 runs it, as .ci/run does")
	}
	// The compiler reads the sources in a process of its own. go test takes a result
	// from its cache unless a file has changed that the test itself has opened.
	if err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		_, err = os.ReadFile(path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", os.DevNull, "-gcflags="+module+"/algos/...=-S", "./...")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0", "GOPROXY=off")
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%.2000s", build, err, out)
	}
	sources, used := sourceFiles{}, make([]bool, len(mayFuse))
	functions, seen := 0, map[string]bool{}
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if textOfFunction.MatchString(lines.Text()) {
			functions++
		}
		at := fusedInstruction.FindStringSubmatch(lines.Text())
		if at == nil || seen[at[1]+":"+at[2]] {
			continue // or inlined in several places
		}
		seen[at[1]+":"+at[2]] = true
		line, err := strconv.Atoi(at[2])
		if err != nil {
			t.Fatal(err)
		}
		function, code := sources.at(t, at[1], line)
		allowed := false
		for i, f := range mayFuse {
			if f.file == at[1] && f.function == function && strings.Contains(code, f.code) {
				allowed, used[i] = true, true
			}
		}
		if !allowed {
			t.Errorf("algos/%s:%d, %s: a product is fused with a sum, round it with float64(…): %s", at[1], line, function, code)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if functions < 500 {
		t.Errorf("the assembly of only %d functions was read", functions)
	}
	for i, f := range mayFuse {
		if !used[i] {
			t.Errorf("nothing is fused in algos/%s, %s, at %q: strike it off the list", f.file, f.function, f.code)
		}
	}
}

// sourceFiles caches the files below algos that were asked for.
type sourceFiles map[string]*sourceFile

type sourceFile struct {
	lines     []string
	functions []span
}

type span struct {
	name        string
	first, last int
}

// at returns the name of the function declared around a line, and the line.
func (s sourceFiles) at(t *testing.T, path string, line int) (function, code string) {
	t.Helper()
	f := s[path]
	if f == nil {
		text, err := os.ReadFile(filepath.FromSlash(path))
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		f = &sourceFile{lines: strings.Split(string(text), "\n")}
		for _, d := range file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				f.functions = append(f.functions, span{d.Name.Name, fset.Position(d.Pos()).Line, fset.Position(d.End()).Line})
			}
		}
		s[path] = f
	}
	if line > len(f.lines) {
		t.Fatalf("algos/%s has no line %d", path, line)
	}
	for _, d := range f.functions {
		if line >= d.first && line <= d.last {
			function = d.name
		}
	}
	return function, strings.TrimSpace(f.lines[line-1])
}
