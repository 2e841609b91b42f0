package bblr

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// A classifier is what all fits have in common.
type classifier interface {
	Score(x []float64) float64
	Label(x []float64) float64
	Prob(x []float64) float64
	LogOdds(x []float64) float64
}

func encode(t testing.TB, m *Linear) []byte {
	t.Helper()
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The golden file was made by `go test -run TestGolden ./algos/lab/bblr -update`. It
// holds on every CPU: `GOAMD64=v3 go test` fuses, `GODEBUG=cpu.fma=off` does not.
func TestGolden(t *testing.T) {
	const path = "testdata/linear_v1.bin"
	x, y := noisySample(11, 60, 3, 0.1)
	m, _, err := Fit(t.Context(), Config{Variant: BBLR4}, x, y, nil)
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
}
