// Package clitest states what the help and the version of every program owe their
// reader. The tests of the programs call it.
//
//	clitest.Help(t, run, []string{"--save-every=3s"}, "--help")
//	clitest.Version(t, run, "learner")
package clitest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
)

// Run is a program.
type Run func(ctx context.Context, args []string, stdio cli.IO) error

// Two screens, in lines and columns.
const maxLines, maxColumns = 110, 80

// Help checks that the help asked for by args fits on two screens, has the wanted
// texts and does not repeat the rule about variables at every flag.
func Help(t *testing.T, run Run, want []string, args ...string) {
	t.Helper()
	out := output(t, run, args...)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) > maxLines {
		t.Errorf("%v: %d lines, more than %d", args, len(lines), maxLines)
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > maxColumns {
			t.Errorf("%v: wider than %d columns: %s", args, maxColumns, line)
		}
	}
	for _, text := range want {
		if !strings.Contains(out, text) {
			t.Errorf("%v: the help lacks %q:\n%s", args, text, out)
		}
	}
	if strings.Contains(out, "$HAMLET") || strings.Count(out, "HAMLET_SAVE_EVERY") != 1 {
		t.Errorf("%v: the rule about variables does not stand there once:\n%s", args, out)
	}
}

// Version checks what --version prints.
func Version(t *testing.T, run Run, program string) {
	t.Helper()
	out := output(t, run, "--version")
	for _, want := range []string{program + " 0.", runtime.Version(), "numerics " + model.CurrentNumerics()} {
		if !strings.Contains(out, want) {
			t.Errorf("--version lacks %q: %s", want, out)
		}
	}
}

var inEffect = regexp.MustCompile(`(?m)^#([a-z0-9-]+:)`)

// Manual checks the help of a program in other forms: a page for each command that groff
// reads without complaint, and a configuration file for those of the commands that are
// services, whose every line the program knows.
func Manual(t *testing.T, run Run, services ...string) {
	t.Helper()
	var pages strings.Builder
	for command := range strings.Lines(output(t, run, "--help-as=commands")) {
		page := output(t, run, append(strings.Fields(command), "--help-as=man")...)
		if !strings.Contains(page, ".SH NAME\nhamlet") || !strings.Contains(page, "\n.SH OPTIONS\n") {
			t.Errorf("the page of %q is\n%s", command, page)
		}
		pages.WriteString(page)
	}
	if groff, err := exec.LookPath("groff"); err == nil {
		cmd := exec.CommandContext(t.Context(), groff, "-man", "-z", "-ww", "-b", "-Tutf8")
		cmd.Stdin = strings.NewReader(pages.String())
		if complaints, err := cmd.CombinedOutput(); err != nil || len(complaints) > 0 {
			t.Errorf("groff: %v: %s", err, complaints)
		}
	}
	for _, service := range services {
		text := output(t, run, append(strings.Fields(service), "--help-as=yaml")...)
		file := filepath.Join(t.TempDir(), "hamlet.yaml")
		if err := os.WriteFile(file, []byte(inEffect.ReplaceAllString(text, "$1")), 0o600); err != nil {
			t.Fatal(err)
		}
		output(t, run, append(strings.Fields(service), "--config", file, "--help")...)
		if strings.Count(text, "\n#") < 20 {
			t.Errorf("the configuration of %q is short:\n%s", service, text)
		}
	}
}

func output(t *testing.T, run Run, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
	if !errors.Is(err, cli.ErrHelp) || errs.Len() > 0 {
		t.Errorf("%v: %v, stderr %q", args, err, errs.String())
	}
	return out.String()
}
