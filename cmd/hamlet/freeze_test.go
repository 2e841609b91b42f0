package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/report"
	"hamlet/cmd/internal/testkit/clitest"
)

// letters writes n labelled texts as JSON Lines.
func letters(t *testing.T, path string, n int) {
	t.Helper()
	var b strings.Builder
	for i := range n {
		label, text := "ham", fmt.Sprintf("minutes of the weekly meeting %d in room %d", i%7, i%5)
		if i%3 == 0 {
			label, text = "spam", fmt.Sprintf("claim your free prize %d at counter %d", i%7, i%5)
		}
		fmt.Fprintf(&b, `{"id":"%d","label":"%s","text":"%s"}`+"\n", i, label, text)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command runs hamlet and returns what it writes.
func command(t *testing.T, stdin string, args ...string) (out, errs string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err = run(t.Context(), args, cli.IO{In: strings.NewReader(stdin), Out: &stdout, Err: &stderr})
	return stdout.String(), stderr.String(), err
}

// From mail to file to models: eval and up make the same one, its bytes need no file, and
// up goes on with it only under the same frozen expert.
func TestFreezeEvalUp(t *testing.T) {
	dir := t.TempDir()
	old, mail, file := filepath.Join(dir, "old.jsonl"), filepath.Join(dir, "mail.jsonl"), filepath.Join(dir, "mail.frozen")
	letters(t, old, 150)
	letters(t, mail, 60)
	if _, errs, err := command(t, "", "freeze", old, "--out", file, "--table-bits=10"); err != nil || !strings.Contains(errs, "100 ham and 50 spam") {
		t.Fatalf("%v, %s", err, errs)
	}
	frozen, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if again, _, err := command(t, "", "freeze", old, "--out=-", "--table-bits=10"); err != nil || again != string(frozen) {
		t.Errorf("frozen again: %v, or other bytes", err)
	}
	sum := sha256.Sum256(frozen)

	var results [2]report.Result
	saved := filepath.Join(dir, "model")
	data := filepath.Join(dir, "data")
	settings := []string{"--experts=text-words,text-4grams-bayes", "--table-bits=10", "--json", "--frozen", file}
	for k, args := range [][]string{
		append([]string{"eval", mail, "--save", saved}, settings...),
		append([]string{"up", mail, "--once", "--log-level=error", "--data", data}, settings...),
	} {
		out, errs, err := command(t, "", args...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, errs)
		}
		if err := json.Unmarshal([]byte(out), &results[k]); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := results[0].ModelSHA256, results[1].ModelSHA256; a != b || a == "" {
		t.Errorf("eval makes the model %s, up %s", a, b)
	}
	b, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Restore(b)
	if err != nil || m.Config().Frozen != hex.EncodeToString(sum[:]) || bytes.Count(b, frozen) != 1 {
		t.Errorf("the model names %s: %v", m.Config().Frozen, err)
	}
	plain, _, err := command(t, "", "eval", mail, "--experts=text-words,text-4grams-bayes", "--table-bits=10", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var without report.Result
	if err := json.Unmarshal([]byte(plain), &without); err != nil {
		t.Fatal(err)
	}
	if !(results[0].LogLoss < without.LogLoss) {
		t.Errorf("log loss %v with an expert that knows this mail, %v without", results[0].LogLoss, without.LogLoss)
	}

	_, errs, err := command(t, "", "up", mail, "--once", "--log-level=error", "--data", data,
		"--experts=text-words,text-4grams-bayes", "--table-bits=10", "--json")
	if err == nil || !strings.Contains(err.Error(), "frozen: none here, "+m.Config().Frozen+" in the model") {
		t.Errorf("up without the file goes on: %v\n%s", err, errs)
	}
}

func TestFreezeIsRefused(t *testing.T) {
	dir := t.TempDir()
	mail, frozen, config := filepath.Join(dir, "mail.jsonl"), filepath.Join(dir, "f"), filepath.Join(dir, "c.yaml")
	letters(t, mail, 30)
	if _, errs, err := command(t, "", "freeze", mail, "--out", frozen, "--table-bits=8"); err != nil {
		t.Fatal(err, errs)
	}
	if err := os.WriteFile(config, []byte("model:\n  frozen: "+strings.Repeat("a", 64)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, stdin, want string
		usage             bool
	}{
		{"freeze " + mail, "", "--out", true},
		{"freeze " + mail + " --out - --min-count 0", "", "--min-count: 0 is not in", true},
		{"freeze " + mail + " --out - --table-bits 3", "", "--table-bits: ", true},
		{"freeze - --format jsonl --out -", `{"id":"1","label":"ham","text":"hello there"}`, "a frozen expert of 1 ham and 0 spam", false},
		{"freeze - --format jsonl --out -", `{"type":"hamlet.standing.v1","id":"1","source":"a","role":"muted"}`, "eval, up and ingest alone", false},
		{"eval " + mail + " --frozen " + mail, "", "these are not the bytes of a frozen expert", true},
		{"eval " + mail + " --frozen " + filepath.Join(dir, "none"), "", "none", true},
		{"eval " + mail + " --config " + config, "", "name its file with --frozen", true},
		{"eval " + mail + " --config " + config + " --frozen " + frozen, "", "the configuration file's model.frozen is aaa", true},
		{"eval " + mail + " --set frozen=77", "", "name its file with --frozen", true},
	} {
		_, _, err := command(t, c.stdin, strings.Fields(c.args)...)
		if err == nil || !strings.Contains(err.Error(), c.want) || (cli.Status(err) == cli.StatusUsage) != c.usage {
			t.Errorf("%s: %v, want an error with %q", c.args, err, c.want)
		}
	}
	var errs bytes.Buffer
	stdin := `{"id":"1","label":"ham","text":"hello there"}` + "\n" + `{"id":"2","label":"spam","text":"hello prize"}` + "\n" +
		`{"id":"3","label":"spam","vector":{"a":1}}`
	err := run(t.Context(), []string{"freeze", "-", "--format=jsonl", "--out=-", "--table-bits=8"}, cli.IO{In: strings.NewReader(stdin), Out: io.Discard, Err: &errs})
	for _, want := range []string{"one pass in place of 3", "mail and text only", "1 ham and 1 spam"} {
		if err != nil || !strings.Contains(errs.String(), want) {
			t.Errorf("%v, stderr lacks %q:\n%s", err, want, errs.String())
		}
	}
}

func TestFreezeHelp(t *testing.T) {
	clitest.Help(t, run, []string{"--min-count=3", "It is a statistic of the mail", "hash a guess"}, "freeze", "--help")
}
