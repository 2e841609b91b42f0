package text_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/text"
)

// The oracles are the formulas of the package doc, in float64 and in the
// simplest code, over maps in place of tables.

type oracle interface {
	score(f feature.Sparse) (s float64, inputs [text.MaxInputs]float64)
	learn(f feature.Sparse, s float64, spam bool, ω float64)
}

// u returns feature k's value of unit length.
func u(f feature.Sparse, k int) float64 {
	if f.Value == nil {
		return 1 / math.Sqrt(float64(len(f.Index)))
	}
	return f.Value[k]
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

func clip(s float64) float64 { return max(-10, min(10, s)) }

type plainAdaGrad struct {
	text.AdaGradConfig
	w, g map[uint32]float64
}

func (p *plainAdaGrad) score(f feature.Sparse) (s float64, inputs [text.MaxInputs]float64) {
	n, known := float64(len(f.Index)), 0.0
	for k, i := range f.Index {
		s += p.w[i] * u(f, k)
		if p.g[i] > 0 {
			known += n * u(f, k) * u(f, k)
		}
	}
	share := (known + 1) / (n + 1)
	if p.Root {
		share = math.Sqrt(share)
	}
	inputs[0] = clip(s * share)
	return s, inputs
}

func (p *plainAdaGrad) learn(f feature.Sparse, s float64, spam bool, ω float64) {
	y := 0.0
	if spam {
		y = 1
	}
	if margin := s * (2*y - 1); p.Margin > 0 && margin > p.Margin {
		return
	}
	for k, i := range f.Index {
		if p.Robust {
			g, certain := (sigmoid(s)-y)*u(f, k), math.Max(0, 2*ω-1)
			p.w[i] -= p.Rate * certain * g / math.Sqrt(p.g[i]+g*g+1e-6)
			p.g[i] += certain * g * g
			continue
		}
		g := ω * (sigmoid(s) - y) * u(f, k)
		p.g[i] += g * g
		p.w[i] -= p.Rate * g / math.Sqrt(p.g[i]+1e-6)
	}
}

type plainBayes struct {
	text.NaiveBayesConfig
	n0, n1 float64
	a, b   map[uint32]float64
}

func (p *plainBayes) at(f feature.Sparse, k int) uint32 {
	if u(f, k) < 0 {
		return f.Index[k] ^ 1
	}
	return f.Index[k]
}

func (p *plainBayes) score(f feature.Sparse) (s float64, inputs [text.MaxInputs]float64) {
	α := p.Shrinkage
	var squares, cubes, z float64
	for k := range f.Index {
		a, b := p.a[p.at(f, k)], p.b[p.at(f, k)]
		if a+b == 0 {
			continue
		}
		toward := α * (a + b) / (p.n0 + p.n1 + 1)
		r := math.Log((b+toward)/(a+toward)) + math.Log((p.n0+α)/(p.n1+α))
		weight := u(f, k) * u(f, k) * float64(len(f.Index))
		s += math.Abs(u(f, k)) * r
		squares += weight * r * r
		cubes += weight * r * r * r
		ham, spam := p.n0+α, p.n1+α
		share := (a + b + .5) / (ham + spam)
		one := (b/spam - a/ham) / math.Sqrt(share*(1-share)*(1/ham+1/spam))
		z += math.Abs(u(f, k)) * max(-6, min(6, one))
	}
	all := [text.MaxInputs]float64{clip(s), clip(2 * cubes / (squares + 1)), clip(z)}
	copy(inputs[:p.Inputs], all[:])
	return s, inputs
}

func (p *plainBayes) learn(f feature.Sparse, s float64, spam bool, ω float64) {
	switch {
	case spam && s > p.Margin, !spam && s < -p.Margin:
		return
	case spam:
		p.n1 += ω
	default:
		p.n0 += ω
	}
	for k := range f.Index {
		if spam {
			p.b[p.at(f, k)] += ω
		} else {
			p.a[p.at(f, k)] += ω
		}
	}
}

// see is f as an expert sees it.
func see(f feature.Sparse) *text.View { return &text.View{Sparse: f} }

const tableBits = 9

// lean is the naive Bayes of the lean experts, loud one with three inputs.
var (
	lean = text.NaiveBayesConfig{Shrinkage: 10, Margin: 7, Inputs: 1, Surprise: true}
	loud = text.NaiveBayesConfig{Shrinkage: 2, Margin: 20, Inputs: 3, Surprise: true}
)

type kind struct {
	name   string
	make   func() text.Expert
	oracle func() oracle
}

func adaGrad(name string, cfg text.AdaGradConfig) kind {
	return kind{name, func() text.Expert { return text.NewAdaGrad(text.NewColumn(tableBits), cfg) },
		func() oracle { return &plainAdaGrad{cfg, map[uint32]float64{}, map[uint32]float64{}} }}
}

// bayes is in the middle of a table of three experts.
func bayes(name string, cfg text.NaiveBayesConfig) kind {
	return kind{name, func() text.Expert { return text.NewNaiveBayes(text.NewTable(tableBits, 3).Column(1), cfg) },
		func() oracle { return &plainBayes{cfg, 0, 0, map[uint32]float64{}, map[uint32]float64{}} }}
}

var kinds = []kind{
	adaGrad("AdaGrad", text.AdaGradConfig{Rate: 1}),
	adaGrad("AdaGrad, root", text.AdaGradConfig{Rate: .5, Root: true}),
	adaGrad("AdaGrad, robust", text.AdaGradConfig{Rate: 1, Robust: true}),
	adaGrad("AdaGrad, near error", text.AdaGradConfig{Rate: 1, Margin: 1.5}),
	bayes("NaiveBayes", lean),
	bayes("NaiveBayes, three inputs", loud),
}

// example draws a message: features below 200 lean to spam, those above to ham.
func example(r *rand.Rand, valued bool) (f feature.Sparse, spam bool) {
	spam = r.IntN(2) == 0
	seen := map[uint32]bool{}
	sum := 0.0
	for range 5 + r.IntN(60) {
		i := uint32(r.IntN(1 << tableBits))
		if r.IntN(3) > 0 {
			i %= 200
			if !spam {
				i += 200
			}
		}
		if !seen[i] {
			seen[i] = true
			f.Index = append(f.Index, i)
			if valued {
				v := math.Abs(r.NormFloat64())
				if i >= 400 { // noise
					v = -v
				}
				f.Value = append(f.Value, v)
				sum += v * v
			}
		}
	}
	for k := range f.Value {
		f.Value[k] /= math.Sqrt(sum)
	}
	return f, spam
}

// Reference: the formulas in the package's doc, float32 tables aside: 1,000 messages.
func TestExpertsEqualTheirFormulas(t *testing.T) {
	for _, kind := range kinds {
		for _, valued := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/valued=%v", kind.name, valued), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				e, o := kind.make(), kind.oracle()
				right := 0
				for n := range 1000 {
					f, spam := example(r, valued)
					got := e.Score(see(f))
					s, inputs := o.score(f)
					for j, input := range inputs {
						if math.Abs(got.LogOdds-s) > 1e-3 || math.Abs(got.Inputs[j]-input) > 1e-3 {
							t.Fatalf("message %d: %+v, want s = %v, inputs %v", n, got, s, inputs)
						}
					}
					if n >= 500 && (s > 0) == spam {
						right++
					}
					ω := float64(100+r.IntN(925)) / 1024 // on the grid of naive Bayes
					e.Learn(see(f), got, spam, ω)
					o.learn(f, got.LogOdds, spam, ω)
				}
				if right < 450 {
					t.Errorf("%d of the last 500 right; it has not learnt", right)
				}
			})
		}
	}
}

