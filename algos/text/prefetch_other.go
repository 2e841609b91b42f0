//go:build !amd64 || purego

package text

func prefetch(*pair, *uint32, int, int) {}
