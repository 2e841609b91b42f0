//go:build !amd64 || purego

package text

func prefetchWeights(*weight, *uint32, int) {}
func prefetchCounts(*count, *uint32, int)   {}
