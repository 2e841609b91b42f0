package fit

import (
	"math"
	"strings"
	"testing"
)

// Reference: enumeration of the 64 labellings of a 3×2 grid and of its transpose.
func TestCRFGrid(t *testing.T) {
	f := [][]float64{{1, -0.5}, {0.3, -3}, {1, 1.2}}
	turned := [][]float64{{1, 0.3, 1}, {-0.5, -3, 1.2}}
	const coupling = 0.7
	z, p, least := 0.0, make([]float64, 6), math.Inf(1)
	for s := range 64 {
		e := 0.0
		y := func(row, column int) float64 { return float64(2*(s>>(2*row+column)&1) - 1) }
		for i := range 3 {
			for j := range 2 {
				e -= f[i][j] * y(i, j) / 2
				if j == 0 && y(i, 0) == y(i, 1) {
					e -= coupling
				}
				if i > 0 && y(i, j) == y(i-1, j) {
					e -= coupling
				}
			}
		}
		least = min(least, e)
		z += math.Exp(-e)
		for k := range p {
			if s>>k&1 == 1 {
				p[k] += math.Exp(-e)
			}
		}
	}
	a := reply[crfGridReply](t, requestLine(t, "crf.grid", "f", f, "coupling", coupling))
	b := reply[crfGridReply](t, requestLine(t, "crf.grid", "f", turned, "coupling", coupling))
	for _, r := range []*crfGridReply{a, b} {
		if math.Abs(r.LogZ-math.Log(z)) > 1e-12 || math.Abs(r.Energy-least) > 1e-12 {
			t.Errorf("ln Z and the least energy are %v and %v, want %v and %v", r.LogZ, r.Energy, math.Log(z), least)
		}
	}
	for k := range p {
		if got := a.P[k/2][k%2]; math.Abs(got-p[k]/z) > 1e-12 {
			t.Errorf("P(+1) of pixel %d is %v, want %v", k, got, p[k]/z)
		}
		if a.P[k/2][k%2] != b.P[k%2][k/2] || a.Labels[k/2][k%2] != b.Labels[k%2][k/2] {
			t.Errorf("pixel %d differs on the transposed grid", k)
		}
	}
}

// A grid whose tables would not fit into memory is refused.
func TestCRFGridTooLong(t *testing.T) {
	f := make([][]float64, 10)
	for i := range f {
		f[i] = make([]float64, 820)
	}
	text, failed := ask(t, requestLine(t, "crf.grid", "f", f))
	if want := "at most 819 columns"; !failed || !strings.Contains(text, want) {
		t.Errorf("10×820: reply %.200s, want an error that says %q", text, want)
	}
}
