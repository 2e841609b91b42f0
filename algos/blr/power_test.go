package blr

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A label that is learnt as MostPower after the other one has the last word. If the belief was
// against it along x, both together move the belief towards it. If the belief was for it, the
// belief stays so, but may be weaker. Its site can be withdrawn as any other.
func TestTheOtherLabelTwiceOutweighsALabel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, site := range []Approximation{RVGA, JaakkolaJordan, ExactRVGA} {
		for range 200 {
			variance := math.Exp(6*r.Float64() - 3)
			p := mustNew(t, Config{Dim: 2, Mean: []float64{r.NormFloat64(), 0}, Precision: []float64{1 / variance, 1}, Approximation: site})
			x := []float64{1, 0.3 * r.NormFloat64()}
			before, _ := p.Moments(x)
			p.Update(x, -1, 1)
			q := p.Clone()
			rec := p.Update(x, 1, MostPower)
			if rec.H < 0 || rec.H > 0.25*MostPower || math.Abs(rec.Eta) > mostShift {
				t.Fatalf("%v: a site of curvature %v and shift %v", site, rec.H, rec.Eta)
			}
			if after, _ := p.Moments(x); after <= min(before, 0) {
				t.Errorf("%v, variance %v: mean log-odds %v after both labels, %v before", site, variance, after, before)
			}
			if _, err := p.Unlearn(rec); err != nil {
				t.Fatal(err)
			}
			if d := apart(p, q); d > 1e-12 {
				t.Errorf("%v: %v apart after the withdrawal", site, d)
			}
		}
	}
}
