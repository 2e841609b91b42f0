//go:build unix

package secretfile

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// NoFollow are flags of os.OpenFile: a link is an error, and a pipe does not block.
const NoFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// open reports whether users outside of a file's group may read or write it.
func open(info fs.FileInfo) bool { return info.Mode().Perm()&0o006 != 0 }

// trusted reports whether a file belongs to root, or to the user of this program. Root trusts
// every owner.
func trusted(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && trusts(os.Geteuid(), int(stat.Uid))
}

func trusts(us, owner int) bool { return us == owner || us == 0 || owner == 0 }

// Private reports whether the mode of a file or folder shuts out all other users.
func Private(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }

// Owner returns the name of a file's owner, or the number as #1000.
func Owner(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "another user"
	}
	number := strconv.FormatUint(uint64(stat.Uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return "#" + number
}

// Ours reports whether a file belongs to the user of this program.
func Ours(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid()
}

// setMode gives a descriptor a mode. Systems that cannot say so.
func setMode(fd uintptr, mode fs.FileMode) { _ = syscall.Fchmod(int(fd), uint32(mode.Perm())) }
