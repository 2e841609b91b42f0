package text

import (
	"math"
	"math/rand/v2"
	"testing"
)

// countedTable returns a table of two experts whose counts are zero, small, large and not whole.
func countedTable(r *rand.Rand, bits int) *Table {
	t := NewTable(bits, 2)
	for i := range t.pairs {
		count := func() float32 {
			switch r.IntN(5) {
			case 0:
				return 0
			case 1:
				return float32(1+r.IntN(2048)) / 1024
			case 2:
				return float32(r.IntN(1 << 20))
			case 3:
				return float32(math.Ldexp(r.Float64(), r.IntN(50)))
			}
			return float32(r.IntN(4))
		}
		t.pairs[i] = pair{count(), count()}
	}
	return t
}

func sameBits(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			t.Fatalf("%s %d is %v, in Go %v", what, i, got[i], want[i])
		}
	}
}

// The kernels that the processor chooses give the bits of those in Go.
func TestKernelsGiveTheSameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	const tableBits = 10
	for range 40 {
		table := countedTable(r, tableBits)
		for column := range 2 {
			index := make([]uint32, stringsPerByte*block)
			for i := range index {
				index[i] = r.Uint32N(1 << tableBits)
			}

			bayes := NewNaiveBayes(table.Column(column), NaiveBayesConfig{Shrinkage: 2, Inputs: 2 + r.IntN(2)})
			bayes.ham, bayes.spam = float64(r.IntN(1e6)), float64(r.IntN(1e6))
			terms := bayes.newTerms()
			n := 1 + r.IntN(block)
			var sums, wantSums evidenceLanes
			places := terms.features(&sums, bayes.table, index[:n])
			if want := terms.featuresGo(&wantSums, bayes.table, index[:n]); places != want {
				t.Fatalf("the scales sum to %d, in Go to %d", places, want)
			}
			for k := range sums {
				sameBits(t, "sum", sums[k][:], wantSums[k][:])
			}

			var weights, wantWeights lanes
			seen := sumWeights(&weights, table.Column(column), index[:n])
			if want := sumWeightsGo(&wantWeights, table.Column(column), index[:n]); seen != want {
				t.Fatalf("%d features were seen before, in Go %d", seen, want)
			}
			sameBits(t, "sum of weights", weights[:], wantWeights[:])

			model := NewByteModel(table.Column(column))
			for c := range model.single {
				model.single[c] = [2]float64{r.Float64() * 1e5, float64(r.IntN(9))}
			}
			model.totals = [2]float64{r.Float64() * 1e6, r.Float64() * 1e3}
			text := make([]byte, n)
			for i := range text {
				text[i] = byte(r.Uint32())
			}
			var before byteCounts
			for k := range before {
				before[k] = [2]float64{float64(r.IntN(50)), r.Float64() * 9}
			}
			prior, wantBefore := model.prior(), before
			got, want := make([]float64, n), make([]float64, n)
			model.ratios(got, text, index, &before, &prior)
			model.ratiosGo(want, text, index, &wantBefore, &prior)
			sameBits(t, "ratio", got, want)
			for k := range before {
				sameBits(t, "count", before[k][:], wantBefore[k][:])
			}

			stepped, wantStepped := NewTable(tableBits, 2), NewTable(tableBits, 2)
			copy(stepped.pairs, table.pairs)
			copy(wantStepped.pairs, table.pairs)
			samePairs := func(what string) {
				t.Helper()
				for i, p := range wantStepped.pairs {
					if q := stepped.pairs[i]; math.Float32bits(p.a) != math.Float32bits(q.a) || math.Float32bits(p.b) != math.Float32bits(q.b) {
						t.Fatalf("pair %d is %v after %s, in Go %v", i, q, what, p)
					}
				}
			}
			for k := range index[:n] { // some share a slot
				index[k] = r.Uint32N(1 << (1 + r.IntN(tableBits)))
			}
			spam, ω, seed := r.IntN(2) == 0, float64(r.IntN(4097)-2048)/1024, r.Uint32()
			addCounts(stepped.Column(column), spam, index[:n], ω, seed)
			addCountsGo(wantStepped.Column(column), spam, index[:n], ω, seed)
			samePairs("counting")

			some := r.Perm(1 << tableBits)[:n]
			for k, i := range some {
				index[k] = uint32(i)
			}
			square, length, gain := r.Float32(), r.Float32()-0.5, r.Float32()
			steps(stepped.Column(column), index[:n], square, length, gain)
			stepsGo(wantStepped.Column(column), index[:n], square, length, gain)
			samePairs("a step")
		}
	}
}

// plus rounds up where the draw is below the share of a step that rounding down takes away.
func TestPlusIsTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 8))
	up, down := 0, 0
	for range 200_000 {
		c := float32(math.Ldexp(r.Float64(), r.IntN(54)))
		if r.IntN(2) == 0 {
			c = float32(r.IntN(1<<23)) / 1024
		}
		ω, draw := float64(r.IntN(4097)-2048)/1024, r.Uint32N(1<<29)
		sum := max(0, float64(c)+ω)
		want := float32(sum)
		if float64(want) > sum {
			want = math.Nextafter32(want, 0)
		}
		if below := float64(want); below < sum {
			above := float64(math.Nextafter32(want, math.MaxFloat32))
			if float64(draw) < (sum-below)/(above-below)*0x1p29 {
				want = float32(above)
				up++
			} else {
				down++
			}
		}
		if got := plus(c, ω, draw); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%v%+v is %v, and should be %v", c, ω, got, want)
		}
	}
	if up < 1000 || down < 1000 {
		t.Errorf("%d roundings up, %d down", up, down)
	}
}

// While counts are multiples of 2⁻¹⁰ up to 2¹⁴, plus is exact.
func TestSmallCountsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	const most = 1 << 14
	counts := []float32{0, 1.0 / 1024, 1, 2, most - 2}
	for range 100_000 {
		counts = append(counts, float32(r.IntN((most-2)*1024))/1024)
	}
	for _, c := range counts {
		for _, ω := range []float64{1.0 / 1024, 1, 2, -2, -1, -1.0 / 1024, float64(r.IntN(4097)-2048) / 1024} {
			if got, want := plus(c, ω, draw(r.Uint32())), max(0, float64(c)+ω); float64(got) != want {
				t.Fatalf("%v%+v is %v, want %v", c, ω, got, want)
			}
		}
	}
}

// Draws are spread evenly: of each of the upper bits half are set, and neighbours do not go together.
func TestDraws(t *testing.T) {
	const n = 1 << 16
	var ones [29]int
	var product float64
	before := 0.0
	for v := range uint32(n) {
		d := draw(v)
		for bit := range ones {
			ones[bit] += int(d >> bit & 1)
		}
		centred := float64(d)/(1<<29) - 0.5
		product += centred * before
		before = centred
	}
	for bit, k := range ones {
		if z := (float64(k) - n/2) / math.Sqrt(n/4); math.Abs(z) > 5 {
			t.Errorf("bit %d is set in %d of %d draws: %.1f standard deviations off", bit, k, n, z)
		}
	}
	if z := product * 12 / math.Sqrt(n); math.Abs(z) > 5 {
		t.Errorf("neighbouring draws correlate: %.1f standard deviations off", z)
	}
}
