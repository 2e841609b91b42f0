package viboost

import "hamlet/algos/viboost"

// The result is the product's.
type (
	Ensemble = viboost.Ensemble
	Term     = viboost.Term
)
