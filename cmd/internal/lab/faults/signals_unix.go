//go:build unix

package faults

import (
	"os"
	"syscall"
)

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
func pause(pid int) error           { return syscall.Kill(pid, syscall.SIGSTOP) }
func resume(pid int) error          { return syscall.Kill(pid, syscall.SIGCONT) }

// killGroup kills this process and its group.
func killGroup() error { return syscall.Kill(0, syscall.SIGKILL) }

// guardAttributes put the guard into a group of its own, which a terminal's ^C does not
// reach.
func guardAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
