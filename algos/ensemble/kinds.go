package ensemble

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/bblr"
	"hamlet/algos/boost"
	"hamlet/algos/poeboost"
	"hamlet/algos/viboost"
)

// A Kind names a booster in --ensembles and in configurations.
type Kind string

const (
	LogitTrees   Kind = "logit-trees"  // the logistic cost over trees of depth 2 to 4, shrunk
	RealAdaBoost Kind = "realadaboost" // trees of depth 2, shrunk
	POEBoostDS   Kind = "poeboost.ds"  // stumps, with Qᵢ and the minimising P_e
	POEBoostCS   Kind = "poeboost.cs"  // univariate logistic regressions by Newton
	AdaBoost     Kind = "adaboost"     // stumps
	BHBoost      Kind = "bhboost"      // 16 quantile bins, shrunk
	VIBoost      Kind = "viboost"      // stumps
	BBLR         Kind = "bblr"         // linear, on standardised inputs
)

// DefaultRounds is how many rounds a window of 1,000 rows or more gets.
const DefaultRounds = 100

// What each kind is built with. MEASURED.md has the results of other choices.
const (
	bins        = 64 // of an input, at most, for trees, stumps and the pooled rows of POEBoost.CS
	profileBins = 16 // of BHBoost
	treeBins    = 32 // of logit-trees

	// At most one round for each rowsPerRound rows, so that the few rows of a young stream
	// are not overfitted.
	rowsPerRound  = 10
	opinionRounds = 50 // at most, of POEBoost.CS, which costs more a round

	// Trees of logit-trees have depth 2, one level more from shallowRows rows on, and another
	// from four times as many on.
	shallowRows = 500

	// Real values of trees and profiles are shrunk. Newton steps of logit-trees are
	// clipped before.
	shrink   = 0.3
	leafClip = 2

	innerPasses = 5 // of VIBoost in a round, as in package drift
)

// A booster describes a kind.
type booster struct {
	kind Kind

	// bins is the most quantile bins of an input; 0 if build takes no d.
	bins int

	// build trains on s; d holds its inputs in bins. It checks ctx between rounds.
	build func(ctx context.Context, s *sample, d *boost.Data) (function, error)

	// read reads what the function's AppendBinary wrote. It returns an error for what build
	// cannot return: hypotheses of another kind, answers beyond float64.
	read func(b []byte) (function, error)
}

// boosters are all kinds. The index of a kind is its code in the bytes.
//
// A new booster needs, in this order:
//
//   - its algorithm, in a package of boosters, mostly algos/boost ("A booster of
//     one's own" in its doc; realadaboost.go is a short example);
//   - its constant above and an entry at the end of this table, with 64 bins if it makes
//     cuts, and a check that refuses bytes that its build cannot make;
//   - its facts in kinds_test.go, which fails without them, and its golden file
//     (go test ./algos/ensemble -run 'TestGolden$' -update);
//   - a line in the tables of this package's doc and of MEASURED.md.
//
// Configurations, help texts, bytes and errors follow from the entry. Models that do
// not name the booster do not change.
var boosters = [...]booster{
	{
		kind: LogitTrees, bins: treeBins, read: decoder(checkGrown),
		build: func(ctx context.Context, s *sample, d *boost.Data) (function, error) {
			b, err := boost.NewLogitTrees(d, s.y, boost.LogitTreesConfig{
				Rounds: s.rounds(), Weights: s.ω, Depth: s.depth(), Clip: leafClip, Shrink: shrink})
			return train(ctx, b, err)
		},
	},
	{
		kind: RealAdaBoost, bins: bins, read: decoder(checkTrees),
		build: func(ctx context.Context, s *sample, d *boost.Data) (function, error) {
			b, err := boost.NewRealAdaBoost(d, s.y, boost.RealAdaBoostConfig{
				Rounds: s.rounds(), Weights: s.ω, Depth: 2, Shrink: shrink})
			return train(ctx, b, err)
		},
	},
	{
		kind: POEBoostDS, bins: bins, read: decoder(checkVotes),
		build: func(ctx context.Context, s *sample, d *boost.Data) (function, error) {
			b, err := poeboost.NewDiscrete(d, s.y, poeboost.DiscreteConfig{
				Rounds: s.rounds(), Weights: s.ω, ErrorRate: poeboost.Minimising})
			return train(ctx, b, err)
		},
	},
	{
		kind: POEBoostCS, bins: bins, read: decoder(checkOpinions),
		build: func(ctx context.Context, s *sample, d *boost.Data) (function, error) {
			b, err := poeboost.NewContinuous(d, s.y, poeboost.ContinuousConfig{
				Rounds: min(s.rounds(), opinionRounds), Weights: s.ω, Learner: poeboost.Newton, Pooled: true})
			return train(ctx, b, err)
		},
	},
	{
		kind: AdaBoost, bins: bins, read: decoder(checkStumps),
		build: func(ctx context.Context, s *sample, d *boost.Data) (function, error) {
			b, err := boost.NewAdaBoost(d, s.y, boost.AdaBoostConfig{Rounds: s.rounds(), Weights: s.ω})
			return train(ctx, b, err)
		},
	},
	{
		kind: BHBoost, bins: profileBins, read: decoder(checkProfiles),
		build: func(ctx context.Context, s *sample, d *boost.Data) (function, error) {
			b, err := boost.NewBHBoost(d, s.y, boost.BHBoostConfig{
				Rounds: s.rounds(), Weights: s.ω, Shrink: shrink})
			return train(ctx, b, err)
		},
	},
	{
		kind: VIBoost, bins: bins, read: decoder(checkTerms),
		build: func(ctx context.Context, s *sample, d *boost.Data) (function, error) {
			b, err := viboost.New(d, s.y, viboost.Config{Rounds: s.rounds(), Inner: innerPasses, Weights: s.ω})
			return train(ctx, b, err)
		},
	},
	{kind: BBLR, read: decoder(checkLinear), build: buildLinear},
}

