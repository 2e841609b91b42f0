//go:build !purego

package text

// Both ask for the lines of table's entries at n indices; a weight and a count
// are eight bytes.

//go:noescape
func prefetchWeights(table *weight, index *uint32, n int)

//go:noescape
func prefetchCounts(table *count, index *uint32, n int)
