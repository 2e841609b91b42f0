package viboost

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"hamlet/algos/boost"
)

// drawn returns the rows of the golden file.
func drawn() (x [][]float64, y []float64) {
	r := rand.New(rand.NewPCG(25, 25))
	for range 100 {
		row := []float64{r.Float64(), r.Float64(), float64(r.IntN(5))}
		x, y = append(x, row), append(y, float64(2*r.IntN(2)-1))
		if row[0] > 0.5 {
			y[len(y)-1] = 1
		}
	}
	return x, y
}

func mustNew(t testing.TB, x [][]float64, y []float64, cfg Config) *Booster {
	t.Helper()
	d, err := boost.NewData(x)
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(d, y, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// goldenSize is the size of ten terms. The golden file of algos/lab/viboost begins with
// them.
const goldenSize = 48 + 10*termSize

// The bytes are a format and the model the same on every CPU.
func TestGolden(t *testing.T) {
	want, err := os.ReadFile("testdata/ensembles_v1.bin")
	if err != nil {
		t.Fatal(err)
	}
	want = want[:goldenSize]
	x, y := drawn()
	b := mustNew(t, x, y, Config{Rounds: 10})
	if err := b.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, _ := b.Ensemble().AppendBinary(nil); !bytes.Equal(got, want) {
		t.Errorf("the bytes of training are %x, want %x", got, want)
	}
	var e Ensemble
	if err := e.UnmarshalBinary(want); err != nil || len(e.Terms()) != 10 || e.Dim() != 3 {
		t.Errorf("read %d terms of %d inputs, error %v", len(e.Terms()), e.Dim(), err)
	}
}

// What is degenerate gets an answer, never a NaN.
func TestDegenerateSets(t *testing.T) {
	x, y := drawn()
	for _, c := range []struct {
		name    string
		x       [][]float64
		y       []float64
		weights []float64
		stop    boost.Stop
	}{
		{"one row", [][]float64{{3}}, []float64{1}, nil, boost.NoCandidate},
		{"one class", [][]float64{{1}, {2}, {3}}, []float64{1, 1, 1}, nil, boost.Rounds},
		{"separable", [][]float64{{1}, {2}, {3}}, []float64{-1, -1, 1}, nil, boost.Rounds},
		{"rows of both labels", [][]float64{{1}, {1}, {2}, {2}}, []float64{-1, 1, -1, 1}, nil, boost.Rounds},
		{"one row counts", x, y, append([]float64{1e6}, make([]float64, len(y)-1)...), boost.Rounds},
	} {
		b := mustNew(t, c.x, c.y, Config{Rounds: 30, Weights: c.weights})
		if err := b.Train(t.Context()); err != nil || b.Stopped() != c.stop {
			t.Errorf("%s: stopped: %v, want %v; error %v", c.name, b.Stopped(), c.stop, err)
		}
		φ, H := make([]float64, len(c.y)), make([]float64, len(c.y))
		copy(φ, b.stage.Phi)
		copy(H, b.stage.Before)
		for i := range φ {
			if !(φ[i] >= 0 && φ[i] <= 1) || !(math.Abs(H[i]) <= math.MaxFloat64) {
				t.Errorf("%s: φ %v, H %v of row %d", c.name, φ[i], H[i], i)
			}
		}
		for k, r := range b.log {
			if !(math.Abs(r.Alpha+r.SNR()+r.NoiseGrade()) <= math.MaxFloat64) {
				t.Errorf("%s, round %d: %+v", c.name, k, r)
			}
		}
	}
}

func TestConfigNamesEveryField(t *testing.T) {
	d, err := boost.NewData([][]float64{{1}, {2}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(d, []float64{1, 0}, Config{Rounds: -1, Inner: -1, Weights: []float64{1e7, -1}})
	for _, want := range []string{"-1 rounds", "-1 inner", "sample weight 0", "weight 1 is -1", "label 1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %q", err, want)
		}
	}
}

// Cancelled training stops between rounds and keeps what it has.
func TestCancelledBetweenRounds(t *testing.T) {
	x, y := drawn()
	b := mustNew(t, x, y, Config{Rounds: 20})
	b.Round()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := b.Train(ctx); !errors.Is(err, cause) || len(b.log) != 1 {
		t.Errorf("cancelled: error %v after %d rounds", err, len(b.log))
	}
}

func TestRoundAllocatesNothing(t *testing.T) {
	x, y := drawn()
	b := mustNew(t, x, y, Config{Rounds: 1000})
	if n := testing.AllocsPerRun(10, func() { b.Round() }); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

func FuzzUnmarshal(f *testing.F) {
	if b, err := os.ReadFile("testdata/ensembles_v1.bin"); err == nil {
		f.Add(b[:goldenSize])
	}
	f.Add([]byte("hvib\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Ensemble
		if err := e.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("error %v is not ErrFormat", err)
			}
			return
		}
		if again, _ := e.AppendBinary(nil); !bytes.Equal(again, b) {
			t.Fatalf("read %x, wrote %x", b, again)
		}
		if e.Dim() < 1000 {
			if p := e.Prob(make([]float64, e.Dim())); !(p >= 0 && p <= 1) {
				t.Fatalf("probability %v", p)
			}
		}
	})
}
