package slides

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"hamlet/algos/boost"
	"hamlet/algos/lab/boosting"
	"hamlet/algos/lab/game"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// play is boosting as a zero-sum game.
var play = experiment.Experiment{
	Name: "slides/game", Title: "Boosting as a game: value, edges, margins and repeated play", Where: "slides 30 to 36",
	Claim: "In \"odd or even\" Player I calls one with probability 7/12, and the value is 1/12. A game has one " +
		"value, whoever moves first. Boosting is repeated play of the game of examples against weak learners.",
	Sets: []string{"ionosphere", "pima"}, Cost: 5 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		s, err := game.Solve(ctx, [][]float64{{-2, 3}, {3, -4}})
		if err != nil {
			return err
		}
		const group = "odd or even, slide 31"
		p.Figure(group, "probability of calling one, 7/12", experiment.Exact(s.P[0]), "0.583333", experiment.Neither)
		p.Figure(group, "value, 1/12", experiment.Exact(s.Value), "0.083333", experiment.Neither)
		apartness, err := experiment.Steps(ctx, r, "random games", 1,
			func(ctx context.Context, _ int) (float64, error) {
				return minimax(ctx, r.Rand("games", 0))
			})
		if err != nil {
			return err
		}
		p.Never("200 random games", "largest difference of max min and min max", apartness[0], "0")
		for _, name := range []string{"ionosphere", "pima"} {
			x, y, err := r.Data.Table(name)
			if err != nil {
				return err
			}
			played, err := experiment.Steps(ctx, r, name, 1, func(ctx context.Context, _ int) (match, error) {
				return matchOf(ctx, x[:60], y[:60])
			})
			if err != nil {
				return err
			}
			played[0].report(p, name+", 60 rows")
			if name == "pima" {
				p.Chart(played[0].chart())
			}
		}
		p.Note("The matrix is the booster's loss, the row player's: the value is min over P of max over Q. A loss of " +
			"y·h in {−1, +1} stands here for the slides' {0, 1}: that maps a value v to (1+v)/2.")
		p.Note("Games are solved exactly in rational numbers. Repeated play has η = √(2 ln N/T) and comes within √(2 " +
			"ln N/T) of the value (Freund and Schapire 1999). The slides have no such bound, so it has no verdict.")
		return nil
	},
}

// minimax returns the largest difference between what the row player can be sure to gain
// and what the column player can be sure not to exceed, in random games.
func minimax(ctx context.Context, r *rand.Rand) (most float64, err error) {
	for range 200 {
		rows, columns := 1+r.IntN(6), 1+r.IntN(6)
		a := make([][]float64, rows)
		for i := range a {
			for range columns {
				a[i] = append(a[i], math.Round(10*r.NormFloat64()))
			}
		}
		s, err := game.Solve(ctx, a)
		if err != nil {
			return 0, err
		}
		apart(&most, game.Guarantee(a, s.P), game.Exposure(a, s.Q))
	}
	return most, nil
}

// plays are the numbers of rounds of repeated play.
var plays = []int{10, 30, 100, 300, 1000, 3000}

// A match is the game of a set's stumps.
type match struct {
	Stumps               int
	Value, Edge, Margin  float64   // the minimax value, and what its strategies reach
	AdaEdge, AdaMargin   float64   // AdaBoost: the least edge of a round, the least margin of its vote
	Rounds               int       // of AdaBoost
	HedgeEdge, HedgeVote []float64 // repeated play: the edge on the mean weights, the margin of the mean vote
	HedgeMean, Gap       []float64 // the mean edge; √(2 ln N/T)
}

