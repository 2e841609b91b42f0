package lastlabel_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"hamlet/algos/lastlabel"
)

func Example() {
	labels := lastlabel.New(2)
	labels.Put(11, lastlabel.Label{Source: 8, State: lastlabel.Spam})
	labels.Put(12, lastlabel.Label{Source: 8, State: lastlabel.Ham})
	labels.Put(11, lastlabel.Label{Source: 16, State: lastlabel.Ham}) // keeps its place
	labels.Put(13, lastlabel.Label{Source: 8, State: lastlabel.Ham})  // in the place of the oldest
	for _, message := range []uint64{11, 12, 13} {
		fmt.Println(message, labels.Get(message))
	}
	// Output:
	// 11 {0 0}
	// 12 {8 1}
	// 13 {8 1}
}

// The table against a plain list, restored and resized now and then.
func TestTableHoldsTheLastMessages(t *testing.T) {
	type labelled struct {
		message uint64
		label   lastlabel.Label
	}
	r := rand.New(rand.NewPCG(1, 2))
	limit := 50
	table, want := lastlabel.New(limit), []labelled(nil)
	for i := range 5000 {
		message := 1 + r.Uint64N(120)*(1<<40) // the low bits are equal, so that places in the index collide
		label := lastlabel.Label{Source: r.Uint64() &^ 3, State: lastlabel.State(1 + r.IntN(3))}
		table.Put(message, label)
		if at := slices.IndexFunc(want, func(l labelled) bool { return l.message == message }); at >= 0 {
			want[at].label = label
		} else {
			want = append(want, labelled{message, label})
		}
		want = want[max(0, len(want)-limit):]
		if i%501 == 7 {
			limit = 30 + r.IntN(60)
			table.Resize(limit)
		}
		want = want[max(0, len(want)-limit):]
		if i%97 == 0 {
			b, next := table.Append(nil), table.Next()
			table = lastlabel.New(limit)
			if err := table.Restore(b, uint64(next)); err != nil || !bytes.Equal(table.Append(nil), b) || table.Next() != next {
				t.Fatalf("after %d labels: %v, or other bytes", i, err)
			}
		}
		if table.Len() != len(want) {
			t.Fatalf("after %d labels: %d messages, want %d", i, table.Len(), len(want))
		}
		for k := range uint64(120) {
			message, wanted := 1+k*(1<<40), lastlabel.Label{}
			if at := slices.IndexFunc(want, func(l labelled) bool { return l.message == message }); at >= 0 {
				wanted = want[at].label
			}
			if got := table.Get(message); got != wanted {
				t.Fatalf("after %d labels: message %d has %v, want %v", i, k, got, wanted)
			}
		}
	}
}

func TestAFullTableAllocatesNothing(t *testing.T) {
	table := lastlabel.New(100)
	message := uint64(0)
	put := func() {
		message += 0x9e3779b97f4a7c15
		table.Put(message, lastlabel.Label{Source: 4, State: lastlabel.Ham})
	}
	for range 300 {
		put()
	}
	if n := testing.AllocsPerRun(1000, put); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestRestoreRefuses(t *testing.T) {
	table := lastlabel.New(3)
	for message := range uint64(5) {
		table.Put(message+1, lastlabel.Label{Source: 4, State: lastlabel.Ham})
	}
	good := table.Append(nil)
	for name, c := range map[string]struct {
		b    []byte
		next uint64
		ok   bool
	}{
		"unchanged":              {good, 2, true},
		"too many":               {append(bytes.Clone(good), good[:16]...), 2, false},
		"half a message":         {good[:40], 2, false},
		"goes on elsewhere":      {good[:32], 1, false},
		"goes on beyond":         {good, 3, false},
		"a message twice":        {append(bytes.Clone(good[:32]), good[:16]...), 2, false},
		"a message without hash": {append(make([]byte, 8), good[8:]...), 2, false},
		"without a label":        {append(bytes.Clone(good[:40]), make([]byte, 8)...), 2, false},
	} {
		if err := lastlabel.New(3).Restore(c.b, c.next); (err == nil) != c.ok {
			t.Errorf("%s: error %v, want one: %v", name, err, !c.ok)
		}
	}
}
