//go:build unix

package bench

import (
	"os/exec"
	"syscall"
	"time"
)

// inGroup has a command start in a group of its own: it is killed with its children, and the
// terminal's signals do not reach it.
func inGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a command that inGroup has started, and its children.
func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// processTime is the CPU time, user and system, that this process has used.
func processTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // it fails only with a wrong argument
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// processMemory is the most memory that this process has had, in bytes.
func processMemory() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // it fails only with a wrong argument
	}
	return usage.Maxrss << 10
}
