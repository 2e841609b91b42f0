package poeboost_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"hamlet/algos/poeboost"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// appendEvents appends an ensemble's length and bytes, and labelled events.
func appendEvents(dst []byte, e *poeboost.Ensemble, x [][]float64, y []float64) ([]byte, error) {
	le := binary.LittleEndian
	b, err := e.AppendBinary(nil)
	dst = le.AppendUint32(dst, uint32(len(b)))
	dst = append(dst, b...)
	for i, row := range x {
		for _, v := range append([]float64{y[i]}, row...) {
			dst = le.AppendUint64(dst, math.Float64bits(v))
		}
	}
	return dst, err
}

func readEvents(e *poeboost.Ensemble, b []byte) (x [][]float64, y []float64, err error) {
	le := binary.LittleEndian
	if len(b) < 4 || uint64(len(b)-4) < uint64(le.Uint32(b)) {
		return nil, nil, errors.New("cut short")
	}
	n := int(le.Uint32(b))
	if bare := (poeboost.Ensemble{}); n > 16 || !bytes.Equal(b[4:4+n], mustMarshal(&bare)) {
		if err := e.UnmarshalBinary(b[4 : 4+n]); err != nil {
			return nil, nil, err
		}
	}
	b = b[4+n:]
	const size = 8 * (1 + lawsDim)
	if len(b)%size != 0 {
		return nil, nil, errors.New("cut short")
	}
	for ; len(b) > 0; b = b[size:] {
		event := make([]float64, 1+lawsDim)
		for j := range event {
			event[j] = math.Float64frombits(le.Uint64(b[8*j:]))
		}
		x, y = append(x, event[1:]), append(y, event[0])
	}
	return x, y, nil
}

func mustMarshal(e *poeboost.Ensemble) []byte {
	b, err := e.AppendBinary(nil)
	if err != nil {
		panic(err)
	}
	return b
}

func goldenEnsemble(tb testing.TB, kind int) *poeboost.Ensemble {
	tb.Helper()
	x, y := noise(10, 90, 3, 0.2)
	b, err := kinds[kind].make(newData(tb, x), y, nil, 12)
	if err != nil {
		tb.Fatal(err)
	}
	for b.Round() {
	}
	return b.Ensemble()
}

// The golden files were made by `go test ./algos/poeboost -run TestGolden -update`.
// A version's bytes stay readable, and the same training makes them again on every
// CPU.
func TestGolden(t *testing.T) {
	for kind, name := range map[int]string{0: "discrete_v1.bin", 2: "continuous_v1.bin"} {
		path := filepath.Join("testdata", name)
		e := goldenEnsemble(t, kind)
		got := mustMarshal(e)
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
			t.Errorf("%s: training no longer makes these bytes; if that is meant, it is a new version of the numerics", name)
		}
		var read poeboost.Ensemble
		if err := read.UnmarshalBinary(want); err != nil {
			t.Fatal(err)
		}
		x, _ := noise(11, 50, 3, 0)
		for _, row := range x {
			if a, b := e.LogOdds(row), read.LogOdds(row); a != b {
				t.Errorf("%s: log-odds %v, read back %v", name, a, b)
			}
		}
	}
}

// Damaged bytes are refused with ErrFormat and leave the ensemble as it was.
func TestUnmarshalRefuses(t *testing.T) {
	for _, kind := range []int{0, 2} {
		good := mustMarshal(goldenEnsemble(t, kind))
		expert := 16
		nan := binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN()))
		for name, damage := range map[string]func(b []byte) []byte{
			"empty":             func([]byte) []byte { return nil },
			"cut":               func(b []byte) []byte { return b[:len(b)-1] },
			"header only":       func(b []byte) []byte { return b[:16] },
			"longer":            func(b []byte) []byte { return append(b, 0) },
			"another magic":     func(b []byte) []byte { b[0] = 'x'; return b },
			"another version":   func(b []byte) []byte { b[4] = 2; return b },
			"another kind":      func(b []byte) []byte { b[5] = 2; return b },
			"not zero":          func(b []byte) []byte { b[6] = 1; return b },
			"no inputs":         func(b []byte) []byte { copy(b[8:], []byte{0, 0, 0, 0}); return b },
			"too few inputs":    func(b []byte) []byte { copy(b[8:], []byte{1, 0, 0, 0}); return b },
			"many experts":      func(b []byte) []byte { copy(b[12:], []byte{255, 255, 255, 255}); return b },
			"a feature":         func(b []byte) []byte { b[expert] = 3; return b },
			"polarity, or zero": func(b []byte) []byte { b[expert+4] = 2; return b },
			"a NaN":             func(b []byte) []byte { copy(b[expert+8:], nan); return b },
			"α or weight": func(b []byte) []byte {
				b[expert+23], b[expert+31] = 0x7f, 0x7f
				b[expert+22] |= 0xf0
				b[expert+30] |= 0xf0
				return b
			},
			"α or sd below 0":   func(b []byte) []byte { b[expert+23] |= 0x80; return b },
			"P_e, or another α": func(b []byte) []byte { copy(b[len(b)-8:], nan); return b },
		} {
			e := goldenEnsemble(t, kind)
			if err := e.UnmarshalBinary(damage(bytes.Clone(good))); !errors.Is(err, poeboost.ErrFormat) {
				t.Errorf("kind %d, %s: error %v, want ErrFormat", kind, name, err)
			}
			if !bytes.Equal(mustMarshal(e), good) {
				t.Errorf("kind %d, %s: the ensemble has changed", kind, name)
			}
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(mustMarshal(goldenEnsemble(f, 0)))
	f.Add(mustMarshal(goldenEnsemble(f, 2)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e poeboost.Ensemble
		if e.UnmarshalBinary(b) != nil {
			return
		}
		if again := mustMarshal(&e); !bytes.Equal(again, b) {
			t.Errorf("read and written again %x, was %x", again, b)
		}
		if e.Dim() > 1000 {
			return
		}
		x := make([]float64, e.Dim())
		for _, v := range []float64{0, 1, math.Inf(-1), math.NaN(), 1e308} {
			for j := range x {
				x[j] = v
			}
			if p := e.Prob(x); !(p >= 0 && p <= 1) {
				t.Errorf("P = %v at %v", p, v)
			}
		}
	})
}
