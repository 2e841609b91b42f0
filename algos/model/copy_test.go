package model

import (
	"bytes"
	"errors"
	"testing"

	"hamlet/algos/text"
)

// A model and its copies answer, learn and withdraw as a model that was never copied, whether the tables of a copy
// are taken back or not, and a copy that learns nothing never changes.
func TestCopy(t *testing.T) {
	cfg := Config{TableBits: 8, PersonalExperts: []string{text.TextWordsBayes, text.HeaderWords}}
	straight, copied := newOf(t, cfg), newOf(t, cfg)
	all := newsletters(100, 6)
	for i := range 20 {
		all = append(all, unlearn("u"+all[i].ID, all[i]))
	}
	var copies []*Model
	var were [][]byte
	kept := map[*text.Table]bool{} // of the copies
	for i := range all {
		if i%10 == 5 {
			before := image(t, copied)
			for range 1 + i%20/10 { // two copies of one state, or one
				c, err := copied.Copy()
				if err != nil {
					t.Fatal(err)
				}
				copies, were = append(copies, c), append(were, before)
				kept[c.submodels[ofText].tables[0]] = true
				if c.submodels[ofText].tables[0] != copied.submodels[ofText].tables[0] {
					t.Fatalf("event %d: a copy has tables of its own", i)
				}
			}
			if !bytes.Equal(image(t, copied), before) || !bytes.Equal(image(t, copies[len(copies)-1]), before) {
				t.Fatalf("event %d: model and copy have other bytes than before", i)
			}
		}
		want, err := straight.NewPredictor().Predict(&all[i].Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := copied.NewPredictor().Predict(&all[i].Body); err != nil || got != want {
			t.Fatalf("event %d: predicted %v, %v; want %v", i, got, err, want)
		}
		apply(t, straight, all[i])
		apply(t, copied, all[i])
		if !bytes.Equal(image(t, copied), image(t, straight)) {
			t.Fatalf("event %d: it went on differently", i)
		}
		if kept[copied.submodels[ofText].tables[0]] {
			t.Fatalf("event %d: it learnt in the tables of a copy", i)
		}
		if i%30 == 8 { // with one copy of the state, or with a second that is not taken back
			last := copies[len(copies)-1]
			copied.Reclaim(last, true)
			copies, were = copies[:len(copies)-1], were[:len(were)-1]
			alone := len(copies) == 0 || copies[len(copies)-1].submodels[ofText].tables[0] != last.submodels[ofText].tables[0]
			if alone {
				delete(kept, last.submodels[ofText].tables[0])
			}
			if got := copied.submodels[ofText].spare != nil; got != alone {
				t.Fatalf("event %d: to take back the tables of a copy gives %t, want %t", i, got, alone)
			}
			if i == 98 && (copied.Forget() != alone || copied.Forget()) {
				t.Errorf("event %d: they are not dropped once", i)
			}
		}
	}
	for i, c := range copies {
		if !bytes.Equal(image(t, c), were[i]) {
			t.Errorf("copy %d was changed", i)
		}
		twin, err := Restore(were[i])
		if err != nil {
			t.Fatal(err)
		}
		apply(t, c, all[50:100]...)
		if apply(t, twin, all[50:100]...); !bytes.Equal(image(t, c), image(t, twin)) {
			t.Errorf("copy %d went on differently", i)
		}
	}
}

// Where a model has learnt nothing since its only copy, the tables are its own again when they are taken back.
func TestReclaimBeforeAnyEvent(t *testing.T) {
	m := newOf(t, Config{TableBits: 8})
	all := newsletters(21, 6)
	apply(t, m, all[:20]...)
	c, err := m.Copy()
	if err != nil {
		t.Fatal(err)
	}
	table := m.submodels[ofText].tables[0]
	m.Reclaim(c, false)
	m.Reclaim(c, false) // has no effect
	if apply(t, m, all[20]); m.submodels[ofText].tables[0] != table {
		t.Error("it copied tables that nobody shares")
	}
}

// WriteTo writes the bytes of AppendBinary, and returns the error of the writer.
func TestWriteTo(t *testing.T) {
	m := newOf(t, Config{TableBits: 14})
	for n, ex := range newsletters(30, 6) {
		want := image(t, m)
		var got bytes.Buffer
		if k, err := m.WriteTo(&got); err != nil || k != int64(len(want)) || !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("after %d events: %d bytes, %v; want those of AppendBinary, %d", n, k, err, len(want))
		}
		apply(t, m, ex)
	}
	full := errors.New("full")
	for _, room := range []int{0, headerSize, 1 << 20} {
		k, err := m.WriteTo(&narrow{room, full})
		if !errors.Is(err, full) || k > int64(room) {
			t.Errorf("to a writer of %d bytes it wrote %d, and returned %v", room, k, err)
		}
	}
}

// A narrow writer takes room bytes, and then returns full.
type narrow struct {
	room int
	full error
}

func (w *narrow) Write(b []byte) (int, error) {
	if len(b) > w.room {
		return 0, w.full
	}
	w.room -= len(b)
	return len(b), nil
}
