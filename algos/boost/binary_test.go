package boost

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// known returns an ensemble with stumps, trees and profiles.
func known(t testing.TB) *Ensemble {
	t.Helper()
	r := rand.New(rand.NewPCG(81, 82))
	x := drawRows(r, 200, 5, 0)
	y := drawLabels(r, x)
	all := boosters(t, mustQuantise(t, x, 16), y, nil, 4)
	e := (&Ensemble{dim: 5})
	for _, name := range []string{"AdaBoost", "LogitTrees", "Real AdaBoost trees", "BHBoost", "BHBoost quantiles"} {
		if err := all[name].Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		part := all[name].Ensemble()
		e.trees = append(e.trees, part.trees...)
		e.profiles = append(e.profiles, part.profiles...)
		if part.grove.len() > 0 {
			e.grove = part.grove
		}
	}
	return e
}

// Regenerate with: go test hamlet/algos/boost -run TestGolden -update
func TestGoldenBytes(t *testing.T) {
	file := filepath.Join("testdata", "ensemble_v1.bin")
	got, err := known(t).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the bytes of training are not those of %s: %d and %d bytes", file, len(got), len(want))
	}
	var e Ensemble
	if err := e.UnmarshalBinary(want); err != nil {
		t.Fatal(err)
	}
	if again, _ := e.AppendBinary(nil); !bytes.Equal(again, want) {
		t.Error("read and written again, the golden bytes differ")
	}
	x := []float64{0.3, -1, 0.5, 2, 0}
	if got, want := e.F(x), known(t).F(x); got != want {
		t.Errorf("f = %v after reading, %v before", got, want)
	}
}

func TestUnmarshalRefusesDamage(t *testing.T) {
	good, _ := known(t).AppendBinary(nil)
	le := binary.LittleEndian
	trees := int(le.Uint32(good[12:]))
	profile := headerSize + trees*treeSize
	grove := len(good) - 4*(15*12+16*8) // four trees of depth 4
	for name, damage := range map[string]func(b []byte) []byte{
		"magic":         func(b []byte) []byte { b[0]++; return b },
		"version":       func(b []byte) []byte { b[4]++; return b },
		"zeros":         func(b []byte) []byte { b[7]++; return b },
		"more grown":    func(b []byte) []byte { b[20]++; return b },
		"grown galore":  func(b []byte) []byte { le.PutUint32(b[20:], math.MaxUint32); return b },
		"none grown":    func(b []byte) []byte { le.PutUint32(b[20:], 0); return b },
		"another depth": func(b []byte) []byte { b[5]--; return b },
		"no depth":      func(b []byte) []byte { b[5] = 0; return b },
		"too deep":      func(b []byte) []byte { b[5] = MaxDepth + 1; return b },
		"grown feature": func(b []byte) []byte { le.PutUint32(b[grove:], 5); return b },
		"grown none":    func(b []byte) []byte { le.PutUint32(b[grove:], math.MaxUint32); return b },
		"grown −0": func(b []byte) []byte {
			le.PutUint32(b[grove:], math.MaxUint32)
			le.PutUint64(b[grove+4:], 1<<63)
			return b
		},
		"grown NaN":      func(b []byte) []byte { le.PutUint64(b[grove+4:], math.Float64bits(math.NaN())); return b },
		"grown leaf":     func(b []byte) []byte { le.PutUint64(b[len(b)-8:], math.Float64bits(math.Inf(-1))); return b },
		"no inputs":      func(b []byte) []byte { le.PutUint32(b[8:], 0); return b },
		"fewer inputs":   func(b []byte) []byte { le.PutUint32(b[8:], 1); return b },
		"more trees":     func(b []byte) []byte { b[12]++; return b },
		"trees galore":   func(b []byte) []byte { le.PutUint32(b[12:], math.MaxUint32); return b },
		"profiles":       func(b []byte) []byte { le.PutUint32(b[16:], math.MaxUint32); return b },
		"feature −2":     func(b []byte) []byte { le.PutUint32(b[headerSize:], math.MaxUint32-1); return b },
		"threshold NaN":  func(b []byte) []byte { le.PutUint64(b[headerSize+4:], math.Float64bits(math.NaN())); return b },
		"leaf Inf":       func(b []byte) []byte { le.PutUint64(b[headerSize+36:], math.Float64bits(math.Inf(1))); return b },
		"profile input":  func(b []byte) []byte { le.PutUint32(b[profile:], 5); return b },
		"profile edges":  func(b []byte) []byte { le.PutUint32(b[profile+4:], 255); return b },
		"edges descend":  func(b []byte) []byte { le.PutUint64(b[profile+8:], math.Float64bits(1e9)); return b },
		"one byte more":  func(b []byte) []byte { return append(b, 0) },
		"one byte short": func(b []byte) []byte { return b[:len(b)-1] },
	} {
		e := known(t)
		before, _ := e.AppendBinary(nil)
		if err := e.UnmarshalBinary(damage(bytes.Clone(good))); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: error %v", name, err)
		}
		if after, _ := e.AppendBinary(nil); !bytes.Equal(before, after) {
			t.Errorf("%s: the refused bytes changed the ensemble", name)
		}
	}
	for n := range good {
		if err := new(Ensemble).UnmarshalBinary(good[:n:n]); !errors.Is(err, ErrFormat) {
			t.Fatalf("the first %d of %d bytes: error %v", n, len(good), err)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	good, _ := known(f).AppendBinary(nil)
	f.Add(good)
	f.Add(good[:headerSize])
	empty, _ := (&Ensemble{dim: 3}).AppendBinary(nil)
	f.Add(empty)
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Ensemble
		if err := e.UnmarshalBinary(b); err != nil {
			return
		}
		again, err := e.AppendBinary(nil)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("read %d bytes, wrote %d others (error %v)", len(b), len(again), err)
		}
		if e.Dim() < 1<<16 {
			if p := e.Prob(make([]float64, e.Dim())); !(p >= 0 && p <= 1) {
				t.Fatalf("p = %v", p)
			}
		}
	})
}

// FuzzSearches holds both searches against every candidate tried on every row.
func FuzzSearches(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, uint8(2))
	f.Add([]byte{0, 0, 0, 1, 0, 0, 255, 0, 0}, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, dim uint8) {
		d := int(dim%5) + 1
		rows := min(len(b)/(d+1), 60)
		if rows == 0 {
			return
		}
		x, y, w := make([][]float64, rows), make([]float64, rows), make([]float64, rows)
		for i := range x {
			row := b[i*(d+1):]
			x[i] = make([]float64, d)
			for j := range x[i] {
				x[i][j] = float64(int8(row[j])) / 8
			}
			y[i] = float64(2*int(row[d]&1) - 1)
			w[i] = float64(row[d] >> 1)
		}
		fixed := make([]int64, rows)
		Fix(fixed, w, y)
		want, edge := slowBest(x, fixed)
		for _, data := range []*Data{mustData(t, x), mustQuantise(t, x, 0)} {
			c, ok := data.NewSearch().Best(fixed)
			if ok != (edge >= 0) || ok && (data.Stump(c) != want || max(c.Edge, -c.Edge) != edge) {
				t.Fatalf("quantised %v: %+v %v, want %v with edge %d", data.Quantised(), c, ok, want, edge)
			}
		}
	})
}