// Values 1/√n are binary features, to rounding.
func TestValuesGeneraliseBinary(t *testing.T) {
	for _, kind := range kinds {
		r := rand.New(rand.NewPCG(3, 4))
		binary, valued := kind.make(), kind.make()
		for n := range 500 {
			f, spam := example(r, false)
			g := f
			g.Value = make([]float64, len(f.Index))
			for k := range g.Value {
				g.Value[k] = u(f, 0)
			}
			a, b := binary.Score(see(f)), valued.Score(see(g))
			if math.Abs(a.LogOdds-b.LogOdds) > 1e-3 || math.Abs(a.Inputs[0]-b.Inputs[0]) > 1e-3 || math.Abs(a.Inputs[1]-b.Inputs[1]) > 1e-3 || math.Abs(a.Inputs[2]-b.Inputs[2]) > 1e-3 {
				t.Fatalf("%s, message %d: binary %+v, with values %+v", kind.name, n, a, b)
			}
			binary.Learn(see(f), a, spam, 1)
			valued.Learn(see(g), b, spam, 1)
		}
	}
}

func TestNothingIsNoEvidence(t *testing.T) {
	for _, kind := range kinds {
		e := kind.make()
		none := feature.Sparse{}
		e.Learn(see(none), e.Score(see(none)), true, 1)
		if got := e.Score(see(none)); got != (text.Score{}) {
			t.Errorf("%s: %+v for no features", kind.name, got)
		}
		want := text.Score{}
		if o, counts := kind.oracle().(*plainBayes); counts {
			want.Surprise = math.Log(o.Shrinkage / .5) // α messages, a count of ½
		}
		if got := e.Score(see(feature.Sparse{Index: []uint32{1, 2}})); math.Abs(got.Surprise-want.Surprise) > 1e-15 || got.LogOdds != 0 || got.Inputs[0] != 0 {
			t.Errorf("%s: %+v for unknown features", kind.name, got)
		}
		before, _ := kind.make().AppendBinary(nil)
		if after, _ := e.AppendBinary(nil); !bytes.Equal(before, after) {
			t.Errorf("%s: learnt from no features", kind.name)
		}
	}
}

