// Laboratory: the programs under test.

// Package product finds the program hamlet, which the laboratory runs and measures.
package product

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Path returns the path of hamlet: beside the running program, or else on the PATH.
func Path() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	name := "hamlet"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	path, err := exec.LookPath("hamlet")
	if err != nil {
		return "", fmt.Errorf("the program hamlet is neither beside %s nor on the PATH: %w; "+
			"`go build -o bin/ ./cmd/...` makes both", self, err)
	}
	return path, nil
}

// Command returns a command of hamlet, such as up, or one of its services: ingest, learner or scorer.
func Command(ctx context.Context, path, name string, args ...string) *exec.Cmd {
	switch name {
	case "ingest", "learner", "scorer":
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Args[0] = "hamlet-" + name // called by this name, hamlet runs that service
		return cmd
	}
	return exec.CommandContext(ctx, path, append([]string{name}, args...)...)
}

// Environment returns the environment without hamlet's own variables, so that only flags configure
// the programs.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "HAMLET_") })
}

// FreeAddress returns an address of loopback on which nobody listens.
func FreeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer l.Close()
	return l.Addr().String()
}

// TicksPerSecond is the unit of times in /proc, for programs on every processor.
const TicksPerSecond = 100

// Stat returns the fields of /proc/PID/stat, beginning with the state. Counted from 0, field 1 is the
// parent's id; fields 11 to 14 are user, system, children's user and children's system time.
func Stat(pid string) ([]string, error) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ") // the name may have blanks
	fields := strings.Fields(rest)
	if len(fields) <= 15 {
		return nil, fmt.Errorf("stat of process %s: %q", pid, text)
	}
	return fields, nil
}
