package ensemble

import "hamlet/algos/bblr"

const (
	// Trees and stumps choose among 64 quantile bins of the window, BHBoost's
	// profiles have 16.
	treeBins    = 64
	profileBins = 16

	// At most so many rounds, and not more than one for ten rows.
	treeRounds    = 100
	stumpRounds   = 100
	profileRounds = 100
	opinionRounds = 50

	// Real-valued leaves are shrunk; AnyBoost's Newton steps are clipped before.
	treeShrink    = 0.3
	profileShrink = 0.3
	leafClip      = 2

	// VIBoost's passes in a round, as in the noise watch.
	innerPasses = 5
)

// quickSchedule is BBLR at its first steepness alone, with a probe to either side
// of each coefficient: from the logistic regression on, some descents.
var quickSchedule = bblr.Schedule{GammaMin: 2, GammaMax: 2, Radius: 0.2}
