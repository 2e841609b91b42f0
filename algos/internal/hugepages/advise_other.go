//go:build !linux

package hugepages

// Advise does nothing: only Linux takes the advice.
func Advise[T any](s []T) {}
