package feature

import (
	"syscall"
	"testing"
)

// guarded returns a copy of b. Reading a byte behind it is a fault.
func guarded(t *testing.T, b []byte) []byte {
	page := syscall.Getpagesize()
	m, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(m) })
	if err := syscall.Mprotect(m[page:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	end := m[page-len(b) : page : page]
	copy(end, b)
	return end
}
