package slides

import (
	"context"
	"math"
	"time"

	"hamlet/algos/lab/information"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// informationExperiment checks the printed example and the identities on random distributions.
var informationExperiment = experiment.Experiment{
	Name: "slides/information", Title: "Entropies: the example and the identities", Where: "slides 24 to 29",
	Claim: "In the example H(X) = 7/4, H(Y) = 2, H(X|Y) = 11/8, H(Y|X) = 13/8 and H(X,Y) = 27/8 bits. The chain rule " +
		"holds, mutual information has three equal forms, D(p‖q) ≥ 0, and BC(p, q) is 1 only for equal distributions.",
	Cost: time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		j, err := information.NewJoint([][]float64{
			{1. / 8, 1. / 16, 1. / 32, 1. / 32}, {1. / 16, 1. / 8, 1. / 32, 1. / 32},
			{1. / 16, 1. / 16, 1. / 16, 1. / 16}, {1. / 4, 0, 0, 0},
		})
		if err != nil {
			return err
		}
		const group = "the example of slide 26, bits"
		for _, row := range []struct {
			what  string
			ours  float64
			paper string
		}{
			{"H(X) = 7/4", j.EntropyX(), "1.75"}, {"H(Y) = 2", j.EntropyY(), "2.000"},
			{"H(X|Y) = 11/8", j.EntropyXGivenY(), "1.375"}, {"H(Y|X) = 13/8", j.EntropyYGivenX(), "1.625"},
			{"H(X,Y) = 27/8", j.Entropy(), "3.375"},
		} {
			p.Figure(group, row.what, experiment.Exact(row.ours), row.paper, experiment.Neither)
		}
		p.Show(group, "I(X;Y)", experiment.Exact(j.MutualInformation()))
		laws, err := experiment.Steps(ctx, r, "draws", 1, func(context.Context, int) (identities, error) {
			return identitiesOf(r)
		})
		if err != nil {
			return err
		}
		l := laws[0]
		const random = "1,000 random joint distributions"
		p.Never(random, "largest difference of H(X,Y) and H(X) + H(Y|X)", l.Chain, "0")
		p.Never(random, "largest difference of H(X,Y) and H(Y) + H(X|Y)", l.ChainY, "0")
		p.Never(random, "largest difference of I(X;Y) and H(X) − H(X|Y)", l.Mutual, "0")
		p.Never(random, "largest difference of I(X;Y) and H(Y) − H(Y|X)", l.MutualY, "0")
		p.Never(random, "largest difference of I(X;Y) and H(X) + H(Y) − H(X,Y)", l.Sum, "0")
		p.Never(random, "largest difference of I(X;Y) and D(p(x,y) ‖ p(x)p(y))", l.Divergence, "0")
		p.AtLeast(random, "least D(p‖q)", experiment.Exact(l.Least), "0").Slack = experiment.Rounding
		p.Never(random, "largest BC(p, q)", l.Bhattacharyya, "1")
		p.Never(random, "largest difference of BC(p, p) and 1", l.Same, "0")
		p.Chart(binary())
		return nil
	},
}

// identities are how far the identities were off at most.
type identities struct {
	Chain, ChainY, Mutual, MutualY, Sum, Divergence, Least, Bhattacharyya, Same float64
}

func identitiesOf(r *experiment.Run) (l identities, err error) {
	l.Least = math.Inf(1)
	rng := r.Rand("joint", 0)
	for range 1000 {
		rows, columns := 1+rng.IntN(6), 1+rng.IntN(6)
		p := make([][]float64, rows)
		total := 0.0
		for y := range p {
			p[y] = make([]float64, columns)
			for x := range p[y] {
				if rng.IntN(4) > 0 || x+y == 0 { // some cells are empty
					p[y][x] = rng.ExpFloat64()
				}
				total += p[y][x]
			}
		}
		for y := range p {
			for x := range p[y] {
				p[y][x] /= total
			}
		}
		j, err := information.NewJoint(p)
		if err != nil {
			return l, err
		}
		mutual := j.MutualInformation()
		apart(&l.Chain, j.Entropy(), j.EntropyX()+j.EntropyYGivenX())
		apart(&l.ChainY, j.Entropy(), j.EntropyY()+j.EntropyXGivenY())
		apart(&l.Mutual, mutual, j.EntropyX()-j.EntropyXGivenY())
		apart(&l.MutualY, mutual, j.EntropyY()-j.EntropyYGivenX())
		apart(&l.Sum, mutual, j.EntropyX()+j.EntropyY()-j.Entropy())
		px, py := j.X(), j.Y()
		var joint, product []float64
		for y := range p {
			joint = append(joint, p[y]...)
			for x := range p[y] {
				product = append(product, px[x]*py[y])
			}
		}
		d := divergence(joint, product)
		apart(&l.Divergence, mutual, d)
		l.Least = min(l.Least, d)
		l.Bhattacharyya = max(l.Bhattacharyya, information.Bhattacharyya(joint, product))
		apart(&l.Same, information.Bhattacharyya(joint, joint), 1)
	}
	return l, nil
}

// divergence is D(p‖q) in bits by its definition. That of package information is never
// below 0, and shares its sum with I(X;Y).
func divergence(p, q []float64) float64 {
	sum := 0.0
	for i, v := range p {
		if v > 0 {
			sum += v * math.Log2(v/q[i])
		}
	}
	return sum
}

// binary is the picture of slide 24: H(p) of a coin.
func binary() chart.Chart {
	s := chart.Series{Name: "H(p)", Kind: chart.Line}
	for k := 0; k <= 100; k++ {
		q := float64(k) / 100
		s.X, s.Y = append(s.X, q), append(s.Y, information.Entropy([]float64{q, 1 - q}))
	}
	return chart.Chart{Title: "Entropy of a coin", X: chart.Axis{Label: "p"}, Y: chart.Axis{Label: "bits"},
		Series: []chart.Series{s}}
}
