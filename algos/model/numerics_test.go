package model_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// exact are the functions of package math whose results are the same bits on
// every CPU: correctly rounded, or moving bits only.
var exact = map[string]bool{
	"Sqrt": true, "Abs": true, "Copysign": true, "Signbit": true, "Inf": true, "IsInf": true, "IsNaN": true, "NaN": true,
	"Float64bits": true, "Float64frombits": true, "Float32bits": true, "Float32frombits": true,
	"Frexp": true, "Ldexp": true, "Floor": true, "Ceil": true, "Trunc": true, "Round": true, "RoundToEven": true,
	"FMA": true, "Nextafter": true,
}

// What changes a model takes its exponentials and logarithms from
// algos/internal/logistic: those of package math differ between CPUs.
func TestModelsUseNoInexactMath(t *testing.T) {
	fset := token.NewFileSet()
	files := 0
	for _, dir := range []string{
		".", "../feature", "../text", "../blr", "../bblr", "../boost", "../poeboost", "../viboost", "../drift", "../dedup",
		"../sites", "../stack", "../trust", "../ensemble", "../internal", "../promise/table.go",
		"../lab/detect", "../lab/bblr", "../lab/vblr", "../lab/boosting", "../lab/poe", "../lab/viboost", "../lab/vlog",
	} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if f, ok := call.Fun.(*ast.SelectorExpr); ok {
					if pkg, ok := f.X.(*ast.Ident); ok && pkg.Name == "math" && !exact[f.Sel.Name] {
						t.Errorf("%s: math.%s", fset.Position(call.Pos()), f.Sel.Name)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 60 {
		t.Errorf("only %d files were looked at", files)
	}
}
