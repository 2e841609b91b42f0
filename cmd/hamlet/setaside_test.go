package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hamlet/algos/algotest/plant"
	"hamlet/cmd/internal/process/cli"
)

// eval sets an event aside whose learning ends in a panic, says how to do so from the
// beginning, and makes the same model either way. The configuration file can name it too.
func TestEvalSetsAnEventAside(t *testing.T) {
	plant.Learning(t, "e7")
	var rows strings.Builder
	for i := range 40 {
		fmt.Fprintf(&rows, `{"id":"e%d","source":"desk","label":"%s","text":"word %d"}`+"\n", i, []string{"spam", "ham"}[i%2], i%5)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "events.jsonl")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	evaluate := func(more ...string) (result, said string) {
		t.Helper()
		var out, errs bytes.Buffer
		args := append([]string{"eval", file, "--json"}, more...)
		if err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}); err != nil {
			t.Fatalf("%v\n%s", err, &errs)
		}
		return regexp.MustCompile(`"events_per_second":[^,]*`).ReplaceAllString(out.String(), ""), errs.String()
	}
	met, said := evaluate()
	key := regexp.MustCompile(`--set (set_aside=([0-9a-f]{16}))\n`).FindStringSubmatch(said)
	if key == nil || !strings.HasPrefix(said, "a defect of hamlet: learn this event: a panic that a test has planted") || !strings.Contains(said, "planted.go") {
		t.Fatalf("it said\n%s", said)
	}
	told, said := evaluate("--set", key[1])
	if told != met || !strings.Contains(met, `"rejected":1`) || strings.Contains(said, "planted") {
		t.Errorf("met\n%s\ntold\n%s\nand said %s", met, told, said)
	}
	config := filepath.Join(dir, "hamlet.yaml")
	if err := os.WriteFile(config, []byte("model:\n  set_aside: ["+"'"+key[2]+"'"+"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if told, _ := evaluate("--config", config); told != met {
		t.Errorf("by the configuration file\n%s\nwant\n%s", told, met)
	}
	plant.Learning(t)
	whole, _ := evaluate()
	if whole == met {
		t.Error("with the event the result is the same")
	}
	if err := run(t.Context(), []string{"eval", file, "--set", "set_aside=7"}, cli.IO{Out: io.Discard, Err: io.Discard}); err == nil || !strings.Contains(err.Error(), "16 hexadecimal digits") {
		t.Errorf("a key that is none: %v", err)
	}
}
