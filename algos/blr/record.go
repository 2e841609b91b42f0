package blr

// A Record is one event as the posterior absorbed it: all that Unlearn and Refresh need.
// It added H·xxᵀ to Λ and Eta·x to η; with a half-life both have faded since.
type Record struct {
	X      []float64 // the inputs, of length D
	Y, Phi float64   // the label ±1, and the power of its likelihood, at most MostPower
	Step             // the site
	Fades  uint64    // the posterior's Fades before the event
}
