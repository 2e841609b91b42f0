package bench

import (
	"os/exec"
	"time"
)

// inGroup does nothing: the adapters are shell scripts, which Windows does not have.
func inGroup(*exec.Cmd) {}

// killGroup kills a command.
func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// processTime is not known.
func processTime() time.Duration { return 0 }

// processMemory is not known.
func processMemory() int64 { return 0 }
