package fit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The strategies of a reply prove its value. The games have few different entries, so
// most are degenerate.
func TestGameProvesItself(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	for range 100 {
		m, n := 1+r.IntN(6), 1+r.IntN(6)
		a := make([][]float64, m)
		for i := range a {
			for range n {
				a[i] = append(a[i], float64(r.IntN(5)-2)/2)
			}
		}
		g := reply[gameReply](t, requestLine(t, "game", "a", a))
		sumP, sumQ := 0.0, 0.0
		for j := range n {
			gain := 0.0
			for i := range m {
				gain += g.P[i] * a[i][j]
			}
			if gain < g.Value-1e-14 {
				t.Errorf("%v: p gains %v in column %d, the value is %v", a, gain, j, g.Value)
			}
			sumQ += g.Q[j]
		}
		for i := range m {
			loss := 0.0
			for j := range n {
				loss += a[i][j] * g.Q[j]
			}
			if loss > g.Value+1e-14 {
				t.Errorf("%v: q loses %v in row %d, the value is %v", a, loss, i, g.Value)
			}
			sumP += g.P[i]
		}
		if math.Abs(sumP-1) > 1e-15 || math.Abs(sumQ-1) > 1e-15 {
			t.Errorf("%v: Σp = %v, Σq = %v", a, sumP, sumQ)
		}
	}
}