func matchOf(ctx context.Context, x [][]float64, y []float64) (m match, err error) {
	d, err := boost.NewData(x)
	if err != nil {
		return m, err
	}
	h, stumps := boosting.AllStumps(d)
	m.Stumps = len(stumps)
	solved, err := game.NewBoosting(ctx, h, y)
	if err != nil {
		return m, err
	}
	m.Value, m.Edge, m.Margin = solved.Value, game.Edge(h, y, solved.D), game.Margin(h, y, solved.Votes)
	ada, err := trained(ctx, x, y, 3000)
	if err != nil {
		return m, err
	}
	m.AdaEdge, m.Rounds = 1, len(ada.Rounds())
	for _, o := range ada.Rounds() {
		m.AdaEdge = min(m.AdaEdge, 1-2*o.Epsilon)
	}
	m.AdaMargin = boosting.MarginsOf(ada, y, nil).Min()
	for _, rounds := range plays {
		b, err := game.Play(ctx, h, y, rounds, 0)
		if err != nil {
			return m, err
		}
		m.HedgeEdge, m.HedgeVote = append(m.HedgeEdge, game.Edge(h, y, b.D)),
			append(m.HedgeVote, game.Margin(h, y, b.Votes))
		m.HedgeMean, m.Gap = append(m.HedgeMean, b.Value), append(m.Gap, game.Gap(len(y), rounds))
	}
	return m, nil
}

func (m *match) report(p *experiment.Report, group string) {
	p.Show(group, "stumps", experiment.Exact(float64(m.Stumps)))
	p.Show(group, "value of the game", experiment.Exact(m.Value))
	p.Never(group, "difference of the value and the edge on the minimax weights", math.Abs(m.Edge-m.Value), "0")
	p.Never(group, "difference of the value and the least margin of the minimax vote", math.Abs(m.Margin-m.Value), "0")
	p.Show(group, fmt.Sprintf("least margin of AdaBoost's vote after %d rounds", m.Rounds),
		experiment.Exact(m.AdaMargin))
	p.AtLeast(group, "least edge of AdaBoost's rounds minus the value", experiment.Exact(m.AdaEdge-m.Value),
		"0").Slack = experiment.Rounding
	p.Never(group, "least margin of AdaBoost's vote minus the value", m.AdaMargin-m.Value, "0")
	low, high, order := math.Inf(-1), math.Inf(-1), math.Inf(-1)
	for k := range plays {
		low = max(low, m.Value-m.Gap[k]-m.HedgeVote[k])
		high = max(high, m.HedgeMean[k]-m.Value-m.Gap[k])
		order = max(order, m.HedgeVote[k]-m.Value, m.Value-m.HedgeEdge[k], m.HedgeEdge[k]-m.HedgeMean[k])
	}
	p.Show(group, "repeated play: largest value − √(2 ln N/T) minus the margin", experiment.Exact(low))
	p.Show(group, "repeated play: largest mean edge minus value + √(2 ln N/T)", experiment.Exact(high))
	p.Never(group, "repeated play: largest breach of margin ≤ value ≤ edge ≤ mean edge", order, "0")
	last := len(plays) - 1
	p.Show(group, fmt.Sprintf("repeated play, margin after %d rounds", plays[last]),
		experiment.Exact(m.HedgeVote[last]))
	p.Show(group, fmt.Sprintf("repeated play, edge after %d rounds", plays[last]), experiment.Exact(m.HedgeEdge[last]))
}

func (m *match) chart() chart.Chart {
	var t, value, low, high []float64
	for k, n := range plays {
		t, value = append(t, float64(n)), append(value, m.Value)
		low, high = append(low, m.Value-m.Gap[k]), append(high, m.Value+m.Gap[k])
	}
	return chart.Chart{Title: "Repeated play comes to the value",
		Caption: fmt.Sprintf("Pima, 60 rows, %d stumps. The band is the value ± √(2 ln N/T).", m.Stumps),
		X:       chart.Axis{Label: "rounds T", Log: true}, Y: chart.Axis{Label: "edge or margin"},
		Series: []chart.Series{
			{Name: "edge on the mean weights", Kind: chart.Line, X: t, Y: m.HedgeEdge},
			{Name: "margin of the mean vote", Kind: chart.Line, X: t, Y: m.HedgeVote},
			{Name: "value of the game", Kind: chart.Line, X: t, Y: value, Lo: low, Hi: high},
		}}
}
