//go:build !unix

package openfiles

// Limit returns false: the system has no limit of that kind.
func Limit() (uint64, bool) { return 0, false }
