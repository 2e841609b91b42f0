//go:build !purego

package text

// prefetch prefetches the cache lines of n features' pairs. A feature has size bytes.
//
//go:noescape
func prefetch(table *pair, index *uint32, n, size int)
