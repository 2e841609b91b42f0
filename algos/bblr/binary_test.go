package bblr

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A classifier is what all fits have in common: the ensembles' interface, a
// decision and bytes.
type classifier interface {
	Score(x []float64) float64
	Label(x []float64) float64
	Prob(x []float64) float64
	LogOdds(x []float64) float64
	AppendBinary(dst []byte) ([]byte, error)
	UnmarshalBinary(b []byte) error
}

// golden returns one fitted classifier for each kind of bytes.
func golden(t testing.TB) map[string]classifier {
	t.Helper()
	x, y := noisySample(11, 60, 3, 0.1)
	linear, _, err := Fit(t.Context(), Config{Variant: BBLR4}, x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	dense, _, err := FitKernel(t.Context(), KernelConfig{Raw: true}, x[:12], y[:12], nil)
	if err != nil {
		t.Fatal(err)
	}
	sparse, _, err := FitKernel(t.Context(), KernelConfig{Sparse: true}, x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]classifier{"linear": linear, "kernel": dense, "sparse-kernel": sparse}
}

func encode(t testing.TB, c classifier) []byte {
	t.Helper()
	b, err := c.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func empty(c classifier) classifier {
	if _, ok := c.(*Linear); ok {
		return &Linear{}
	}
	return &KernelMachine{}
}

// The golden files were made by `go test -run TestGolden ./algos/bblr -update`. They
// hold on every CPU: `GOAMD64=v3 go test` fuses, `GODEBUG=cpu.fma=off` does not.
func TestGolden(t *testing.T) {
	for name, c := range golden(t) {
		path := filepath.Join("testdata", name+"_v1.bin")
		got := encode(t, c)
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s has other bytes than %s", name, path)
		}
		read := empty(c)
		if err := read.UnmarshalBinary(want); err != nil {
			t.Fatal(err)
		}
		if again := encode(t, read); !bytes.Equal(again, want) {
			t.Errorf("%s, read and written, has other bytes", name)
		}
		x, _ := noisySample(12, 50, 3, 0)
		for _, row := range x {
			if read.LogOdds(row) != c.LogOdds(row) || read.Prob(row) != c.Prob(row) || read.Label(row) != c.Label(row) {
				t.Errorf("%s answers otherwise after reading, at %v", name, row)
			}
		}
	}
}

// Invalid bytes are refused and leave the classifier unchanged.
func TestDamagedBytes(t *testing.T) {
	for name, c := range golden(t) {
		good := encode(t, c)
		for what, spoil := range map[string]func(b []byte) []byte{
			"empty":     func([]byte) []byte { return nil },
			"cut":       func(b []byte) []byte { return b[:len(b)-1] },
			"header":    func(b []byte) []byte { return b[:headerSize-1] },
			"longer":    func(b []byte) []byte { return append(b, 0) },
			"magic":     func(b []byte) []byte { b[0] = 'x'; return b },
			"version":   func(b []byte) []byte { b[4] = 2; return b },
			"kind":      func(b []byte) []byte { b[5] = 7; return b },
			"reserved":  func(b []byte) []byte { b[6] = 1; return b },
			"dimension": func(b []byte) []byte { b[8]++; return b },
			"rows":      func(b []byte) []byte { b[12]++; return b },
			"mix":       func(b []byte) []byte { b[23] = 0xff; return b },
			"NaN":       func(b []byte) []byte { copy(b[len(b)-8:], []byte{1, 0, 0, 0, 0, 0, 0xf8, 0x7f}); return b },
		} {
			read := empty(c)
			if err := read.UnmarshalBinary(good); err != nil {
				t.Fatal(err)
			}
			if err := read.UnmarshalBinary(spoil(bytes.Clone(good))); !errors.Is(err, ErrFormat) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			if !bytes.Equal(encode(t, read), good) {
				t.Errorf("%s, %s: what was there has changed", name, what)
			}
		}
		other := classifier(&Linear{})
		if name == "linear" {
			other = &KernelMachine{}
		}
		if err := other.UnmarshalBinary(good); !errors.Is(err, ErrFormat) {
			t.Errorf("%s is read as another kind: %v", name, err)
		}
	}
}

// Support rows with coefficient 0 and negative standard deviations are refused.
func TestKernelBytesThatMeanNothing(t *testing.T) {
	c := golden(t)["sparse-kernel"].(*KernelMachine)
	for what, spoil := range map[string]func(k *KernelMachine){
		"coefficient": func(k *KernelMachine) { k.coef[1] = 0 },
		"spread":      func(k *KernelMachine) { k.scaling.inverse[0] *= -1 },
		"order":       func(k *KernelMachine) { k.support[1] = k.support[0] },
		"bandwidth":   func(k *KernelMachine) { k.bandwidth = 0 },
	} {
		spoilt := &KernelMachine{}
		if err := spoilt.UnmarshalBinary(encode(t, c)); err != nil {
			t.Fatal(err)
		}
		spoil(spoilt)
		if err := new(KernelMachine).UnmarshalBinary(encode(t, spoilt)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Whatever the bytes, reading does not panic, and what is read writes them again.
func FuzzUnmarshal(f *testing.F) {
	for _, c := range golden(f) {
		f.Add(encode(f, c))
	}
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, c := range []classifier{&Linear{}, &KernelMachine{}} {
			if c.UnmarshalBinary(b) == nil && !bytes.Equal(encode(t, c), b) {
				t.Errorf("%T: read and written %x is %x", c, b, encode(t, c))
			}
		}
	})
}
