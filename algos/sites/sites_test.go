package sites

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/blr"
	"hamlet/algos/internal/codec"
)

var shapes = []Shape{
	{Inputs: 3, Counters: 1},
	{Inputs: 3, Stacker: 2, Counters: 2},
	{Inputs: 2, Stacker: 3, Second: true, Counters: 1},
	{Inputs: 300, Counters: 1}, // allocated as sites come
}

// made draws a site. Its stacker record has an X in two of three cases.
func made(r *rand.Rand, shape Shape, i int) Site {
	draw := func(n int) []float64 {
		x := make([]float64, n)
		for j := range x {
			x[j] = r.NormFloat64()
		}
		return x
	}
	record := func(n int) blr.Site {
		rec := blr.Site{X: draw(n), Fades: uint64(i / 50)}
		rec.H, rec.Eta, rec.R, rec.Xi = 0.2*r.Float64(), r.NormFloat64(), r.NormFloat64(), r.Float64()
		return rec
	}
	s := Site{Key: uint64(i), Named: uint64(i / 2), Message: uint64(i / 3), Source: uint64(i % 5), Body: uint64(i / 4), Text: uint64(i / 8), Head: record(shape.Inputs), Trust: r.Float64(), Weight: r.Float64(), Counted: make([]float64, shape.Counters)}
	s.Head.Y, s.Head.Phi = []float64{-1, 1}[r.IntN(2)], 1-r.Float64()
	for j := range s.Counted {
		s.Counted[j] = r.Float64()
	}
	if shape.Stacker > 0 && r.IntN(3) > 0 {
		s.Stacker = record(shape.Stacker)
	}
	if shape.Second {
		s.Second = record(shape.Inputs)
	}
	return s
}

func written(r *Ring) []byte {
	w := codec.NewWriter(nil)
	r.Write(w)
	b, _ := w.Finish()
	return b
}

// The ring against a plain list of the sites that were added, read again now and then.
func TestRingHoldsTheLastSites(t *testing.T) {
	for _, shape := range shapes {
		t.Run(fmt.Sprintf("%+v", shape), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			ring, all := New(shape), []Site(nil)
			n := Window + 300
			if shape.Inputs > 100 {
				n = 20
			}
			for i := range n {
				s := made(r, shape, i)
				all = append(all, s)
				ring.Add(s)
				if i%11 == 3 {
					slot, err := ring.Find(s.Key, s.Named, s.Body, i%2 == 0)
					if err != nil || ring.Since(slot) != 0 {
						t.Fatalf("site %d: %v", i, err)
					}
					ring.Withdraw(slot)
					all[i].Withdrawn = true
				}
				if i%400 == 17 || i == n-1 {
					from := codec.NewReader(written(ring), nil)
					back := Read(from, shape)
					if err := from.Close(); err != nil || !bytes.Equal(written(back), written(ring)) {
						t.Fatalf("after %d sites: %v, or other bytes", i+1, err)
					}
					ring = back
				}
			}
			want := all[max(0, len(all)-Window):]
			if ring.Len() != len(want) {
				t.Fatalf("%d sites, want %d", ring.Len(), len(want))
			}
			want = slices.DeleteFunc(slices.Clone(want), func(s Site) bool { return s.Withdrawn })
			for slot := range ring.Remaining() {
				s := want[0]
				want = want[1:]
				stacker, second := ring.Stack(slot)
				s.Stacker.Y, s.Stacker.Phi, s.Second.Y, s.Second.Phi = s.Head.Y, s.Head.Phi, s.Head.Y, s.Head.Phi
				if !shape.Second {
					s.Second.X = s.Head.X
				} else {
					s.Second.X = slices.Clone(s.Head.X) // the heads have one input
				}
				for part, pair := range map[string][2]blr.Site{"head": {ring.Head(slot), s.Head}, "stacker": {stacker, s.Stacker}, "second head": {second, s.Second}} {
					if fmt.Sprint(pair[0]) != fmt.Sprint(pair[1]) {
						t.Fatalf("key %d: %s is %+v, want %+v", s.Key, part, pair[0], pair[1])
					}
				}
				if ring.Trust(slot) != s.Trust || !slices.Equal(ring.Counted(slot), s.Counted) {
					t.Fatalf("key %d: trust %v, counted %v; want %v, %v", s.Key, ring.Trust(slot), ring.Counted(slot), s.Trust, s.Counted)
				}
			}
			if len(want) > 0 {
				t.Errorf("%d sites are missing", len(want))
			}
		})
	}
}

