package blr

// A Record is one event as the posterior absorbed it: all that Unlearn and Refresh need.
// In natural parameters it was H·xxᵀ and Eta·x; with a half-life it has faded since.
type Record struct {
	X      []float64 // the inputs, of length D
	Y, Phi float64   // the label ±1, and the power of its likelihood
	Step             // the site
	Fades  uint64    // how often the posterior had let its sites fade before
}