// Kinds returns all kinds, the default ensemble first.
func Kinds() []Kind {
	kinds := make([]Kind, len(boosters))
	for i := range boosters {
		kinds[i] = boosters[i].kind
	}
	return kinds
}

// Valid reports whether k is one of Kinds.
func (k Kind) Valid() bool { return k.code() >= 0 }

// code returns the index of k in boosters, or −1.
func (k Kind) code() int {
	return slices.IndexFunc(boosters[:], func(b booster) bool { return b.kind == k })
}

// train runs b, which a constructor returned with err. It returns ErrNoEdge if the first
// round finds no hypothesis.
func train[E interface {
	function
	Len() int
}](ctx context.Context, b interface {
	Train(ctx context.Context) error
	Stopped() boost.Stop
	Ensemble() E
}, err error) (function, error) {
	if err != nil {
		return nil, err
	}
	if err := b.Train(ctx); err != nil {
		return nil, err
	}
	e := b.Ensemble()
	if e.Len() == 0 {
		return nil, fmt.Errorf("%w (%v)", ErrNoEdge, b.Stopped())
	}
	return e, nil
}

func buildLinear(ctx context.Context, s *sample, _ *boost.Data) (function, error) {
	m, err := bblr.Rebuild(ctx, s.wide(), s.y, s.ω)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("stopped within a fit: %w", context.Cause(ctx))
	case err != nil:
		return nil, err
	}
	if checkLinear(m) != nil {
		return nil, fmt.Errorf("one label weighs nothing against the other: %w", ErrOneClass)
	}
	return m, nil
}

// decoder returns a function that reads an E and checks it.
func decoder[E any, P interface {
	*E
	function
	encoding.BinaryUnmarshaler
}](check func(e P) error) func(b []byte) (function, error) {
	return func(b []byte) (function, error) {
		e := P(new(E))
		if err := e.UnmarshalBinary(b); err != nil {
			return nil, err
		}
		return e, check(e)
	}
}

// largest bounds the answers of an ensemble, so that all are finite. Build makes at most
// 2·rounds leaves of some hundreds.
const largest = math.MaxFloat64 / 4

var errOtherKind = errors.New("the hypotheses are those of another kind")

// checkSize returns an error if answers up to most are too large.
func checkSize(most float64) error {
	if !(most <= largest) {
		return fmt.Errorf("answers up to %v: want at most %v", most, largest)
	}
	return nil
}

func checkTrees(e *boost.Ensemble) error {
	if len(e.Profiles()) > 0 || len(e.Grown()) > 0 {
		return errOtherKind
	}
	sum := 0.0
	for _, t := range e.Trees() {
		sum += largestOf(t.Leaves[:])
	}
	return checkSize(sum)
}

func checkGrown(e *boost.Ensemble) error {
	if len(e.Trees()) > 0 || len(e.Profiles()) > 0 {
		return errOtherKind
	}
	sum := 0.0
	for _, leaves := range e.Grown() {
		sum += largestOf(leaves)
	}
	return checkSize(sum)
}

func checkStumps(e *boost.Ensemble) error {
	for _, t := range e.Trees() {
		if t.Depth() != 1 {
			return errOtherKind
		}
	}
	return checkTrees(e)
}

func checkProfiles(e *boost.Ensemble) error {
	if len(e.Trees()) > 0 || len(e.Grown()) > 0 {
		return errOtherKind
	}
	sum := 0.0
	for _, p := range e.Profiles() {
		sum += largestOf(p.Scores)
	}
	return checkSize(sum)
}

func checkVotes(e *poeboost.Ensemble) error {
	if len(e.Opinions()) > 0 {
		return errOtherKind
	}
	return nil
}

func checkOpinions(e *poeboost.Ensemble) error {
	if len(e.Votes()) > 0 {
		return errOtherKind
	}
	return nil
}

func checkTerms(e *viboost.Ensemble) error {
	sum := 0.0
	for _, t := range e.Terms() {
		sum += math.Abs(t.Alpha)
	}
	return checkSize(sum)
}

// checkLinear refuses a mixture whose log-odds are infinite for large inputs.
func checkLinear(m *bblr.Linear) error {
	l := m.Likelihood()
	return checkSize(largestOf([]float64{l.LogOdds(math.MaxFloat64), l.LogOdds(-math.MaxFloat64)}))
}

// largestOf returns the largest magnitude; NaN if one is NaN.
func largestOf(vs []float64) float64 {
	most := 0.0
	for _, v := range vs {
		most = max(most, math.Abs(v))
	}
	return most
}
