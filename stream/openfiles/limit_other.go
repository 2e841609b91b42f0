//go:build !unix

package openfiles

// Limit returns false: this system does not limit the number of open files.
func Limit() (uint64, bool) { return 0, false }
