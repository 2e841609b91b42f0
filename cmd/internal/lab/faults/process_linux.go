package faults

import "syscall"

// inGroup puts a process into a group (0: its own), and has Linux kill it with its parent.
func inGroup(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group, Pdeathsig: syscall.SIGKILL}
}
