package confseq

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// The slow way: the mean over bets of the products of (4), factor by factor.
func product(weights []float64, ones []bool, limit float64) float64 {
	mean := 0.0
	for _, b := range bets {
		p := math.Exp(b.share)
		for i, u := range weights {
			x := 0.0
			if ones[i] {
				x = 1
			}
			p *= 1 - b.θ*u*(x-limit)/(1-limit)
		}
		mean += p
	}
	return math.Log(mean)
}

// With all weights 1, Log is (4). With others it is below (4), and most of it is left.
func TestBelowIsTheMeanOfProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		limit := 0.001 + 0.2*r.Float64()
		n := 1 + r.IntN(300)
		weights, ones := make([]float64, n), make([]bool, n)
		same := r.IntN(2) == 0
		most, zeros, lost := 1.0, 0.0, 0.0
		for i := range weights {
			weights[i], ones[i] = 1, r.Float64() < limit/2
			if !same && ones[i] {
				weights[i] = 0.01 + 0.99*r.Float64()
			} else if !same {
				weights[i] = 0.01 + 20*r.Float64()
			}
			if ones[i] {
				lost += weights[i]
			} else {
				zeros += weights[i]
				most = max(most, weights[i])
			}
		}
		below := NewBelow(limit, most)
		got, want := below.Log(lost, zeros), product(weights, ones, limit)
		if same && math.Abs(got-want) > 1e-9*(1+math.Abs(want)) || got > want+1e-9 {
			t.Fatalf("limit %g, %d numbers, weights 1: %v: %.12g, the product's %.12g", limit, n, same, got, want)
		}
	}
}

func TestSharesOfBets(t *testing.T) {
	sum := 0.0
	for _, b := range bets {
		sum += math.Exp(b.share)
		if !(b.θ > 0 && b.θ < 1) {
			t.Errorf("θ = %g", b.θ)
		}
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("shares of %g in all", sum)
	}
}

// What the package says about bets: how many numbers the evidence of 10 takes, against the best bet.
func TestBets(t *testing.T) {
	const limit = 0.002
	level := math.Log(10)
	below := NewBelow(limit, 1)
	for _, ones := range []float64{0, 1, 2, 3, 4, 8, 16, 64, 128, 512} {
		n := ones + below.Zeros(ones, level)
		best := math.Inf(1)
		for θ := 0.005; θ < 1; θ += 0.005 {
			best = min(best, ones+(level-ones*math.Log1p(-θ))/math.Log1p(θ*limit/(1-limit)))
		}
		if ones == 0 {
			best = level / math.Log1p(limit/(1-limit)) // θ = 1
		}
		most := 1.15
		if ones == 0 {
			most = 1.31
		}
		t.Logf("%v ones: n·b = %.2f, with the best bet %.2f", ones, n*limit, best*limit)
		if n > most*best {
			t.Errorf("%v ones: %.0f numbers, the best bet takes %.0f", ones, n, best)
		}
		if got := below.Log(ones, n-ones); got < level || got > level+1e-6 {
			t.Errorf("%v ones: evidence %g at Zeros", ones, got)
		}
	}
}

// Log rises with limit and zeros, and falls if weight moves to ones.
func TestBelowIsMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		limit, most := 0.0005+0.05*r.Float64(), 1+10*r.Float64()
		ones, zeros := 20*r.Float64(), 5000*r.Float64()
		log := func(limit, ones, zeros float64) float64 {
			below := NewBelow(limit, most)
			return below.Log(ones, zeros)
		}
		at := log(limit, ones, zeros)
		for name, lower := range map[string]float64{
			"a smaller limit": log(limit*0.9, ones, zeros),
			"fewer zeros":     log(limit, ones, 0.9*zeros),
			"more ones":       log(limit, ones+0.01*zeros, 0.99*zeros),
		} {
			if lower > at+1e-12*math.Abs(at) {
				t.Fatalf("limit %g, most %g, %g ones, %g zeros: %g, with %s %g", limit, most, ones, zeros, at, name, lower)
			}
		}
	}
}

// The claim, on the edge: the share is the limit, labels are asked for with probabilities that depend on
// the number, and the share drifts around the limit while its average is never below. Evidence of 10
// is ever reached in a tenth of the runs at most: 3.1 standard deviations more happen once in a
// thousand times.
func TestBelowHolds(t *testing.T) {
	const limit, runs, steps = 0.04, 600, 1200
	asked := map[string]func(one bool) (probability, least float64){
		"all":                func(bool) (float64, float64) { return 1, 1 },
		"a tenth":            func(bool) (float64, float64) { return 0.1, 0.1 },
		"ones more often":    func(one bool) (float64, float64) { return map[bool]float64{true: 0.8, false: 0.1}[one], 0.8 },
		"ones less often":    func(one bool) (float64, float64) { return map[bool]float64{true: 0.2, false: 0.8}[one], 0.2 },
		"ones always, drift": func(one bool) (float64, float64) { return map[bool]float64{true: 1, false: 0.1}[one], 1 },
	}
	for name, ask := range asked {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reached := 0
			for run := range runs {
				r := rand.New(rand.NewPCG(uint64(run), 11))
				below := NewBelow(limit, 10)
				ones, zeros := 0.0, 0.0
				for i := range steps {
					share := limit
					if name == "ones always, drift" { // above the limit first, then below it as long as above
						share = limit * (1 + 0.9*math.Sin(2*math.Pi*float64(i)/steps))
					}
					one := r.Float64() < share
					p, least := ask(one)
					if r.Float64() >= p {
						continue
					}
					if one {
						ones += least / p
						continue
					}
					zeros += least / p
					if below.Log(ones, zeros) >= math.Log(10) {
						reached++
						break
					}
				}
			}
			t.Logf("%d of %d runs", reached, runs)
			if most := 0.1*runs + 3.1*math.Sqrt(0.1*0.9*runs); float64(reached) > most {
				t.Errorf("%d of %d runs, want at most %.0f", reached, runs, most)
			}
		})
	}
}

func BenchmarkBelow(b *testing.B) {
	below := NewBelow(0.002, 1)
	for b.Loop() {
		below.Log(20, 20_000)
	}
}

func ExampleBelow() {
	below := NewBelow(0.01, 1) // is the share below 1 %?
	for _, ones := range []float64{0, 1, 3} {
		fmt.Printf("%v of 700: evidence %.1f\n", ones, math.Exp(below.Log(ones, 700-ones)))
	}
	fmt.Printf("none of %.0f: evidence 10\n", math.Ceil(below.Zeros(0, math.Log(10))))
	// Output:
	// 0 of 700: evidence 308.0
	// 1 of 700: evidence 38.2
	// 3 of 700: evidence 2.1
	// none of 300: evidence 10
}
