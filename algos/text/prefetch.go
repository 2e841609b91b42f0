package text

// Prefetch implements [Expert]. It has no effect except on amd64 without the build tag
// purego. Any index is safe.
func (e *AdaGrad) Prefetch(f *View) {
	if len(f.Index) > 0 {
		prefetchWeights(&e.table[0], &f.Index[0], len(f.Index))
	}
}

// Prefetch implements [Expert] like [AdaGrad.Prefetch].
func (e *NaiveBayes) Prefetch(f *View) {
	if len(f.Index) > 0 {
		prefetchCounts(&e.table[0], &f.Index[0], len(f.Index))
	}
}