// Prefetching changes nothing, even where the table has no such feature.
func TestPrefetchChangesNothing(t *testing.T) {
	for experts := 1; experts <= 3; experts++ {
		table := text.NewTable(tableBits, experts)
		var before [][]byte
		images := func() (all [][]byte) {
			for k := range experts {
				b, _ := text.NewAdaGrad(table.Column(k), text.AdaGradConfig{}).AppendBinary(nil)
				all = append(all, b)
			}
			return all
		}
		f := see(feature.Sparse{Index: []uint32{1, 2, 3}})
		for k := range experts {
			text.NewAdaGrad(table.Column(k), text.AdaGradConfig{Rate: float64(k + 1)}).Learn(f, text.Score{}, true, 1)
		}
		before = images()
		table.Prefetch(nil)
		table.Prefetch([]uint32{0, 1, 1 << tableBits, math.MaxUint32})
		for k, b := range images() {
			if !bytes.Equal(b, before[k]) {
				t.Errorf("column %d of %d: changed", k, experts)
			}
			if k > 0 && bytes.Equal(b, before[0]) {
				t.Errorf("columns 0 and %d of %d are one", k, experts)
			}
		}
	}
}

// A naive Bayes that is right by more than 7 learns nothing.
func TestNaiveBayesLearnsNearErrorOnly(t *testing.T) {
	e := text.NewNaiveBayes(text.NewColumn(tableBits), lean)
	before, _ := e.AppendBinary(nil)
	f := feature.Sparse{Index: []uint32{1, 2, 3}}
	e.Learn(see(f), text.Score{LogOdds: 7.1}, true, 1)
	if after, _ := e.AppendBinary(nil); !bytes.Equal(before, after) {
		t.Error("margin 7.1: learnt")
	}
	e.Learn(see(f), text.Score{LogOdds: 7}, true, 1)
	if after, _ := e.AppendBinary(nil); bytes.Equal(before, after) {
		t.Error("margin 7: not learnt")
	}
}

func TestBytes(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 6))
			e := kind.make()
			for range 300 {
				f, spam := example(r, false)
				e.Learn(see(f), e.Score(see(f)), spam, 1)
			}
			b, err := e.AppendBinary([]byte("before"))
			size := text.AdaGradSize(tableBits)
			if _, counts := e.(*text.NaiveBayes); counts {
				size = text.NaiveBayesSize(tableBits)
			}
			if err != nil || len(b) != 6+size {
				t.Fatalf("%d bytes, %v; want %d", len(b)-6, err, size)
			}
			b = b[6:]
			back := kind.make()
			if err := back.UnmarshalBinary(b); err != nil {
				t.Fatal(err)
			}
			for range 100 {
				f, spam := example(r, true)
				if a, b := e.Score(see(f)), back.Score(see(f)); a != b {
					t.Fatalf("%+v, restored %+v", a, b)
				}
				e.Learn(see(f), e.Score(see(f)), spam, .5)
				back.Learn(see(f), back.Score(see(f)), spam, .5)
			}
			want, _ := e.AppendBinary(nil)
			if got, _ := back.AppendBinary(nil); !bytes.Equal(got, want) {
				t.Error("restored, it goes on differently")
			}
			nan := bytes.Clone(b)
			copy(nan[len(nan)-4:], []byte{0, 0, 0xc0, 0x7f})
			for name, bad := range map[string][]byte{"short": b[:len(b)-8], "long": append(bytes.Clone(b), 0), "NaN": nan} {
				if err := kind.make().UnmarshalBinary(bad); err == nil {
					t.Errorf("%s: no error", name)
				}
			}
		})
	}
}

