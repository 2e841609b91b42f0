package sequencer_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream/order"
)

// chain returns the chain of a partition's records from from to to−1, behind at.
func chain(at state.Position, partition int, from, to int64) order.Chain {
	for offset := from; offset < to; offset++ {
		at = at.Advance(offset, nil, value(partition, offset))
	}
	return at.Chain
}

// apply applies a record, reads what it takes and returns what became of it.
func apply(t *testing.T, s *sequencer.State, r order.Record) (sequencer.Decision, error) {
	t.Helper()
	r.Writer = "l"
	b, err := r.AppendProto(nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Apply(s.Log.Next, nil, b)
	if err != nil {
		t.Fatal(err)
	}
	if d.Take == nil {
		return d, nil
	}
	for offset := d.Take.From; offset < d.Take.To; offset++ {
		d.Take.Add(offset, nil, value(d.Take.Partition, offset))
	}
	return d, s.Finish(d.Take)
}

// begun returns a state of two partitions, of which records 0 to 9 are taken of the first.
func begun(t *testing.T) *sequencer.State {
	t.Helper()
	s := &sequencer.State{}
	for _, r := range []order.Record{
		sequencer.Beginning("l", 1, make([]state.Position, 2), [32]byte{}),
		{Kind: order.Range, From: 0, To: 10, Chain: chain(state.Position{}, 0, 0, 10)},
	} {
		if _, err := apply(t, s, r); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestRules(t *testing.T) {
	whole := func(to int64) order.Chain { return chain(state.Position{}, 0, 0, to) }
	gap := order.Record{Kind: order.Gap, From: 10, To: 15}
	behindGap := begun(t).Places[0].Position
	behindGap.Next = 15
	for _, c := range []struct {
		name   string
		before []order.Record
		record order.Record
		want   sequencer.Outcome
		next   []int64
	}{
		{"next range", nil, order.Record{Kind: order.Range, From: 10, To: 12, Chain: whole(12)}, sequencer.Taken, []int64{12, 0}},
		{"cut", nil, order.Record{Kind: order.Range, From: 3, To: 12, Chain: whole(12)}, sequencer.Taken, []int64{12, 0}},
		{"done", nil, order.Record{Kind: order.Range, From: 3, To: 10, Chain: whole(10)}, sequencer.Stale, []int64{10, 0}},
		{"done, with another hash", nil, order.Record{Kind: order.Range, From: 3, To: 8}, sequencer.Stale, []int64{10, 0}},
		{"too early", nil, order.Record{Kind: order.Range, From: 11, To: 12, Chain: whole(12)}, sequencer.Beyond, []int64{10, 0}},
		{"other partition", nil, order.Record{Kind: order.Range, Partition: 1, From: 0, To: 2, Chain: chain(state.Position{}, 1, 0, 2)}, sequencer.Taken, []int64{10, 2}},
		{"unknown partition", nil, order.Record{Kind: order.Range, Partition: 2, From: 0, To: 2}, sequencer.Beyond, []int64{10, 0}},
		{"second beginning", nil, sequencer.Beginning("l", 1, make([]state.Position, 3), [32]byte{}), sequencer.Stale, []int64{10, 0}},
		{"join", nil, order.Record{Kind: order.Join, Partition: 2}, sequencer.Joined, []int64{10, 0, 0}},
		{"join again", []order.Record{{Kind: order.Join, Partition: 2}}, order.Record{Kind: order.Join, Partition: 2}, sequencer.Stale, []int64{10, 0, 0}},
		{"join too early", nil, order.Record{Kind: order.Join, Partition: 3}, sequencer.Beyond, []int64{10, 0}},
		{"gap", nil, gap, sequencer.Jumped, []int64{15, 0}},
		{"gap again", []order.Record{gap}, gap, sequencer.Stale, []int64{15, 0}},
		{"longer gap that overlaps", []order.Record{gap}, order.Record{Kind: order.Gap, From: 10, To: 20}, sequencer.Stale, []int64{15, 0}},
		{"second gap", []order.Record{gap}, order.Record{Kind: order.Gap, From: 15, To: 20}, sequencer.Jumped, []int64{20, 0}},
		{"gap too early", nil, order.Record{Kind: order.Gap, From: 11, To: 15}, sequencer.Beyond, []int64{10, 0}},
		{"gap elsewhere", nil, order.Record{Kind: order.Gap, Partition: 2, From: 0, To: 15}, sequencer.Beyond, []int64{10, 0}},
		{"from before the gap", []order.Record{gap}, order.Record{Kind: order.Range, From: 10, To: 18, Chain: whole(18)}, sequencer.Stale, []int64{15, 0}},
		{"read on from before the gap", []order.Record{gap}, order.Record{Kind: order.Range, From: 15, To: 18, Chain: whole(18)}, sequencer.Stale, []int64{15, 0}},
		{"behind the gap", []order.Record{gap}, order.Record{Kind: order.Range, From: 15, To: 18, Gaps: 1, Chain: chain(behindGap, 0, 15, 18)}, sequencer.Taken, []int64{18, 0}},
		{"behind a gap to come", nil, order.Record{Kind: order.Range, From: 10, To: 12, Gaps: 1, Chain: whole(12)}, sequencer.Beyond, []int64{10, 0}},
	} {
		s := begun(t)
		for _, r := range c.before {
			if _, err := apply(t, s, r); err != nil {
				t.Fatal(err)
			}
		}
		log := s.Log.Next
		d, err := apply(t, s, c.record)
		var next []int64
		for _, p := range s.Places {
			next = append(next, p.Next)
		}
		if err != nil || d.Outcome != c.want || fmt.Sprint(next) != fmt.Sprint(c.next) || s.Log.Next != log+1 {
			t.Errorf("%s: %s, at %v and %d of the order log: %v; want %s, at %v", c.name, d.Outcome, next, s.Log.Next, err, c.want, c.next)
		}
	}
}

// An order log may begin where an older model stands.
func TestBeginningOfAnOldModel(t *testing.T) {
	at := state.Position{}
	for offset := range int64(7) {
		at = at.Advance(offset, nil, value(0, offset))
	}
	s, model := &sequencer.State{}, sha256.Sum256([]byte("model"))
	for _, early := range []order.Record{
		{Kind: order.Range, From: 0, To: 3, Chain: chain(state.Position{}, 0, 0, 3)}, {Kind: order.Join}, {Kind: order.Gap, To: 3},
	} {
		if d, err := apply(t, s, early); err != nil || d.Outcome != sequencer.Beyond {
			t.Fatalf("a %s before the beginning: %s, %v", early.Kind, d.Outcome, err)
		}
	}
	d, err := apply(t, s, sequencer.Beginning("l", 1, []state.Position{at}, model))
	if err != nil || d.Outcome != sequencer.Began || d.Record.Model != model || s.Places[0].Position != at {
		t.Fatalf("%s with %x at %v: %v", d.Outcome, d.Record.Model, s.Places, err)
	}
	if !s.Places[0].Follows(nil, value(0, 6)) || s.Places[0].Follows(nil, value(1, 6)) {
		t.Error("the record before the position is not known any more")
	}
	if _, err := apply(t, s, order.Record{Kind: order.Range, From: 5, To: 9, Chain: chain(state.Position{}, 0, 0, 9)}); err != nil || s.Places[0].Next != 9 {
		t.Errorf("at %d: %v", s.Places[0].Next, err)
	}
}

// Records that differ from those of the range's writer stop the model, whole or cut. The
// state stays before the range.
func TestForeignRange(t *testing.T) {
	for name, r := range map[string]order.Record{
		"other records":       {Kind: order.Range, From: 10, To: 12, Chain: chain(state.Position{}, 1, 0, 12)},
		"other records, cut":  {Kind: order.Range, From: 8, To: 12, Chain: chain(state.Position{}, 1, 0, 12)},
		"another past":        {Kind: order.Range, From: 10, To: 12, Chain: chain(state.Position{}, 0, 10, 12)},
		"no hash":             {Kind: order.Range, From: 10, To: 12},
		"partition without 5": {Kind: order.Range, Partition: 1, From: 0, To: 6, Chain: chain(state.Position{}, 1, 0, 5)},
	} {
		s := begun(t)
		before, _ := s.AppendBinary(nil)
		_, err := apply(t, s, r)
		if !errors.Is(err, sequencer.ErrForeign) || !strings.Contains(err.Error(), fmt.Sprintf("partition %d, offsets", r.Partition)) {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := s.AppendBinary(nil); !bytes.Equal(before, after) {
			t.Errorf("%s: the state moved", name)
		}
	}
}

// A partition that was created again has other records behind the position, and its
// writers hash those. Only the record before the position shows it.
func TestPartitionCreatedAgain(t *testing.T) {
	s := begun(t)
	p := s.Propose(0)
	p.Add(10, nil, []byte("of the new log"))
	d, err := s.Apply(s.Log.Next, nil, encode(t, p.Record("l", 1)))
	if err != nil {
		t.Fatal(err)
	}
	d.Take.Add(10, nil, []byte("of the new log"))
	if err := s.Finish(d.Take); err != nil {
		t.Fatalf("the hash shows it after all: %v; then Follows need not be asked", err)
	}
	if s := begun(t); s.Places[0].Follows(nil, []byte("of the new log")) || !s.Places[0].Follows(nil, value(0, 9)) {
		t.Error("the record before the position does not show it")
	}
}

// Who hashes the records of a partition ahead may finish a range with the position.
func TestFinishAt(t *testing.T) {
	s := begun(t)
	at := s.Places[0].Position.Advance(10, nil, value(0, 10))
	r := order.Record{Kind: order.Range, Writer: "l", From: 10, To: 11, Chain: at.Chain}
	d, err := s.Apply(s.Log.Next, nil, encode(t, r))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.FinishAt(d.Take, s.Places[0].Position); !errors.Is(err, sequencer.ErrForeign) {
		t.Errorf("without the record: %v", err)
	}
	if d, err = s.Apply(s.Log.Next, nil, encode(t, r)); err != nil {
		t.Fatal(err)
	}
	if err := s.FinishAt(d.Take, at); err != nil || s.Places[0].Position != at || s.Log.Next != 3 {
		t.Errorf("%v, at %v", err, s)
	}
}

func encode(t testing.TB, r order.Record) []byte {
	t.Helper()
	b, err := r.AppendProto(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What nobody can read is final, and changes nothing.
func TestUnreadableRecord(t *testing.T) {
	s := begun(t)
	before, _ := s.AppendBinary(nil)
	_, err := s.Apply(s.Log.Next, nil, []byte("x"))
	if err == nil || !strings.Contains(err.Error(), "order log, offset 2") {
		t.Errorf("%v", err)
	}
	if after, _ := s.AppendBinary(nil); !bytes.Equal(before, after) {
		t.Error("the state moved")
	}
}

// A range that nobody has taken a part of may have holes, which transactions leave.
func TestHolesAreHashed(t *testing.T) {
	s := begun(t)
	p := s.Propose(1)
	p.Add(0, nil, value(1, 0))
	p.Add(4, nil, value(1, 4))
	if p.Len() != 5 {
		t.Fatalf("it covers %d offsets", p.Len())
	}
	d, err := s.Apply(s.Log.Next, nil, encode(t, p.Record("l", 1)))
	if err != nil {
		t.Fatal(err)
	}
	d.Take.Add(0, nil, value(1, 0))
	d.Take.Add(4, nil, value(1, 4))
	if err := s.Finish(d.Take); err != nil {
		t.Fatal(err)
	}
}

func TestMisuse(t *testing.T) {
	next := func(s *sequencer.State) *sequencer.Take {
		d, err := s.Apply(s.Log.Next, nil, encode(t, order.Record{
			Kind: order.Range, Writer: "l", From: 10, To: 12, Chain: chain(state.Position{}, 0, 0, 12)}))
		if err != nil {
			t.Fatal(err)
		}
		return d.Take
	}
	for name, misuse := range map[string]func(s *sequencer.State){
		"apply in a take":     func(s *sequencer.State) { next(s); next(s) },
		"save in a take":      func(s *sequencer.State) { next(s); _, _ = s.AppendBinary(nil) },
		"copy in a take":      func(s *sequencer.State) { next(s); s.Clone() },
		"finish nothing":      func(s *sequencer.State) { _ = s.Finish(nil) },
		"finish twice":        func(s *sequencer.State) { k := next(s); _ = s.Finish(k); _ = s.Finish(k) },
		"offset of no range":  func(s *sequencer.State) { next(s).Add(12, nil, nil) },
		"offset below":        func(s *sequencer.State) { next(s).Add(9, nil, nil) },
		"empty proposal":      func(s *sequencer.State) { s.Propose(0).Record("l", 1) },
		"order log goes back": func(s *sequencer.State) { _, _ = s.Apply(1, nil, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			misuse(begun(t))
		}()
	}
}

func TestStateSurvivesItsBytes(t *testing.T) {
	s := begun(t)
	if _, err := apply(t, s, order.Record{Kind: order.Gap, Partition: 1, From: 0, To: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	survives(t, s)
	s.Lineage[0] = 7
	survives(t, s)
}

func survives(t *testing.T, s *sequencer.State) {
	t.Helper()
	c := s.Clone()
	b, err := s.AppendBinary([]byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	var got sequencer.State
	if err := got.UnmarshalBinary(b[len("before"):]); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(*s) || fmt.Sprint(*c) != fmt.Sprint(*s) {
		t.Errorf("%v\n%v\n%v", *s, got, *c)
	}
	for i := range b[len("before"):] {
		if err := got.UnmarshalBinary(b[len("before") : len("before")+i]); err == nil {
			t.Errorf("the first %d bytes are a state", i)
		}
	}
}

func FuzzState(f *testing.F) {
	s := &sequencer.State{}
	for i, places := range [][]sequencer.Place{nil, {{Gaps: 3}}, make([]sequencer.Place, 4)} {
		s.Places, s.Lineage[0] = places, byte(i)
		b, err := s.AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s sequencer.State
		if s.UnmarshalBinary(b) != nil {
			return
		}
		if again, err := s.AppendBinary(nil); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x became %x: %v", b, again, err)
		}
	})
}

func ExampleState() {
	var s sequencer.State
	offset := int64(0)
	apply := func(r order.Record) sequencer.Decision {
		b, err := r.AppendProto(nil)
		if err != nil {
			panic(err)
		}
		d, err := s.Apply(offset, nil, b)
		if err != nil {
			panic(err)
		}
		offset++
		return d
	}
	apply(sequencer.Beginning("learner-1", 1, make([]state.Position, 2), [32]byte{}))

	read := s.Propose(1) // the active learner reads partition 1
	read.Add(0, nil, []byte("spam"))
	read.Add(1, nil, []byte("ham"))

	d := apply(read.Record("learner-1", 1)) // every learner follows
	d.Take.Add(0, nil, []byte("spam"))
	d.Take.Add(1, nil, []byte("ham"))
	fmt.Println(d.Outcome, s.Finish(d.Take), s.Places[1].Next)
	fmt.Println(apply(read.Record("learner-1", 1)).Outcome) // the append came twice
	// Output:
	// taken <nil> 2
	// stale
}
