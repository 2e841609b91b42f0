package text

// Prefetch tells the processor that the entries of these features are wanted
// soon, so that they come from far caches while something else is computed. It
// changes nothing, whatever the indices, and does nothing where there is no
// kernel for it: not on amd64, or with the build tag purego.
func (e *AdaGrad) Prefetch(f *View) {
	if len(f.Index) > 0 {
		prefetchWeights(&e.table[0], &f.Index[0], len(f.Index))
	}
}

// Prefetch is [AdaGrad.Prefetch] for counts.
func (e *NaiveBayes) Prefetch(f *View) {
	if len(f.Index) > 0 {
		prefetchCounts(&e.table[0], &f.Index[0], len(f.Index))
	}
}
