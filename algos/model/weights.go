package model

import "hamlet/algos/blr"

// A Weight is the belief about the weight of one input of a head: its mean, and its
// standard deviation.
type Weight struct {
	Body     string // BodyText or BodyVector
	Name     string // of the input
	Product  int    // 0: the input itself; else which product of that input it is, from 1
	Mean, SD float64
}

// Weights returns the weights of the heads, of mail and text first, in the order of the
// inputs. A head before its first event has none.
func (m *Model) Weights() (all []Weight) {
	for k, s := range m.submodels {
		if s == nil {
			continue
		}
		weights := unitContributions(s.head)
		products := map[string]int{}
		i := 0
		for _, g := range s.layout.groups {
			for _, name := range g.names {
				w := Weight{Body: bodies[k], Name: name, Mean: weights[i].Mean, SD: weights[i].SD}
				if g.product {
					products[name]++
					w.Product = products[name]
				}
				all = append(all, w)
				i++
			}
		}
	}
	return all
}

// unitContributions returns the mean and the standard deviation of each weight of p.
func unitContributions(p *blr.Posterior) []blr.Contribution {
	ones := make([]float64, p.Dim())
	for i := range ones {
		ones[i] = 1
	}
	return p.Contributions(nil, ones)
}
