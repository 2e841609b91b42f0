//go:build !purego

package text

// Both prefetch the cache lines of table's entries at n indices. Entries have 8 bytes.

//go:noescape
func prefetchWeights(table *weight, index *uint32, n int)

//go:noescape
func prefetchCounts(table *count, index *uint32, n int)
