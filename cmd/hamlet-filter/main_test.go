package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/filter"
	"hamlet/cmd/internal/filter/filtertest"
)

const message = "Subject: minutes\n\nHello\n"

// build builds the program, without C, as README says.
func build(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hamlet-filter")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// The process marks, passes what it cannot mark, and says with its status when the
// message is not whole: no signal of a reader that has gone comes before.
func TestProcess(t *testing.T) {
	t.Parallel()
	program := build(t)
	addr := filtertest.Start(t, filtertest.Serve)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err) // a system without it
	}
	defer full.Close()
	reader, gone, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer gone.Close()
	for name, c := range map[string]struct {
		addr   string
		out    *os.File // nil: it is read
		status int
		want   string
		stderr string
	}{
		"marked":      {addr, nil, 0, string(filtertest.Marked([]byte(message))), ""},
		"absent":      {"unix:/nonexistent/spamd.sock", nil, 0, message, "hamlet-filter: the message passes unmarked: dial unix"},
		"full":        {addr, full, 75, "", "hamlet-filter: pass the message on: "},
		"reader gone": {addr, gone, 75, "", "hamlet-filter: pass the message on: "},
		"wrong usage": {"nowhere", nil, 2, "", "hamlet-filter: --socket: "},
	} {
		var out, stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), program, "--timeout", "30s")
		cmd.Env = append(os.Environ(), filter.Variable+"="+c.addr)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(message), &out, &stderr
		if c.out != nil {
			cmd.Stdout = c.out
		}
		_ = cmd.Run() // its status is looked at
		if got := cmd.ProcessState.ExitCode(); got != c.status || out.String() != c.want || !strings.HasPrefix(stderr.String(), c.stderr) {
			t.Errorf("%s: status %d, want %d\n%q\nwant %q\nstderr %s", name, got, c.status, out.String(), c.want, stderr.String())
		}
		if lines := strings.Count(stderr.String(), "\n"); c.status != 2 && lines > 1 {
			t.Errorf("%s: %d lines on stderr:\n%s", name, lines, stderr.String())
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{
		"--help": 0, "-h": 0,
		"--nonsense": filter.StatusUsage, "message.eml": filter.StatusUsage, "--timeout 0s": filter.StatusUsage, "--socket x": filter.StatusUsage,
	} {
		var out, stderr bytes.Buffer
		got := run(strings.Fields(args), func(string) string { return "" }, strings.NewReader(message), &out, &stderr)
		if got != want || (want == 0) != (out.String() == usage) || (want == 0) == strings.Contains(stderr.String(), "--help") {
			t.Errorf("%s: status %d, want %d; stdout %q, stderr %q", args, got, want, out.String(), stderr.String())
		}
	}
	for line := range strings.Lines(usage) {
		if len(line) > 81 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
}
