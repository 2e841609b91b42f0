package bblr

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// sample draws rows of normals and the labels of a linear truth, a tenth of them flipped.
func sample(seed uint64, n, d int) (x [][]float64, y []float64) {
	r := rand.New(rand.NewPCG(seed, 2))
	for range n {
		row, z := make([]float64, d), 0.0
		for j := range row {
			row[j] = r.NormFloat64()
			z += row[j]
		}
		if r.IntN(10) == 0 {
			z = -z
		}
		x, y = append(x, row), append(y, math.Copysign(1, z))
	}
	return x, y
}

func encode(t testing.TB, m *Linear) []byte {
	t.Helper()
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The golden file was made by `go test -run TestGolden ./algos/bblr -update`. It holds
// on every CPU: `GOAMD64=v3 go test` fuses, `GODEBUG=cpu.fma=off` does not.
func TestGolden(t *testing.T) {
	const path = "testdata/rebuild_v1.bin"
	x, y := sample(11, 200, 3)
	m, err := Rebuild(t.Context(), x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := encode(t, m)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the fit has other bytes than %s", path)
	}
	var read Linear
	if err := read.UnmarshalBinary(want); err != nil {
		t.Fatal(err)
	}
	if again := encode(t, &read); !bytes.Equal(again, want) {
		t.Error("read and written, it has other bytes")
	}
	for _, row := range x {
		if read.LogOdds(row) != m.LogOdds(row) || read.Prob(row) != m.Prob(row) {
			t.Errorf("it answers otherwise after reading, at %v", row)
		}
	}
}

// Invalid bytes are refused and leave the classifier unchanged.
func TestDamagedBytes(t *testing.T) {
	x, y := sample(12, 60, 3)
	m, err := Rebuild(t.Context(), x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	good := encode(t, m)
	for what, spoil := range map[string]func(b []byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"cut":       func(b []byte) []byte { return b[:len(b)-1] },
		"header":    func(b []byte) []byte { return b[:47] },
		"longer":    func(b []byte) []byte { return append(b, 0) },
		"magic":     func(b []byte) []byte { b[0] = 'x'; return b },
		"version":   func(b []byte) []byte { b[4] = 2; return b },
		"reserved":  func(b []byte) []byte { b[5] = 1; return b },
		"dimension": func(b []byte) []byte { b[8]++; return b },
		"no inputs": func(b []byte) []byte { b[8] = 0; return b },
		"zeros":     func(b []byte) []byte { b[12]++; return b },
		"mix":       func(b []byte) []byte { b[23] = 0xff; return b },
		"NaN":       func(b []byte) []byte { copy(b[len(b)-8:], []byte{1, 0, 0, 0, 0, 0, 0xf8, 0x7f}); return b },
	} {
		var read Linear
		if err := read.UnmarshalBinary(good); err != nil {
			t.Fatal(err)
		}
		if err := read.UnmarshalBinary(spoil(bytes.Clone(good))); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", what, err)
		}
		if !bytes.Equal(encode(t, &read), good) {
			t.Errorf("%s: what was there has changed", what)
		}
	}
}

// Whatever the bytes, reading does not panic, and what is read writes them again.
func FuzzUnmarshal(f *testing.F) {
	x, y := sample(13, 60, 3)
	m, err := Rebuild(f.Context(), x, y, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encode(f, m))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Linear
		if m.UnmarshalBinary(b) == nil && !bytes.Equal(encode(t, &m), b) {
			t.Errorf("read and written %x is %x", b, encode(t, &m))
		}
	})
}

// A fit says what is wrong with its rows, and stops when its context does.
func TestRebuildRefuses(t *testing.T) {
	x, y := sample(14, 20, 2)
	if _, err := Rebuild(t.Context(), x, y, append(make([]float64, 19), 1)); !errors.Is(err, ErrOneClass) {
		t.Errorf("one row of weight: %v", err)
	}
	_, err := Rebuild(t.Context(), [][]float64{{1, math.NaN()}, {1, 2}}, []float64{1, 0}, []float64{1, -1})
	for _, part := range []string{"row 0 has NaN", "label 1 is 0", "weight 1 is -1"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not told in: %v", part, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Rebuild(ctx, x, y, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
