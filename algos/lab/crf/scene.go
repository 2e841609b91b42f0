package crf

import "math/rand/v2"

// A Scene is a kind of synthetic image: noisy shapes on a background. A pixel's label is
// +1 inside a shape. Its features are N(±s_k, 1), s = (Signal, Signal/2, 0), with the
// label's sign. The features of an outlier are uniform in ±Range, whatever its label.
type Scene struct {
	Rows, Columns int
	Signal        float64
	Outliers      float64 // share of pixels
	Range         float64
	Likeness      float64 // D of a pair is N(±Likeness, 1): + if the labels are equal
}

// features returns the features of a site.
func features(r *rand.Rand, y, signal, outliers, reach float64) []float64 {
	x := make([]float64, 3)
	outlier := r.Float64() < outliers
	for k, s := range [...]float64{signal, signal / 2, 0} {
		x[k] = r.NormFloat64() + float64(y*s)
		if outlier {
			x[k] = float64(2 * reach * (float64(r.Float64()) - 0.5))
		}
	}
	return x
}

// Draw returns an image with its labels. g is Grid(Rows, Columns).
func (c Scene) Draw(g *Graph, r *rand.Rand) Sample {
	s := Sample{Graph: g, Match: Equal, Y: make([]float64, g.sites)}
	for i := range s.Y {
		s.Y[i] = -1
	}
	for range 1 + r.IntN(2) {
		c.shape(s.Y, r)
	}
	for _, y := range s.Y {
		s.X = append(s.X, features(r, y, c.Signal, c.Outliers, c.Range))
	}
	for l := range g.pairs {
		s.D = append(s.D, r.NormFloat64()+float64(c.Likeness*(2*s.matched(l)-1)))
	}
	return s
}

// shape sets the labels inside a rectangle or an ellipse to +1.
func (c Scene) shape(y []float64, r *rand.Rand) {
	size := func(n int) (low, length float64) {
		length = float64(float64(n) * (0.3 + float64(0.4*r.Float64())))
		return float64((float64(n) - length) * r.Float64()), length
	}
	top, height := size(c.Rows)
	left, width := size(c.Columns)
	round := r.IntN(2) == 0
	for i := range y {
		v := (float64(i%c.Rows)+0.5-top)/height*2 - 1
		u := (float64(i/c.Rows)+0.5-left)/width*2 - 1
		inside := max(u, v, -u, -v) <= 1
		if round {
			inside = float64(u*u)+float64(v*v) <= 1
		}
		if inside {
			y[i] = 1
		}
	}
}

// A Page is a kind of synthetic page like that of the paper's figure 6: pictures of
// people, among them one person sought. A face is +1 if it is of that person. No picture
// has two such faces. Two faces of different pictures have a likeness D, which is
// N(Likeness, 1) if both are +1 and N(−Likeness, 1) if not.
type Page struct {
	Faces    int // 2 to Faces on a page
	Signal   float64
	Outliers float64
	Range    float64
	Likeness float64
}

// Draw returns a page with its labels.
func (c Page) Draw(r *rand.Rand) Sample {
	n := 2 + r.IntN(c.Faces-1)
	picture := make([]int, n)
	s := Sample{Match: Both, Y: make([]float64, n)}
	taken := map[int]bool{}
	for i := range picture {
		picture[i] = r.IntN((n + 2) / 2)
		s.Y[i] = -1
		if !taken[picture[i]] && r.IntN(4) > 0 {
			taken[picture[i]] = true
			s.Y[i] = 1
		}
		s.X = append(s.X, features(r, s.Y[i], c.Signal, c.Outliers, c.Range))
	}
	var pairs [][2]int
	for j := range n {
		for i := range j {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	s.Graph = mustGraph(n, pairs)
	for l, p := range pairs {
		same := picture[p[0]] == picture[p[1]]
		s.Exclusive = append(s.Exclusive, same)
		d := 0.0
		if !same {
			d = r.NormFloat64() + float64(c.Likeness*(2*s.matched(l)-1))
		}
		s.D = append(s.D, d)
	}
	return s
}
