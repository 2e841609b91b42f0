package faults

import (
	"os"
	"syscall"
)

// inGroup puts a process into a group (0: its own), and has Linux kill it with its parent.
func inGroup(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group, Pdeathsig: syscall.SIGKILL}
}

// errFull says that a disk has no room.
var errFull error = syscall.ENOSPC

// allocate takes room for a file, which grows by it.
func allocate(f *os.File, at, size int64) error { return syscall.Fallocate(int(f.Fd()), 0, at, size) }
