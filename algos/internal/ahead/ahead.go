// Package ahead says where the memory of features lies, so that who finds a feature can start to load it into the
// cache before it is read.
package ahead

import "unsafe"

// A Table is memory of features: that of feature i is Size bytes from Begin + i·Size on. In the zero Table there is
// nothing to load.
type Table struct {
	Begin *byte
	Size  int
}

// Of returns a Table of features that have each elements of s.
func Of[T any](s []T, each int) Table {
	if len(s) == 0 {
		return Table{}
	}
	return Table{(*byte)(unsafe.Pointer(&s[0])), each * int(unsafe.Sizeof(s[0]))}
}
