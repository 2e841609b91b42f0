//go:build unix

package openfiles

import "syscall"

// Limit returns how many files and connections the process may open at once, if the
// system says so. Go's runtime has raised the soft limit to the hard one.
func Limit() (uint64, bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return uint64(limit.Cur), true
}