func FuzzExpertBytes(f *testing.F) {
	for _, kind := range kinds {
		b, _ := kind.make().AppendBinary(nil)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, kind := range kinds {
			e := kind.make()
			if e.UnmarshalBinary(b) != nil {
				continue
			}
			back, _ := e.AppendBinary(nil)
			if !bytes.Equal(back, b) {
				t.Errorf("%s: read and written, other bytes", kind.name)
			}
			for _, g := range []feature.Sparse{{Index: []uint32{0, 1, 2, 511}}, {Index: []uint32{3, 4}, Value: []float64{.6, -.8}}} {
				if s := e.Score(see(g)); s.LogOdds != s.LogOdds || math.Abs(s.Inputs[0]) > 10 {
					t.Errorf("%s: scores %+v", kind.name, s)
				}
			}
		}
	})
}

func ExampleAdaGrad() {
	hasher, expert := feature.NewHasher(18), text.NewAdaGrad(text.NewColumn(18), text.AdaGradConfig{Rate: 1, Root: true})
	words := func(s string) feature.Sparse { return feature.Sparse{Index: hasher.Words(nil, []byte(s))} }
	for range 20 {
		for label, message := range []string{"minutes of the meeting", "cheap pills, order now"} {
			f := words(message)
			expert.Learn(see(f), expert.Score(see(f)), label == 1, 1)
		}
	}
	fmt.Printf("pills: %+.1f\n", expert.Score(see(words("order pills"))).LogOdds)
	fmt.Printf("meeting: %+.1f\n", expert.Score(see(words("the meeting"))).LogOdds)
	// Output:
	// pills: +2.1
	// meeting: -3.1
}

func BenchmarkExpert(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	f := feature.Sparse{}
	for range 2000 {
		f.Index = append(f.Index, uint32(r.IntN(1<<18)))
	}
	for name, e := range map[string]text.Expert{"AdaGrad": text.NewAdaGrad(text.NewColumn(18), text.AdaGradConfig{Rate: 1, Root: true}), "NaiveBayes": text.NewNaiveBayes(text.NewColumn(18), lean)} {
		e.Learn(see(f), e.Score(see(f)), true, 1)
		b.Run(name+"/score/n=2000", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Score(see(f))
			}
		})
		b.Run(name+"/learn/n=2000", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Learn(see(f), text.Score{}, true, 1)
			}
		})
	}
}

// An AdaGrad with Damp, step by step and in plain words: s = Σ w·u/n^.2 with u = value or
// 1/√n, so Σ w/n^.7 for names alone; g = (σ(s) − y)·ω·u/n^.2.
func TestAdaGradDamps(t *testing.T) {
	const rate, damp = 1, 0.2
	r := rand.New(rand.NewPCG(3, 17))
	for _, binary := range []bool{true, false} {
		e := text.NewAdaGrad(text.NewColumn(8), text.AdaGradConfig{Rate: rate, Damp: damp})
		w, g := map[uint32]float64{}, map[uint32]float64{}
		for event := range 400 {
			v := &text.View{}
			n := 1 + r.IntN(30)
			for _, i := range r.Perm(256)[:n] {
				v.Index = append(v.Index, uint32(i))
				if !binary {
					v.Value = append(v.Value, r.NormFloat64()/math.Sqrt(float64(n)))
				}
			}
			u := func(k int) float64 {
				if binary {
					return math.Pow(float64(n), -0.7)
				}
				return v.Value[k] * math.Pow(float64(n), -damp)
			}
			s := 0.0
			for k, i := range v.Index {
				s += w[i] * u(k)
			}
			was := e.Score(v)
			if math.Abs(was.LogOdds-s) > 1e-4*(1+math.Abs(s)) { // weights are float32
				t.Fatalf("binary %v, event %d: s = %v, want %v", binary, event, was.LogOdds, s)
			}
			spam, ω := r.IntN(2) == 0, 0.5+r.Float64()/2
			y := 0.0
			if spam {
				y = 1
			}
			for k, i := range v.Index {
				step := ω * (1/(1+math.Exp(-s)) - y) * u(k)
				g[i] += step * step
				w[i] -= rate * step / math.Sqrt(g[i]+1e-6)
			}
			e.Learn(v, was, spam, ω)
		}
	}
}
