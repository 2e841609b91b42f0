package hugepages

import (
	"syscall"
	"unsafe"
)

// size is that of a huge page on most processors. On others it does no harm.
const size = 2 << 20

// Advise asks the kernel to hold s in huge pages. It should come before the first use of s,
// which must have no pointers. A kernel that does not do it costs speed and nothing else.
func Advise[T any](s []T) {
	if len(s) == 0 {
		return
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (size - 1))
	if len(b) < skip+size {
		return
	}
	b = b[skip:]
	_ = syscall.Madvise(b[:len(b)&^(size-1)], syscall.MADV_HUGEPAGE)
}
