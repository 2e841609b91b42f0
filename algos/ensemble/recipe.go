package ensemble

// What each kind is built with. Measured on spambase in November 2026; the package
// doc has the table and what other choices came to.
const (
	// Trees and stumps choose among at most 64 quantile bins of an input, and
	// POEBoost.CS pools rows by them; BHBoost scores 16.
	bins        = 64
	profileBins = 16

	// At most so many rounds, and not more than one for rowsPerRound rows, so that
	// the few rows of a young stream are not learnt by heart.
	rounds        = 100
	opinionRounds = 50 // of POEBoost.CS, dearer by the round
	rowsPerRound  = 10

	// Real values are shrunk, of trees and profiles; AnyBoost's Newton steps are
	// clipped before.
	shrink   = 0.3
	leafClip = 2

	// VIBoost's passes in a round, as in the noise watch.
	innerPasses = 5
)