// A withdrawal finds the newest event of its name and body that stands; one of its own
// source comes before others of its tenant.
func TestFind(t *testing.T) {
	ring := New(shapes[0])
	for _, s := range []Site{
		{Key: 1, Named: 10, Body: 5}, {Key: 2, Named: 10, Body: 5}, {Key: 1, Named: 10, Body: 6}, {Key: 3, Named: 11, Body: 5}, {Key: 4, Named: 11, Body: 5},
	} {
		s.Head.X, s.Counted = make([]float64, 3), []float64{0}
		ring.Add(s)
	}
	ring.Withdraw(4)
	for name, c := range map[string]struct {
		key, named, body uint64
		ownOnly          bool
		slot             int
		err              error
	}{
		"its own source":             {1, 10, 5, false, 0, nil},
		"its own source alone":       {1, 10, 5, true, 0, nil},
		"another source, the newest": {9, 10, 5, false, 1, nil},
		"another source is not its":  {9, 10, 5, true, -1, ErrNotOwn},
		"by body":                    {1, 10, 6, false, 2, nil},
		"one stands behind it":       {4, 11, 5, false, 3, nil},
		"that is not its":            {4, 11, 5, true, -1, ErrWithdrawn},
		"another body":               {1, 10, 7, false, -1, ErrOtherBody},
		"another body of its own":    {1, 10, 7, true, -1, ErrOtherBody},
		"another name":               {1, 12, 5, true, -1, ErrUnknown},
	} {
		if slot, err := ring.Find(c.key, c.named, c.body, c.ownOnly); slot != c.slot || !errors.Is(err, c.err) {
			t.Errorf("%s: slot %d, %v; want %d, %v", name, slot, err, c.slot, c.err)
		}
	}
	ring.Withdraw(3)
	if _, err := ring.Find(4, 11, 5, false); !errors.Is(err, ErrWithdrawn) {
		t.Errorf("all are withdrawn: %v", err)
	}
}

// The events of a message are those that stand, newest first.
func TestOf(t *testing.T) {
	ring := New(shapes[0])
	for i, message := range []uint64{7, 8, 7, 0, 7, 8} {
		s := Site{Message: message, Source: uint64(i), Body: uint64(10 + i), Text: uint64(20 + i), Head: blr.Site{Y: []float64{-1, 1}[i%2]}}
		s.Head.X, s.Counted = make([]float64, 3), []float64{0}
		ring.Add(s)
	}
	ring.Withdraw(2)
	if got := ring.Of(nil, 7); !slices.Equal(got, []int{4, 0}) {
		t.Errorf("message 7 has the events in slots %v, want 4 and 0", got)
	}
	if got := ring.Of(nil, 9); len(got) != 0 {
		t.Errorf("message 9 has the events in slots %v, want none", got)
	}
	body, text := ring.Hashes(5)
	if ring.Message(5) != 8 || ring.Source(5) != 5 || !ring.Label(5) || ring.Label(4) || body != 15 || text != 25 {
		t.Errorf("slot 5: message %d, source %d, spam %v, hashes %d and %d", ring.Message(5), ring.Source(5), ring.Label(5), body, text)
	}
}

func TestReadRefuses(t *testing.T) {
	shape := shapes[2]
	for name, c := range map[string]struct {
		change func(r *Ring)
		want   string
	}{
		"unchanged":                     {func(*Ring) {}, ""},
		"a large input":                 {func(r *Ring) { r.x[5] = 1e30 }, "slot 2 "},
		"an input of NaN":               {func(r *Ring) { r.x[5] = math.NaN() }, "not finite"},
		"a large answer":                {func(r *Ring) { r.ring[3].stacked, r.z[9] = true, 1e30 }, "slot 3 "},
		"counted more than twice":       {func(r *Ring) { r.counted[3] = 2.5 }, "slot 3 "},
		"trusted beyond belief":         {func(r *Ring) { r.ring[3].Trust = 1.5 }, "slot 3 "},
		"a label of 0":                  {func(r *Ring) { r.ring[3].Head.Y = 0 }, "slot 3 "},
		"no weight":                     {func(r *Ring) { r.ring[3].Head.Phi = 0 }, "slot 3 "},
		"a negative curvature":          {func(r *Ring) { r.ring[3].Second.H = -1 }, "slot 3 "},
		"a ring that goes on elsewhere": {func(r *Ring) { r.next = 3 }, "go on at 3"},
	} {
		ring, r := New(shape), rand.New(rand.NewPCG(3, 4))
		for i := range 9 {
			ring.Add(made(r, shape, i))
		}
		c.change(ring)
		from := codec.NewReader(written(ring), nil)
		Read(from, shape)
		if err := from.Close(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	ring := New(shape)
	ring.Add(made(rand.New(rand.NewPCG(5, 6)), shape, 0))
	b := written(ring)
	for n := range b {
		if from := codec.NewReader(b[:n], nil); n != 8 {
			if Read(from, shape); from.Close() == nil {
				t.Errorf("%d of %d bytes: no error", n, len(b))
			}
		}
	}
}

// Sites of a head's future are refused, and those that it made are not.
func TestCheckAgainstTheHeads(t *testing.T) {
	head, err := blr.New(blr.Config{Dim: 3, HalfLife: 100})
	if err != nil {
		t.Fatal(err)
	}
	ring := New(shapes[0])
	for i := range 120 {
		rec := head.Update([]float64{1, float64(i % 3), 0.5}, []float64{-1, 1}[i%2], 1)
		ring.Add(Site{Head: rec, Counted: []float64{0}})
	}
	if err := ring.Check(head, nil, nil); err != nil {
		t.Error(err)
	}
	ring.ring[7].Head.Fades = head.Fades() + 1
	if err := ring.Check(head, nil, nil); err == nil || !strings.Contains(err.Error(), "slot 7 was made after") {
		t.Errorf("a site of the future: %v", err)
	}
}
