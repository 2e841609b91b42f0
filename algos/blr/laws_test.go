package blr_test

import (
	"testing"

	"hamlet/algos/algotest"
	"hamlet/algos/blr"
)

// trusting learns every label in full.
type trusting struct{ *blr.Posterior }

func (p trusting) Update(x []float64, y float64) { p.Posterior.Update(x, y, 1) }

func TestLaws(t *testing.T) {
	for _, site := range []blr.Approximation{blr.RVGA, blr.JaakkolaJordan, blr.ExactRVGA} {
		for dim, block := range map[int]int{1: 1, 6: 16, 13: 1} {
			t.Run(site.String(), func(t *testing.T) {
				algotest.Run(t, algotest.Subject{
					Dim: dim,
					New: func() algotest.Classifier {
						p, err := blr.New(blr.Config{Dim: dim, Approximation: site, Refactor: 70, HalfLife: 200, Block: block})
						if err != nil {
							t.Fatal(err)
						}
						return trusting{p}
					},
					Restore: func(b []byte) (algotest.Classifier, error) {
						p := &blr.Posterior{}
						err := p.UnmarshalBinary(b)
						return trusting{p}, err
					},
				})
			})
		}
	}
}
