package faults

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// clockVariable names the file of a process' clock in its environment. Only a program that
// buildSkewed has made reads it.
const clockVariable = "HAMLET_FAULTS_CLOCK"

// skewSource is added to package time. The eight bytes of the file are the seconds by which the wall clock
// is wrong. The file is mapped, so that a change reaches a running process at once.
const skewSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var skew = mapSkew()

func mapSkew() *int64 {
	path, ok := syscall.Getenv("` + clockVariable + `")
	if !ok {
		return new(int64)
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("` + clockVariable + `: " + err.Error())
	}
	b, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("` + clockVariable + `: " + err.Error())
	}
	syscall.Close(fd)
	return (*int64)(unsafe.Pointer(&b[0]))
}

func skewed(sec int64) int64 { return sec + atomic.LoadInt64(skew) }
`

const (
	nowBefore = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	nowAfter  = nowBefore + "\tsec = skewed(sec)\n"
)

// buildSkewed builds hamlet with a wall clock that a file moves, into dir. tree is hamlet's source tree.
//
// It replaces time.Now itself, so that the libraries in hamlet see the same clock, and the source of hamlet
// has no switch. A clock that each of hamlet's parts is given would reach neither NATS nor the next call of
// time.Now that somebody writes. The monotonic clock stays right, as it does where somebody sets a machine's
// clock.
func buildSkewed(ctx context.Context, tree, dir string) (path string, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("the Go toolchain builds hamlet with a clock that can be set: %w", err)
	}
	folder := filepath.Join(string(bytes.TrimSpace(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(folder, "time.go"))
	if err != nil {
		return "", err
	}
	if strings.Count(string(source), nowBefore) != 1 {
		return "", fmt.Errorf("%s/time.go does not begin time.Now with %q", folder, nowBefore)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	overlay := map[string]map[string]string{"Replace": {}}
	for name, text := range map[string]string{
		"time.go": strings.Replace(string(source), nowBefore, nowAfter, 1), "skew.go": skewSource,
	} {
		at := filepath.Join(dir, name+".txt")
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			return "", err
		}
		overlay["Replace"][filepath.Join(folder, name)] = at
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	at := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(at, list, 0o600); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "hamlet")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", at, "-o", path, "./cmd/hamlet")
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build hamlet with a clock that can be set: %w: %s", err, bytes.TrimSpace(out))
	}
	return path, nil
}

// A wallClock is the clock of one process: how wrong it is stands in a file.
type wallClock string

// newClock makes a clock that is right.
func newClock(path string) (wallClock, error) {
	c := wallClock(path)
	return c, c.set(0)
}

// set makes the clock wrong by so much, in whole seconds. The program has the file mapped: it is written in
// place.
func (c wallClock) set(by time.Duration) error {
	f, err := os.OpenFile(string(c), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(by/time.Second))), 0)
	return err
}

// skews are by how much a clock is wrong: a stray NTP server, a wrong time zone, a wrong date, and a clock
// without its battery.
var skews = []time.Duration{2 * time.Minute, time.Hour, 26 * time.Hour, 40 * day, 400 * day, 10 * 365 * day}

const day = 24 * time.Hour

// drawSkew draws one of skews, back or forth.
func drawSkew(random *rand.Rand) time.Duration {
	by := skews[random.IntN(len(skews))]
	if random.IntN(2) == 0 {
		return -by
	}
	return by
}
