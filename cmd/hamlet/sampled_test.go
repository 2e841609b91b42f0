package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
)

// With --sampled the ham of a source, or of the generator, is in the model's tables for promises. up makes the
// model that eval makes.
func TestSampledSource(t *testing.T) {
	dir := t.TempDir()
	var rows strings.Builder
	for i := range 60 {
		fmt.Fprintf(&rows, `{"id":"e%d","tenant":"t","label":"%s","text":"word %d, letter %d"}`+"\n", i, []string{"spam", "ham", "ham"}[i%3], i%7, i)
	}
	file := filepath.Join(dir, "events.jsonl")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	sum := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if err := run(t.Context(), append(args, "--json"), cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, &errs)
		}
		var result struct {
			SHA256 string `json:"model_sha256"`
		}
		if err := json.Unmarshal(out.Bytes(), &result); err != nil || result.SHA256 == "" {
			t.Fatalf("%v prints %s: %v", args, &out, err)
		}
		return result.SHA256
	}
	for _, c := range []struct {
		share, tenant string
		from          []string
		least, most   float64
	}{
		{"1", "t", []string{file}, 40, 40},
		{"0.02", "t", []string{file}, 40, 40}, // a share weighs the same: 1
		{"1", "default", []string{"--generate", "60"}, 20, 50},
	} {
		saved := filepath.Join(dir, "model")
		args := append([]string{"eval", "--experts", "lean", "--sampled", c.share, "--save", saved}, c.from...)
		sums[c.share+c.tenant] = sum(args...)
		b, err := os.ReadFile(saved)
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.Restore(b)
		if err != nil {
			t.Fatal(err)
		}
		if ham := m.Promise(c.tenant).Ham(); ham < c.least || ham > c.most || m.PromiseAll().Ham() != ham {
			t.Errorf("%v: %v ham of its tenant, %v of all", args, ham, m.PromiseAll().Ham())
		}
	}
	if plain := sum("eval", "--experts", "lean", file); plain == sums["1t"] {
		t.Error("without --sampled the model is the same")
	}
	if up := sum("up", "--once", "--experts", "lean", "--sampled", "1", file); up != sums["1t"] {
		t.Errorf("up makes %s, eval %s", up, sums["1t"])
	}
	for _, args := range [][]string{{"eval", "--sampled", "0", file}, {"eval", "--sampled", "2", "--generate", "9"}, {"eval", "--sampled", "1", "--log", file}} {
		var usage *cli.UsageError
		if err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: new(bytes.Buffer), Err: new(bytes.Buffer)}); !errors.As(err, &usage) ||
			!strings.Contains(err.Error(), "--sampled") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
