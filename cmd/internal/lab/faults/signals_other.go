//go:build !unix

package faults

import (
	"errors"
	"os"
	"syscall"
)

var errNoSignals = errors.New("hamlet-lab faults needs the signals of Unix")

func inGroup(int) *syscall.SysProcAttr      { return nil }
func guardAttributes() *syscall.SysProcAttr { return nil }
func terminate(*os.Process) error           { return errNoSignals }
func pause(int) error                       { return errNoSignals }
func resume(int) error                      { return errNoSignals }
func killGroup() error                      { return errNoSignals }
