package model

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/feature"
)

// An extreme is a stream that a model has to take, however odd: column j of event i,
// drawn with r.
type extreme struct {
	name   string
	column func(r *rand.Rand, i, j int) float64
}

var extremes = []extreme{
	{"largest numbers", func(r *rand.Rand, i, j int) float64 {
		return []float64{1e308, -1e308, math.MaxFloat64, 0, 1}[r.IntN(5)]
	}},
	{"from largest to smallest", func(r *rand.Rand, i, j int) float64 {
		return math.Copysign(math.Pow(10, float64(r.IntN(630)-322)), r.NormFloat64())
	}},
	{"tiny", func(r *rand.Rand, i, j int) float64 {
		return []float64{0, 3.2e-162, 1.6e-162, 1e-161, 5e-324}[r.IntN(5)]
	}},
	{"0 and 1", func(r *rand.Rand, i, j int) float64 { return float64(r.IntN(2)) }},
	{"seldom 1", func(r *rand.Rand, i, j int) float64 { return math.Floor(r.Float64() * 1.01) }},
	{"one column many times", func(r *rand.Rand, i, j int) float64 { return float64(i * 7919 % 101) }},
	{"nearly one column", func(r *rand.Rand, i, j int) float64 { return float64(i*7919%101) + 1e-9*r.Float64() }},
	{"constant, and once not", func(r *rand.Rand, i, j int) float64 { return float64(j + i/150) }},
	{"nothing", func(r *rand.Rand, i, j int) float64 { return 0 }},
	{"growing", func(r *rand.Rand, i, j int) float64 { return math.Exp(float64(i)) * r.Float64() }},
}

// events returns n labelled vectors of the stream: six dense names, of which the first
// decides the label if there is no noise, and two that are hashed.
func (e extreme) events(n int, noise float64) []Example {
	r := rand.New(rand.NewPCG(uint64(len(e.name)), 11))
	all := make([]Example, n)
	for i := range all {
		var v []feature.Number
		for j, name := range []string{"a", "b", "c", "d", "e", "f", "y", "z"} {
			x := e.column(r, i, j)
			if math.IsInf(x, 0) {
				x = math.MaxFloat64
			}
			v = append(v, feature.Number{Name: name, Value: x})
		}
		all[i] = Example{
			ID: fmt.Sprint("x", i), Source: fmt.Sprint(i % 3), Body: Body{Vector: v},
			Spam: (v[0].Value > v[1].Value) != (r.Float64() < noise),
		}
	}
	return all
}

var extremeConfigs = map[string]Config{
	"default":   {},
	"forgetful": {VectorHead: Head{HalfLife: 1, Refresh: 70}, SecondHead: 0.5, LabelTrust: TrustNone},
	"slow":      {VectorHead: Head{Site: SiteJaakkolaJordan, HalfLife: 1 << 40, Refresh: 150}, SecondHead: 0.999, VectorEnsembles: []string{}},
	"exact":     {VectorHead: Head{Site: SiteExactRVGA, Refresh: 100}, LabelTrust: TrustNone, VectorEnsembles: []string{}},
}

// Whatever a model can be taught, its bytes are restored and it goes on from them bit
// for bit: after events at the ends of float64, columns that are copies of each other,
// labels that are noise or none, withdrawals of all that was learnt, refreshes, an
// adoption.
func TestExtremeStreamsAreRestored(t *testing.T) {
	for _, e := range extremes {
		for name, cfg := range extremeConfigs {
			for _, noise := range []float64{0, 0.5} {
				t.Run(fmt.Sprintf("%s/%s/noise=%v", e.name, name, noise), func(t *testing.T) {
					t.Parallel()
					cfg := cfg // of this stream alone
					cfg.TableBits, cfg.Dense = 8, []string{"a", "b", "c", "d", "e", "f"}
					cfg.Window, cfg.Rebuild, cfg.DuplicateWindow = 100, 50, 500
					all := e.events(320, noise)
					for i := range 120 {
						u := unlearn(fmt.Sprint("u", i), all[300-i])
						all = append(all, u)
					}
					straight, restored := newOf(t, cfg), newOf(t, cfg)
					for i := range all {
						if i == 310 {
							cfg.TrustBy = TrustByAll
							for _, m := range []*Model{straight, restored} {
								if err := m.Adopt(cfg); err != nil {
									t.Fatal(err)
								}
							}
						}
						effect, err := straight.Apply(&all[i])
						again, err2 := restored.Apply(&all[i])
						if p := effect.Prediction.P(); !(p >= 0 && p <= 1) || again.Prediction != effect.Prediction {
							t.Fatalf("event %d: predictions %+v and, restored, %+v", i, effect.Prediction, again.Prediction)
						}
						if fmt.Sprint(err) != fmt.Sprint(err2) || err != nil && all[i].Action == Learn {
							t.Fatalf("event %d: errors %v and, restored, %v", i, err, err2)
						}
						if i%31 == 0 || i < 4 || i == len(all)-1 {
							b := image(t, restored)
							if !bytes.Equal(b, image(t, straight)) {
								t.Fatalf("event %d: restored, it has gone on differently", i)
							}
							if restored, err = Restore(b); err != nil {
								t.Fatalf("event %d: %v", i, err)
							}
						}
					}
				})
			}
		}
	}
}
