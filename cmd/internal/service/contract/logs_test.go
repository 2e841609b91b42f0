package contract

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logged returns the strings of each call of the code that logs a message, by message.
func logged(t *testing.T) map[string][]string {
	t.Helper()
	all, set := map[string][]string{}, token.NewFileSet()
	for _, folder := range []string{"cmd", "state", "stream"} {
		err := filepath.WalkDir(root+folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if health, ok := n.(*ast.CompositeLit); ok {
					for message, attributes := range healthMessages(health) {
						all[message] = append(all[message], attributes...)
					}
					return true
				}
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				method, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error", "Log", "warn"}, method.Sel.Name) {
					return true
				}
				var words []string
				for _, argument := range call.Args {
					words = append(words, stringsIn(argument)...)
				}
				if len(words) > 0 {
					all[words[0]] = append(all[words[0]], words[1:]...)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// stringsIn returns the strings in an expression, and "trace" where it has the attributes of one.
func stringsIn(e ast.Expr) (words []string) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				words = append(words, s)
			}
		case *ast.SelectorExpr:
			if n.Sel.Name == "LogAttrs" {
				words = append(words, "trace")
			}
		}
		return true
	})
	return words
}

// healthMessages returns the messages of a writebehind.Health, with their attributes.
func healthMessages(health *ast.CompositeLit) map[string][]string {
	fields := map[string][]string{}
	for _, element := range health.Elts {
		if field, ok := element.(*ast.KeyValueExpr); ok {
			if name, ok := field.Key.(*ast.Ident); ok {
				fields[name.Name] = stringsIn(field.Value)
			}
		}
	}
	if len(fields["Fails"]) != 1 || len(fields["Works"]) != 1 {
		return nil
	}
	return map[string][]string{
		fields["Fails"][0]: slices.Concat(fields["Log"], fields["Attrs"], []string{"error"}),
		fields["Works"][0]: fields["Log"],
	}
}

// The page of logs has messages and attributes that the code logs, and has all that name a
// trace.
func TestLogsAgainstCode(t *testing.T) {
	all := logged(t)
	page := file(t, root+"deploy/LOGS.md")
	rows := regexp.MustCompile("(?m)^\\| (?:DEBUG|INFO|WARN|ERROR) \\| `(.+?)` \\| (.*?) \\|").FindAllStringSubmatch(page, -1)
	if len(rows) < 30 {
		t.Errorf("%d messages: the test misses its point", len(rows))
	}
	for _, row := range rows {
		attributes, ok := all[row[1]]
		if !ok {
			t.Errorf("the code does not log %q", row[1])
			continue
		}
		for _, a := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[2], -1) {
			if !slices.Contains(attributes, a[1]) {
				t.Errorf("%q has no attribute %s, but %v", row[1], a[1], attributes)
			}
		}
	}
	for message, attributes := range all {
		if slices.Contains(attributes, "trace") && !strings.Contains(page, "`"+message+"`") {
			t.Errorf("LOGS.md lacks %q, which names a trace", message)
		}
	}
}
