package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A disk is a file with a file system of its own, mounted. It needs root and loop devices.
type disk struct {
	image  string // the file
	at     string // where it is mounted; see mountPoint
	system string // its kind, such as ext4
}

// diskBytes is as much as mkfs.xfs asks for.
const diskBytes = 320 << 20

// fileSystems are those that a disk may have, if there is a program that makes them.
var fileSystems = []string{"ext4", "xfs", "btrfs"}

// makers returns the file systems that this machine can make.
func makers() (systems []string) {
	for _, system := range fileSystems {
		if _, err := exec.LookPath("mkfs." + system); err == nil {
			systems = append(systems, system)
		}
	}
	return systems
}

// mountPoint is where a campaign mounts its disk, below its folder.
func mountPoint(dir string) string { return filepath.Join(dir, "mounted") }

// newDisk makes a disk in dir and mounts it.
func newDisk(dir, system string) (*disk, error) {
	d := &disk{image: filepath.Join(dir, "disk"), at: mountPoint(dir), system: system}
	if err := os.MkdirAll(d.at, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(f.Truncate(diskBytes), f.Close())
	}
	if err != nil {
		return nil, err
	}
	force := "-f"
	if system == "ext4" {
		force = "-F"
	}
	if err := output("mkfs."+system, "-q", force, d.image); err != nil {
		return nil, errors.Join(err, os.Remove(d.image))
	}
	if err := d.mount(); err != nil {
		return nil, errors.Join(err, os.Remove(d.image))
	}
	return d, nil
}

// output runs a program. The error has what it said.
func output(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (d *disk) mount() error { return output("mount", "-t", d.system, "-o", "loop", d.image, d.at) }

// remove unmounts the disk and deletes it.
func (d *disk) remove() error { return errors.Join(unmount(d.at), os.Remove(d.image)) }

func unmount(at string) error { return output("umount", "-l", at) }

// mostCopies is how often cut begins again.
const mostCopies = 50

// cut copies the disk as a loss of power would leave it: what was written to the device is there, nothing that
// is in memory only. Whoever writes to it is stopped. The kernel may still write what they left: then the copy
// mixes two moments, and is made again.
func (d *disk) cut() (copied string, err error) {
	copied = d.image + ".copy"
	for range mostCopies {
		before, err := d.writes()
		if err != nil {
			return "", err
		}
		if err := output("cp", "--sparse=always", d.image, copied); err != nil {
			return "", err
		}
		if after, err := d.writes(); err != nil || after == before {
			return copied, err
		}
	}
	return "", fmt.Errorf("the kernel writes to %s all the time: it cannot be copied", d.image)
}

// writes returns the device's counters, but for those of reads: see Documentation/block/stat.rst of Linux.
func (d *disk) writes() (string, error) {
	device, err := exec.Command("findmnt", "-no", "SOURCE", d.at).Output()
	if err != nil {
		return "", fmt.Errorf("findmnt %s: %w", d.at, err)
	}
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(strings.TrimSpace(string(device))), "stat"))
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 9 {
		return "", fmt.Errorf("counters of %s: %q", device, text)
	}
	return strings.Join([]string{fields[4], fields[6], fields[8]}, " "), nil // writes, sectors, in flight
}

// replace mounts a copy in the place of the disk. Nobody uses the disk.
func (d *disk) replace(copied string) error {
	if err := unmount(d.at); err != nil {
		return err
	}
	if err := os.Rename(copied, d.image); err != nil {
		return err
	}
	if d.system == "ext4" { // mounting repairs an xfs or a btrfs
		if err := repaired(exec.Command("e2fsck", "-p", d.image)); err != nil {
			return err
		}
	}
	return d.mount()
}

// repaired runs e2fsck: status 1 says that it has mended the file system.
func repaired(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return nil
}

func (d *disk) filler() string { return filepath.Join(d.at, "filler") }

// fill takes all room that is left.
func (d *disk) fill() error {
	f, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_WRONLY, 0o600)
	if errors.Is(err, errFull) {
		return nil // not even a name is left
	}
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := f.Seek(0, 2)
	for size := int64(64 << 20); err == nil && size >= 4<<10; {
		if err = allocate(f, end, size); err == nil {
			end += size
		} else if errors.Is(err, errFull) {
			size, err = size/2, nil
		}
	}
	if err != nil {
		return fmt.Errorf("fill %s: %w", d.at, err)
	}
	return nil
}

// free gives the room back.
func (d *disk) free() error {
	err := os.Remove(d.filler())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
