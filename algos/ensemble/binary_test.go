package ensemble

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"
)

func TestRestoredAnswersAlike(t *testing.T) {
	w := drawWindow(6, 400, 7)
	for _, e := range buildAll(t, w) {
		b := encode(t, e)
		var back Ensemble
		if err := back.UnmarshalBinary(b); err != nil {
			t.Fatalf("%s: %v", e.Kind(), err)
		}
		if back.Kind() != e.Kind() || back.Dim() != e.Dim() || !bytes.Equal(encode(t, &back), b) {
			t.Errorf("%s: what was read is not what was written", e.Kind())
		}
		for i := range w.Labels {
			if got, want := back.LogOdds(w.row(i)), e.LogOdds(w.row(i)); math.Float64bits(got) != math.Float64bits(want) {
				t.Fatalf("%s: log-odds %v, before %v", e.Kind(), got, want)
			}
		}
		appended, err := e.AppendBinary([]byte("before"))
		if err != nil || !bytes.Equal(appended, append([]byte("before"), b...)) {
			t.Errorf("%s: AppendBinary does not append (%v)", e.Kind(), err)
		}
	}
}

func TestRefusesDamagedBytes(t *testing.T) {
	all := buildAll(t, drawWindow(7, 60, 4))
	refuse := func(what string, b []byte) {
		t.Helper()
		e := *all[0]
		if err := e.UnmarshalBinary(b); !errors.Is(err, ErrFormat) || e != *all[0] {
			t.Errorf("%s: the error %v, want one that wraps %v and the ensemble as before", what, err, ErrFormat)
		}
	}
	for i, e := range all {
		b := encode(t, e)
		for n := range b {
			refuse(string(e.Kind())+" cut short", b[:n])
		}
		refuse(string(e.Kind())+" too long", append(bytes.Clone(b), 0))
		for at, v := range map[int]byte{0: 'x', 4: 2, 5: byte(len(boosters)), 6: 1, 8: b[8] + 1, 12: b[12] + 1, 16: 'x'} {
			damaged := bytes.Clone(b)
			damaged[at] = v
			refuse(string(e.Kind()), damaged)
		}
		for j, kind := range Kinds() {
			if j == i || slices.Contains(factsOf(t, e.Kind()).readAs, kind) {
				continue
			}
			damaged := bytes.Clone(b)
			damaged[5] = byte(j)
			refuse(string(e.Kind())+" called "+string(kind), damaged)
		}
	}
	if _, err := new(Ensemble).AppendBinary(nil); err == nil {
		t.Error("the zero value has bytes")
	}
}

// Answers that float64 does not hold are refused, whatever the booster's own
// package says of its numbers.
func TestRefusesAnswersBeyondRange(t *testing.T) {
	for _, e := range buildAll(t, drawWindow(7, 60, 4)) {
		exceed := factsOf(t, e.Kind()).exceed
		if exceed == nil {
			continue
		}
		b := encode(t, e)
		exceed(b)
		if err := new(Ensemble).UnmarshalBinary(b); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: the error %v, want one that wraps %v", e.Kind(), err, ErrFormat)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, e := range buildAll(f, drawWindow(8, 50, 4)) {
		f.Add(encode(f, e))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Ensemble
		if err := e.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("the error %v does not wrap %v", err, ErrFormat)
			}
			return
		}
		if got := encode(t, &e); !bytes.Equal(got, b) {
			t.Fatalf("% x was read and % x written", b, got)
		}
		if e.Dim() > 1<<12 {
			return
		}
		x := make([]float64, e.Dim())
		for _, v := range []float64{0, 1, -math.MaxFloat64} {
			for j := range x {
				x[j] = v
			}
			if z := e.LogOdds(x); !(math.Abs(z) <= math.MaxFloat64) {
				t.Fatalf("log-odds %v of %v", z, x[0])
			}
		}
	})
}
