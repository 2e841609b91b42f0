package faults

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A bit flips in a file of the kind that is asked for, and is healed. What was written since stays.
func TestFlipBit(t *testing.T) {
	data := t.TempDir()
	files := map[string]string{ // by kind
		"segment":        "logs/hamlet.events.m/00000000000000000000.log",
		"log's head":     "logs/hamlet.events.m/log",
		"retention":      "logs/hamlet.events.m/retention",
		"chunk":          "models/chunks/01/0123456789",
		"manifest":       "models/m/1-ab.manifest",
		"book":           "models/m/book.json",
		"nats' messages": "nats/jetstream/$G/streams/s/msgs/1.blk",
		"nats' index":    "nats/jetstream/$G/streams/s/meta.inf",
	}
	content := []byte("sixteen bytes ok")
	for _, path := range files {
		path = filepath.Join(data, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	for _, r := range rots {
		f, found, err := flipBit(data, r.name, random)
		if err != nil || !found || f.path != filepath.Join(data, files[r.name]) {
			t.Fatalf("%s: %v, found %v: %v", r.name, f, found, err)
		}
		b, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if at, n := differences(t, content, b); n != 1 || int64(at[0]) != f.at {
			t.Errorf("%v: %d bits differ, at %v", f, n, at)
		}
		if err := f.heal(); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(f.path); err != nil || !bytes.Equal(b, content) {
			t.Errorf("%v was not healed: %v", f, err)
		}
		if err := os.WriteFile(f.path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := f.heal(); err != nil {
			t.Errorf("a file without the byte: %v", err)
		}
		if _, found, err := flipBit(data, r.name, random); found || err != nil {
			t.Errorf("%s: a bit of an empty file flipped: %v", r.name, err)
		}
	}
}

// ownDisk returns a mounted disk of each kind that this machine can make. It skips without root, loop devices
// or mkfs.
func ownDisk(t *testing.T, system string) *disk {
	t.Helper()
	d, err := newDisk(t.TempDir(), system)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := d.remove(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// The power fails: what was synced is on the copy, and the disk goes on from there.
func TestDiskLosesPower(t *testing.T) {
	for _, system := range makers() {
		t.Run(system, func(t *testing.T) {
			d := ownDisk(t, system)
			synced, lazy := filepath.Join(d.at, "synced"), filepath.Join(d.at, "lazy")
			write := func(path string, sync bool) {
				f, err := os.Create(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if _, err := f.WriteString("kept"); err != nil {
					t.Fatal(err)
				}
				if sync {
					if err := f.Sync(); err != nil {
						t.Fatal(err)
					}
				}
			}
			write(synced, true)
			write(lazy, false)
			copied, err := d.cut()
			if err != nil {
				t.Fatal(err)
			}
			write(filepath.Join(d.at, "later"), true)
			if err := d.replace(copied); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(synced); err != nil || string(b) != "kept" {
				t.Errorf("what was synced is %q: %v", b, err)
			}
			if b, _ := os.ReadFile(lazy); len(b) > 0 { // the kernel writes it some seconds later
				t.Errorf("what was in memory alone outlived the power: %q", b)
			}
			if _, err := os.Stat(filepath.Join(d.at, "later")); !os.IsNotExist(err) {
				t.Errorf("what was written after the power failed: %v", err)
			}
		})
	}
}

// A full disk takes nothing more, and takes it again once there is room.
func TestDiskIsFull(t *testing.T) {
	for _, system := range makers() {
		t.Run(system, func(t *testing.T) {
			d := ownDisk(t, system)
			write := func() error {
				return os.WriteFile(filepath.Join(d.at, "file"), make([]byte, 1<<20), 0o600)
			}
			if err := d.fill(); err != nil {
				t.Fatal(err)
			}
			if err := write(); err == nil {
				t.Error("a full disk takes a file of 1 MiB")
			}
			if err := d.free(); err != nil {
				t.Fatal(err)
			}
			if err := write(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A program with a clock that can be set sees another wall clock at once, and the same monotonic one.
func TestSkewedClock(t *testing.T) {
	if os.Getenv("HAMLET_NIGHTLY") == "" {
		t.Skip("it compiles Go's standard library: HAMLET_NIGHTLY=1")
	}
	tree := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example\n\ngo 1.24\n",
		"cmd/hamlet/main.go": `package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func main() {
	began := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(time.Now().Unix(), time.Since(began) < time.Hour)
	}
}
`} {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program, err := buildSkewed(t.Context(), tree, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	clock, err := newClock(filepath.Join(tree, "clock"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), clockVariable+"="+string(clock))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, by := range []time.Duration{0, 400 * day, -10 * 365 * day, 0} {
		if err := clock.set(by); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		var seconds int64
		var steady bool
		if _, err := fmt.Fscan(out, &seconds, &steady); err != nil {
			t.Fatal(err)
		}
		off := time.Since(time.Unix(seconds, 0)) + by
		if off.Abs() > time.Minute || !steady {
			t.Errorf("set by %v, the clock is off by %v; the monotonic one is steady: %v", by, off, steady)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
