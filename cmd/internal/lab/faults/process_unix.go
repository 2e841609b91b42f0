//go:build unix && !linux

package faults

import "syscall"

func inGroup(group int) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true, Pgid: group} }
