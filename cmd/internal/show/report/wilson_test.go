package report

import (
	"math"
	"testing"
)

// Reference: Wilson (1927); 1 of 10 has the interval .0179 to .4042.
func TestWilson(t *testing.T) {
	lo, hi := Wilson(0.1, 10)
	if math.Abs(lo-0.0179) > 5e-5 || math.Abs(hi-0.4042) > 5e-5 {
		t.Errorf("got %v to %v", lo, hi)
	}
	if lo, hi := Wilson(0, 10); lo != 0 || math.Abs(hi-0.2775) > 5e-5 {
		t.Errorf("none of 10: %v to %v", lo, hi)
	}
}
