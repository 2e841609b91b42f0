package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkStart runs the program as a process, beside an empty Go program in turns, and reports medians: the
// process's own time (of user and system), and how much that is of the empty program's.
//
//	go test -run - -bench Start -benchtime 20x ./cmd/hamlet
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	b.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "run"))
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		b.Fatal(err)
	}
	hamlet, empty, message := filepath.Join(dir, "hamlet"), filepath.Join(dir, "empty"), filepath.Join(dir, "text")
	for path, text := range map[string]string{empty + ".go": "package main\n\nfunc main() {}\n", message: "win a prize"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for to, from := range map[string]string{hamlet: ".", empty: empty + ".go"} {
		if out, err := exec.Command("go", "build", "-o", to, from).CombinedOutput(); err != nil {
			b.Fatalf("go build: %v\n%s", err, out)
		}
	}
	up := startUp(b)
	for name, args := range map[string][]string{
		"version": {"--version"},
		"help":    {"--help"},
		"uphelp":  {"up", "--help"},
		"score":   {"score", "--text", "--timeout=1m", "--server=nats://" + up.NATS, message},
	} {
		b.Run(name, func(b *testing.B) {
			var own, ratios, walls []float64
			for range b.N {
				least, _ := startOf(b, empty)
				cpu, wall := startOf(b, hamlet, args...)
				own, ratios, walls = append(own, cpu), append(ratios, cpu/least), append(walls, wall)
			}
			b.ReportMetric(median(own), "cpu-ms")
			b.ReportMetric(median(walls), "wall-ms")
			b.ReportMetric(median(ratios), "×empty")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// startOf runs a program. It returns how much of a processor it took, and how long it ran, in milliseconds.
func startOf(b *testing.B, program string, args ...string) (cpu, wall float64) {
	b.Helper()
	began := time.Now()
	command := exec.Command(program, args...)
	if out, err := command.CombinedOutput(); err != nil {
		b.Fatalf("%s %s: %v\n%s", program, args, err, out)
	}
	wall = float64(time.Since(began)) / 1e6
	took := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return float64(took) / 1e6, wall
}

// What a package compiles when the program starts costs every command its time: `hamlet score` runs once for each mail
// of some delivery scripts. So expressions and templates are compiled when they are first used.
func TestNothingIsCompiledAtStart(t *testing.T) {
	for _, tree := range []string{"../../algos", "../../state", "../../stream", "../../cmd"} {
		err := filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "lab" || entry.Name() == "testkit" || entry.Name() == "testdata"):
				return filepath.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(text, []byte("Must")) {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, text, 0)
			if err != nil {
				return err
			}
			for _, d := range file.Decls {
				if vars, ok := d.(*ast.GenDecl); ok && vars.Tok == token.VAR {
					ast.Inspect(vars, func(n ast.Node) bool {
						if called, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(called.Sel.Name, "Must") {
							t.Errorf("%s is called when the program starts: put it into sync.OnceValue",
								files.Position(called.Pos()))
						}
						_, later := n.(*ast.FuncLit)
						return !later
					})
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
