package promise

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// A ham of a random table.
type observed struct{ logOdds, weight float64 }

// draw returns n ham: of equal weights, or of any.
func draw(r *rand.Rand, n int, equal bool) []observed {
	all := make([]observed, n)
	for i := range all {
		all[i] = observed{4*r.NormFloat64() - 6, 1}
		if !equal {
			all[i].weight = math.Exp(4 * (r.Float64() - 0.9))
		}
	}
	return all
}

func tableOf(all []observed) *Table {
	t := new(Table)
	for _, o := range all {
		t.Observe(o.logOdds, o.weight)
	}
	return t
}

func mustBytes(t testing.TB, table *Table) []byte {
	t.Helper()
	b, err := table.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What lies at an edge or above it is counted there, also by rounding.
func TestCells(t *testing.T) {
	for c := range cells {
		e := edge(c)
		if cell(e) != c {
			t.Fatalf("cell(%v) = %d, want %d", e, cell(e), c)
		}
		if below := cell(math.Nextafter(e, -100)); below < c-1 || below > c {
			t.Fatalf("just below %v lies in cell %d of %d", e, below, c)
		}
	}
	for z, want := range map[float64]int{math.Inf(-1): 0, -800: 0, 24: cells - 1, 800: cells - 1, math.Inf(1): cells - 1} {
		if got := cell(z); got != want {
			t.Errorf("cell(%v) = %d, want %d", z, got, want)
		}
	}
}

// The same ham in any order give the same bytes, and a restored table goes on to the same bytes.
func TestSameHamSameBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, equal := range []bool{true, false} {
		all := draw(r, 5000, equal)
		want := mustBytes(t, tableOf(all))
		restored := new(Table)
		if err := restored.UnmarshalBinary(mustBytes(t, tableOf(all[:3000]))); err != nil {
			t.Fatal(err)
		}
		for _, o := range all[3000:] {
			restored.Observe(o.logOdds, o.weight)
		}
		if !bytes.Equal(mustBytes(t, restored), want) {
			t.Error("other bytes after a restart")
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if !bytes.Equal(mustBytes(t, tableOf(all)), want) {
			t.Error("other bytes in another order")
		}
	}
}

func TestLayout(t *testing.T) {
	table := new(Table)
	table.Observe(-9, 1)
	table.Observe(0.1, 2)
	table.Observe(0.1, 0.5)
	le := binary.LittleEndian
	want := append([]byte("hprm\x01"), make([]byte, 8)...)
	want = le.AppendUint64(want, 2<<32)
	want = le.AppendUint16(want, 8*32+4)
	want = le.AppendUint16(want, 2)
	want = le.AppendUint64(le.AppendUint16(want, 0), 1<<32)
	want = le.AppendUint64(le.AppendUint16(want, 8*32+3), 5<<31)
	if got := mustBytes(t, table); !bytes.Equal(got, want) {
		t.Errorf("got % x\nwant % x", got, want)
	}
}

// A table never holds as much as Forget. Halving keeps the shares.
func TestHalving(t *testing.T) {
	table := new(Table)
	for i := range Forget - 1 {
		table.Observe([]float64{-3, -3, -3, 2}[i%4], 1)
	}
	if table.Era() != 0 || table.Ham() != Forget-1 {
		t.Fatalf("era %d with %v ham", table.Era(), table.Ham())
	}
	table.Observe(2, 1)
	if table.Era() != 1 || table.Ham() != Forget/2 || table.cells[cell(2)] != Forget/8*unit {
		t.Errorf("era %d with %v ham, %v at 2", table.Era(), table.Ham(), table.cells[cell(2)]/unit)
	}
	for range 2 * Forget {
		table.Observe(1, 64)
	}
	restored := new(Table)
	if err := restored.UnmarshalBinary(mustBytes(t, table)); err != nil || *restored != *table || table.Ham() >= Forget {
		t.Errorf("%v ham in era %d: %v", table.Ham(), table.Era(), err)
	}
}

func TestObservePanics(t *testing.T) {
	for _, o := range []observed{{math.NaN(), 1}, {0, 0}, {0, math.NaN()}, {0, 65}, {0, LeastWeight / 2}, {0, -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is accepted", o)
				}
			}()
			new(Table).Observe(o.logOdds, o.weight)
		}()
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	good := mustBytes(t, tableOf([]observed{{-9, 1}, {1, 1}, {2, 3}}))
	set := func(at int, v ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], v)
		return b
	}
	for name, b := range map[string][]byte{
		"nothing":              nil,
		"cut short":            good[:len(good)-1],
		"too long":             append(bytes.Clone(good), 0),
		"another version":      set(4, 2),
		"no largest weight":    set(13, make([]byte, 8)...),
		"a floor beyond":       set(21, 255, 255),
		"no floor":             set(21, 0, 0),
		"a cell twice":         set(35, 0, 0),
		"a cell beyond":        set(45, 0, 4),
		"an empty cell":        set(27, make([]byte, 8)...),
		"more than it forgets": set(27, 255, 255, 255, 255, 255, 255, 255, 255),
	} {
		table := tableOf([]observed{{3, 1}})
		before := *table
		if err := table.UnmarshalBinary(b); !errors.Is(err, ErrFormat) || *table != before {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := new(Table).UnmarshalBinary(good); err != nil {
		t.Error(err)
	}
}

func FuzzUnmarshal(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	f.Add(mustBytes(f, new(Table)))
	f.Add(mustBytes(f, tableOf(draw(r, 30, true))))
	f.Add(mustBytes(f, tableOf(draw(r, 30, false))))
	f.Fuzz(func(t *testing.T, b []byte) {
		var table Table
		if err := table.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(mustBytes(t, &table), b) {
			t.Fatal("other bytes than were read")
		}
		bound := table.Threshold(0.01)
		if math.IsNaN(bound.LogOdds) || math.IsNaN(bound.Missing) || bound.Missing < 0 ||
			bound.Promised() == math.IsInf(bound.LogOdds, 1) {
			t.Fatalf("%+v", bound)
		}
		table.Observe(1, 1)
	})
}
