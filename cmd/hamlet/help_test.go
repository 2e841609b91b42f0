package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/version"
)

// updateHelp writes the texts that --help prints: go test ./cmd/hamlet -run HelpIsKept -update-help.
var updateHelp = flag.Bool("update-help", false, "write internal/help/help.txt")

const helpFile = "internal/help/help.txt"

// The kept texts of --help are those of the flags.
func TestHelpIsKept(t *testing.T) {
	texts := &strings.Builder{}
	keep := func(command string) {
		texts.WriteString("-- " + command + " --\n" + said(t, append(strings.Fields(command)[1:], "--help")...))
	}
	keep("hamlet")
	seen := map[string]bool{}
	for line := range strings.Lines(said(t, "--help-as=commands")) {
		words := strings.Fields(line)
		for n := range words { // a group of commands has a help as well
			command := strings.Join(append([]string{"hamlet"}, words[:n+1]...), " ")
			if !seen[command] {
				seen[command] = true
				keep(command)
			}
		}
	}
	if *updateHelp {
		if err := os.WriteFile(helpFile, []byte(texts.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(helpFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != texts.String() {
		t.Errorf("%s is not what --help prints. Make it again: go test ./cmd/hamlet -run HelpIsKept -update-help", helpFile)
	}
}

// said returns what the program prints on standard output if it is asked for a help.
func said(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}); !errors.Is(err, cli.ErrHelp) {
		t.Fatalf("%v: %v", args, err)
	}
	return out.String()
}

// A help and a version come before the packages are initialized that need package net. A setting in the environment
// is read first, since a wrong one is an error.
func TestHelpComesFirst(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere the packages of kept texts do nothing")
	}
	hamlet := filepath.Join(t.TempDir(), "hamlet")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", hamlet, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	start := func(env string, args ...string) (text, trace string) {
		t.Helper()
		var out, errs strings.Builder
		cmd := exec.Command(hamlet, args...)
		cmd.Env = []string{env, "GODEBUG=inittrace=1"}
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, errs.String())
		}
		return out.String(), errs.String()
	}
	for _, of := range []struct {
		args   []string
		want   string
		before []string // packages that are initialized later
	}{
		{[]string{"--version"}, "hamlet " + version.Number + " (commit ", []string{"net/http", "github.com/segmentio/kafka-go"}},
		{[]string{"--help"}, said(t, "--help"), []string{"reflect", "encoding/json", "net/http"}},
		{[]string{"model", "pin", "--help"}, said(t, "model", "pin", "--help"), []string{"unicode", "encoding/gob", "net/http"}},
	} {
		for env, early := range map[string]bool{"LANG=C": true, "HAMLET_MODEL=m": false} {
			text, trace := start(env, of.args...)
			if !strings.HasPrefix(text, of.want) {
				t.Errorf("%s %v:\n%s\nwant\n%s", env, of.args, text, of.want)
			}
			if !strings.Contains(trace, "\ninit os @") {
				t.Fatalf("the trace is not one of package initializations:\n%s", trace)
			}
			for _, later := range of.before {
				if strings.Contains(trace, "\ninit "+later+" @") == early {
					t.Errorf("%s %v: package %s was initialized before: %v", env, of.args, later, !early)
				}
			}
		}
	}
}
