package model

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/blr"
	"hamlet/algos/feature"
	"hamlet/algos/internal/codec"
	"hamlet/algos/sites"
	"hamlet/algos/text"
)

// settled is a model of circles with all that a vector half can have.
func settled(t testing.TB, events int) *Model {
	t.Helper()
	m, err := New(Config{TableBits: 8, Dense: []string{"a", "b"}, Window: 50, Rebuild: 50, SecondHead: 0.99, VectorHead: Head{HalfLife: 300}})
	if err != nil {
		t.Fatal(err)
	}
	for _, ex := range circles(events, 1) {
		if _, err := m.Apply(&ex); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// A part is what is saved within a model's bytes.
type part interface {
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

// overwrite changes words of a part's bytes, so that the part itself does not object.
func overwrite(t *testing.T, p part, words map[int]uint64) {
	t.Helper()
	b, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for at, word := range words {
		binary.LittleEndian.PutUint64(b[at:], word)
	}
	if err := p.UnmarshalBinary(b); err != nil {
		t.Fatalf("words %x: %v", words, err)
	}
}

// Bytes whose checksums are right, and whose numbers are each a number, but which no
// learner has written. Restored, they would panic in Apply, hang in a withdrawal, or
// go on to bytes that are refused.
func TestRestoreRefusesWhatNobodyLearnt(t *testing.T) {
	huge := math.Float64bits(1e308)
	const dim = 9
	const eta, precision = 88 + 16*dim, 88 + 32*dim
	const covariance = precision + 4*dim*(dim+1)
	for _, c := range []struct {
		name   string
		change func(m *Model)
		want   string
	}{
		{"a precision off the diagonal", func(m *Model) {
			overwrite(t, m.submodels[ofVector].head, map[int]uint64{precision + 8: huge})
		}, "vector sub-model: check a posterior"},
		{"a covariance off the diagonal", func(m *Model) {
			overwrite(t, m.submodels[ofVector].head, map[int]uint64{covariance + 16: huge | 1<<63})
		}, "vector sub-model: check a posterior"},
		{"a small one", func(m *Model) {
			overwrite(t, m.submodels[ofVector].head, map[int]uint64{covariance + 16: math.Float64bits(0.01)})
		}, "V is not the inverse"},
		{"the natural mean", func(m *Model) {
			overwrite(t, m.submodels[ofVector].head, map[int]uint64{eta: huge})
		}, "η of input 0"},
		{"the determinant", func(m *Model) {
			overwrite(t, m.submodels[ofVector].head, map[int]uint64{48: huge})
		}, "ln|V|"},
		{"the log evidence", func(m *Model) {
			overwrite(t, m.submodels[ofVector].head, map[int]uint64{56: huge | 1<<63})
		}, "log evidence"},
		{"alarms of other events", func(m *Model) {
			m.submodels[ofVector].monitor = m.specs[ofVector].newMonitor(m.cfg.Alarms)
		}, "vector sub-model: alarms: a head of 0 events after 620"},
		{"a precision of the second head", func(m *Model) {
			overwrite(t, m.submodels[ofVector].stack.Second(), map[int]uint64{precision + 8: huge})
		}, "second head: check a posterior"},
		{"the natural mean of the stacker", func(m *Model) {
			overwrite(t, m.submodels[ofVector].stack.Stacker(), map[int]uint64{88 + 16*4: huge})
		}, "stacker: check a posterior"},
		{"rows of the standardiser", func(m *Model) {
			overwrite(t, m.submodels[ofVector].columns, map[int]uint64{0: math.MaxUint64})
		}, "standardiser of 18446744073709551615 rows, want 620"},
		{"a mean of the standardiser", func(m *Model) {
			overwrite(t, m.submodels[ofVector].columns, map[int]uint64{24: huge})
		}, "standardiser: column 1"},
		{"a variance of the standardiser", func(m *Model) {
			overwrite(t, m.submodels[ofVector].columns, map[int]uint64{16: huge})
		}, "standardiser: column 0"},
		{"a site of the future", func(m *Model) {
			record := m.submodels[ofVector].sites.Head(7)
			record.Fades = 13
			m.submodels[ofVector].sites.SetHead(7, record)
		}, "sites: slot 7 was made after"},
		{"a site with a large input", func(m *Model) { m.submodels[ofVector].sites.Head(5).X[1] = 1e30 }, "sites: slot 5"},
		{"a site of a large answer", func(m *Model) {
			stacker, _ := m.submodels[ofVector].sites.Stack(619)
			stacker.X[1] = 1e30
		}, "sites: slot 619"},
		{"a site counted more than once", func(m *Model) { m.submodels[ofVector].sites.Counted(3)[0] = 1e300 }, "sites: slot 3"},
		{"a clock beyond 2⁵³", func(m *Model) { m.events, m.unlearnt = 1<<54, 1<<54-620 }, "its counts disagree"},
	} {
		m := settled(t, 620)
		c.change(m)
		if _, err := Restore(image(t, m)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	if _, err := Restore(image(t, settled(t, 620))); err != nil {
		t.Errorf("unchanged: %v", err)
	}
}

// With a half-life of 2⁴⁰ events and a clock of 2⁴⁵, sites of the first events would
// have faded 7·10¹¹ times, and a withdrawal would count them all.
func TestRestoreRefusesSitesOlderThanTheRing(t *testing.T) {
	m := newOf(t, Config{TableBits: 8, TextExperts: []string{text.LeanOpening}, Alarms: Alarms{Off: true}, TextHead: Head{HalfLife: 1 << 40}})
	apply(t, m, letters(sites.Window+100, 1)...)
	if _, err := Restore(image(t, m)); err != nil {
		t.Fatal(err)
	}
	const long = 1 << 45
	m.events, m.submodels[ofText].events = long, long
	overwrite(t, m.submodels[ofText].head, map[int]uint64{16: long})
	if _, err := Restore(image(t, m)); err == nil || !strings.Contains(err.Error(), "sites: slot 0 was made after") {
		t.Errorf("error %v", err)
	}
}

// The first event creates a sub-model, so none has no events.
func TestRestoreRefusesSubmodelsOfNoEvents(t *testing.T) {
	texts, vectors := newOf(t, Config{TableBits: 8}), newOf(t, Config{TableBits: 8, Dense: []string{"a", "b"}})
	texts.submodels[ofText], vectors.submodels[ofVector] = newSubmodel(texts.specs[ofText], texts.cfg.Alarms), newSubmodel(vectors.specs[ofVector], vectors.cfg.Alarms)
	for _, m := range []*Model{texts, vectors} {
		if _, err := Restore(image(t, m)); err == nil || !strings.Contains(err.Error(), "sub-model: it has no events") {
			t.Errorf("error %v", err)
		}
	}
}

// sealed returns the bytes of a model that has these sections.
func sealed(section sections) []byte {
	n := (&encoded{sections: section}).count()
	b := binary.LittleEndian.AppendUint32([]byte(magic), version)
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	for _, s := range section[:n] {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	}
	b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
	for _, s := range section {
		b = append(b, s...)
	}
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

// What a configuration promises is not allocated before the bytes bear it out: here
// 4,096 dense inputs, for which a head takes 190 MB, around a head of seven; and text,
// of whose sites there is one.
func TestRestoreAllocatesWhatTheBytesBearOut(t *testing.T) {
	cfg := Config{TableBits: 8, Alarms: Alarms{Off: true}, VectorEnsembles: []string{}, SecondHead: 0.99}
	for j := range MaxDense {
		cfg.Dense = append(cfg.Dense, fmt.Sprintf("%04d", j))
	}
	few := newOf(t, Config{TableBits: 8, Alarms: Alarms{Off: true}})
	apply(t, few, circles(1, 1)...)
	ring, columns := sites.New(sites.Shape{Inputs: MaxDense + 7, Stacker: 3, Second: true, Counters: 1}), feature.NewStandardiser(MaxDense)
	ring.Add(sites.Site{Head: blr.Site{Y: 1, Phi: 1}})
	columns.Observe(make([]float64, MaxDense))
	section, err := split(image(t, newOf(t, cfg)))
	if err != nil {
		t.Fatal(err)
	}
	few.submodels[ofVector].columns = columns
	w := codec.NewWriter(nil)
	few.submodels[ofVector].write(w)
	if section[sectionSubmodel+1], err = w.Finish(); err != nil {
		t.Fatal(err)
	}
	w = codec.NewWriter(nil)
	ring.Write(w)
	if section[sectionSites+1], err = w.Finish(); err != nil {
		t.Fatal(err)
	}

	one := newOf(t, Config{TableBits: 8, TextExperts: []string{text.LeanOpening}, Alarms: Alarms{Off: true}})
	apply(t, one, letters(1, 1)...)

	for name, b := range map[string][]byte{"a head of others": sealed(section), "one text": image(t, one)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Restore(b)
		runtime.ReadMemStats(&after)
		if most := uint64(20*len(b) + 1<<16); after.TotalAlloc-before.TotalAlloc > most {
			t.Errorf("%s: %d bytes allocate %d, want at most %d (error %v)", name, len(b), after.TotalAlloc-before.TotalAlloc, most, err)
		}
		if wrong := name != "one text"; (err != nil) != wrong || wrong && !strings.Contains(err.Error(), "a head of 7 inputs, want 4103") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
