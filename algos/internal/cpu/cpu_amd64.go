//go:build !purego

package cpu

// AVX2 says that the processor has AVX2 and POPCNT, and that the system saves the registers.
var AVX2 = supportsAVX2()

//go:noescape
func supportsAVX2() bool
