//go:build !amd64 || purego

package cpu

// AVX2 is false: there is no assembly.
const AVX2 = false
