package feature_test

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"hamlet/algos/feature"
)

func TestSignedLog(t *testing.T) {
	for _, tt := range []struct{ v, want float64 }{
		{0, 0}, {math.E - 1, 1}, {1 - math.E, -1}, {1e-12, 1e-12}, {math.MaxFloat64, 709.782712893384},
		{math.Inf(-1), math.Inf(-1)},
	} {
		if got := feature.SignedLog(tt.v); got != tt.want && math.Abs(got-tt.want) > 1e-12*math.Abs(tt.want) {
			t.Errorf("SignedLog(%v) = %v, want %v", tt.v, got, tt.want)
		}
	}
}

// The running moments are those of the rows so far, computed in two passes.
func TestStandardiserEqualsTwoPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-50, 50), 2, 100).Draw(t, "values")
		s := feature.NewStandardiser(1)
		mean, variance := 0.0, 0.0
		for _, v := range values {
			s.Observe([]float64{v})
			mean += v / float64(len(values))
		}
		for _, v := range values {
			variance += (v - mean) * (v - mean) / float64(len(values))
		}
		if variance < 1e-6 {
			return
		}
		var z [1]float64
		s.Standardise(z[:], values[:1])
		if want := max(-3, min(3, (values[0]-mean)/math.Sqrt(variance))); math.Abs(z[0]-want) > 1e-6 {
			t.Errorf("standardised %v, want %v", z[0], want)
		}
	})
}

func TestStandardiserAtItsEdges(t *testing.T) {
	s := feature.NewStandardiser(2)
	z := []float64{5, 5}
	s.Standardise(z, z)
	if z[0] != 0 || z[1] != 0 {
		t.Errorf("before the first row %v, want 0", z)
	}
	for k := range 100 {
		s.Observe([]float64{3, float64(k % 2)})
	}
	s.Standardise(z, []float64{4, 1e6})
	if z[0] != 0 || z[1] != 3 {
		t.Errorf("%v, want 0 for a constant column and 3 for an outlier", z)
	}
}

// Values so small that their squares underflow are no variance: neither NaN nor
// ±3 for what all rows but one were.
func TestStandardiserOfTinyValues(t *testing.T) {
	const tiny = 3.2e-162
	for _, tt := range []struct {
		zeros int
		then  float64
	}{{1, tiny}, {1, 1e-170}, {1, 5e-324}, {1000, 1e-161}, {1000, 1e-155}, {1, 1e-154}} {
		s := feature.NewStandardiser(1)
		for range tt.zeros {
			s.Observe([]float64{0})
		}
		s.Observe([]float64{tt.then})
		for _, v := range []float64{0, tt.then / 2, tt.then} {
			z := []float64{v}
			s.Standardise(z, z)
			if !(math.Abs(z[0]) <= 3) || v == 0 && z[0] < -1.1 {
				t.Errorf("%d times 0 and once %v: %v is %v, want 0 to be near 0 and all within ±3", tt.zeros, tt.then, v, z[0])
			}
		}
	}
}

func TestStandardiserBytes(t *testing.T) {
	s := feature.NewStandardiser(3)
	for k := range 50 {
		s.Observe([]float64{float64(k), float64(k * k), -1})
	}
	b, err := s.AppendBinary(nil)
	if err != nil || len(b) != s.Size() {
		t.Fatalf("%d bytes, %v; want %d", len(b), err, s.Size())
	}
	r := feature.NewStandardiser(3)
	if err := r.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	r.Observe([]float64{1, 2, 3})
	s.Observe([]float64{1, 2, 3})
	want, _ := s.AppendBinary(nil)
	got, _ := r.AppendBinary(nil)
	if !bytes.Equal(got, want) {
		t.Error("restored, it goes on differently")
	}
	bad := bytes.Clone(b)
	bad[15], bad[14] = 0x7f, 0xf8 // the first mean: NaN
	for name, b := range map[string][]byte{"short": b[:len(b)-1], "long": append(bytes.Clone(b), 0), "NaN": bad} {
		if err := r.UnmarshalBinary(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if after, _ := r.AppendBinary(nil); !bytes.Equal(after, got) {
		t.Error("an error changed it")
	}
}

func TestStandardiserCheck(t *testing.T) {
	s := feature.NewStandardiser(2)
	for k := range 101 {
		s.Observe([]float64{5, float64(5 - 10*(k%2))})
	}
	if err := s.Check(101, 5.001); err != nil {
		t.Errorf("rows within the bound: %v", err)
	}
	if err := s.Check(100, 6); err == nil {
		t.Error("another number of rows: no error")
	}
	if err := s.Check(101, 4.99); err == nil {
		t.Error("values beyond the bound: no error")
	}
	if err := feature.NewStandardiser(2).Check(0, 0); err != nil {
		t.Errorf("before the first row: %v", err)
	}
}
