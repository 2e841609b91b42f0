package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// seal writes the SHA-256 of all but the last 32 bytes of b over these.
func seal(b []byte) []byte {
	body := b[:len(b)-sha256.Size]
	sum := sha256.Sum256(body)
	copy(b[len(body):], sum[:])
	return b
}

// The chain is the formula of Advance's comment, over one buffer.
func TestAdvanceIsTheFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Position
		var chain [sha256.Size]byte
		for range rapid.IntRange(1, 5).Draw(t, "records") {
			offset := p.Next + rapid.Int64Range(0, 1<<40).Draw(t, "gap")
			key := rapid.SliceOf(rapid.Byte()).Draw(t, "key")
			value := rapid.SliceOf(rapid.Byte()).Draw(t, "value")

			b := slices.Clone(chain[:])
			b = binary.BigEndian.AppendUint64(b, uint64(offset))
			b = append(binary.BigEndian.AppendUint64(b, uint64(len(key))), key...)
			b = append(binary.BigEndian.AppendUint64(b, uint64(len(value))), value...)
			var headers []Header
			n := rapid.IntRange(0, 3).Draw(t, "headers")
			b = binary.BigEndian.AppendUint64(b, uint64(n))
			for range n {
				h := Header{rapid.String().Draw(t, "name"), rapid.SliceOf(rapid.Byte()).Draw(t, "content")}
				headers = append(headers, h)
				b = append(binary.BigEndian.AppendUint64(b, uint64(len(h.Key))), h.Key...)
				b = append(binary.BigEndian.AppendUint64(b, uint64(len(h.Value))), h.Value...)
			}
			before := chain
			chain = sha256.Sum256(b)

			p = p.Advance(offset, key, value, headers...)
			if want := (Position{Next: offset + 1, Chain: chain, Before: before}); p != want {
				t.Fatalf("position after offset %d is %v, want %v", offset, p, want)
			}
			if !p.Follows(key, value, headers...) {
				t.Fatalf("the position %v does not follow the record that it was advanced by", p)
			}
			if p.Follows(key, append(value, 'x'), headers...) {
				t.Fatalf("the position %v follows another record", p)
			}
		}
	})
}

// Any difference of two logs changes the chain: where a key ends, an offset, the order.
func TestAdvanceTellsLogsApart(t *testing.T) {
	seen := map[Position]string{}
	for name, p := range map[string]Position{
		"none":      {},
		"ab, c":     Position{}.Advance(0, []byte("ab"), []byte("c")),
		"a, bc":     Position{}.Advance(0, []byte("a"), []byte("bc")),
		"empty key": Position{}.Advance(0, nil, []byte("abc")),
		"header":    Position{}.Advance(0, []byte("ab"), []byte("c"), Header{"ce_id", []byte("a")}),
		"header a":  Position{}.Advance(0, []byte("ab"), []byte("c"), Header{"ce_ida", nil}),
		"value":     Position{}.Advance(0, []byte("ab"), []byte("c"), Header{"ce_id", []byte("b")}),
		"two":       Position{}.Advance(0, []byte("ab"), []byte("c"), Header{"ce_id", []byte("a")}, Header{"x", nil}),
		"turned":    Position{}.Advance(0, []byte("ab"), []byte("c"), Header{"x", nil}, Header{"ce_id", []byte("a")}),
		"gap":       Position{}.Advance(1, []byte("ab"), []byte("c")),
		"x then y":  Position{}.Advance(0, nil, []byte("x")).Advance(1, nil, []byte("y")),
		"y then x":  Position{}.Advance(0, nil, []byte("y")).Advance(1, nil, []byte("x")),
		"late":      Position{}.Advance(0, nil, []byte("x")).Advance(2, nil, []byte("y")),
	} {
		if other, ok := seen[p]; ok {
			t.Errorf("logs %q and %q have one position %v", name, other, p)
		}
		seen[p] = name
	}
}

// A position at the beginning, and one that knows no last record, follow anything.
func TestFollowsWhatIsNotKnown(t *testing.T) {
	known := Position{}.Advance(0, nil, []byte("x"))
	unknown := Position{Next: known.Next, Chain: known.Chain, Before: known.Chain}
	for name, p := range map[string]Position{"beginning": {}, "unknown": unknown} {
		if !p.Follows([]byte("k"), []byte("v"), Header{"h", nil}) {
			t.Errorf("%s: refuses a record", name)
		}
	}
}

func TestAdvancePanicsGoingBack(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Advance to an offset before the position did not panic")
		}
	}()
	Position{Next: 5}.Advance(4, nil, nil)
}

// Join∘Split is the identity, at lengths around the chunks' edges.
func TestSplitJoin(t *testing.T) {
	for _, n := range []int{0, 1, ChunkSize - 1, ChunkSize, ChunkSize + 1, 2*ChunkSize + 100} {
		want := sample()
		want.Model = want.Model[:n]
		m, chunks := Split(want)
		data := make([][]byte, len(chunks))
		for i, c := range chunks {
			if len(c.Data) == 0 || len(c.Data) > ChunkSize {
				t.Errorf("model of %d bytes: chunk %d has %d", n, i, len(c.Data))
			}
			if c.Name != m.Chunks[i] || c.Name != sha256.Sum256(c.Data) {
				t.Errorf("model of %d bytes: chunk %d has the wrong name %x", n, i, c.Name)
			}
			data[i] = c.Data
		}
		got, err := Join(m, data)
		if err != nil {
			t.Fatalf("model of %d bytes: %v", n, err)
		}
		if !bytes.Equal(got.Model, want.Model) {
			t.Errorf("model of %d bytes came back as other bytes", n)
		}
		got.Model, want.Model = nil, nil // compared above; cmp takes seconds for megabytes
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("model of %d bytes (-want +got):\n%s", n, diff)
		}
	}
}

// A change in one chunk leaves the names of the others, at the same places.
func TestSplitKeepsNames(t *testing.T) {
	before := sample()
	_, old := Split(before)
	before.Model[ChunkSize+5]++
	_, now := Split(before)
	for i := range now {
		if same := now[i].Name == old[i].Name; same != (i != 1) {
			t.Errorf("after a change in chunk 1, chunk %d has the same name: %v", i, same)
		}
	}
}

func TestJoinNoticesDamage(t *testing.T) {
	for name, damage := range map[string]func(m *Manifest, data [][]byte) [][]byte{
		"missing":    func(m *Manifest, d [][]byte) [][]byte { d[1] = nil; return d },
		"shortened":  func(m *Manifest, d [][]byte) [][]byte { d[2] = d[2][:50]; return d },
		"flipped":    func(m *Manifest, d [][]byte) [][]byte { d[0] = bytes.Clone(d[0]); d[0][9] ^= 1; return d },
		"swapped":    func(m *Manifest, d [][]byte) [][]byte { d[0], d[1] = d[1], d[0]; return d },
		"too few":    func(m *Manifest, d [][]byte) [][]byte { return d[:2] },
		"wrong sum":  func(m *Manifest, d [][]byte) [][]byte { m.Model[0]++; return d },
		"wrong list": func(m *Manifest, d [][]byte) [][]byte { m.Chunks = m.Chunks[:2]; return d[:2] },
	} {
		m, chunks := Split(sample())
		var data [][]byte
		for _, c := range chunks {
			data = append(data, c.Data)
		}
		if _, err := Join(m, damage(m, data)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: error %v, want ErrCorrupt", name, err)
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	c := sample()
	c.Model = make([]byte, 8<<20)
	b.SetBytes(int64(len(c.Model)))
	b.ReportAllocs()
	for b.Loop() {
		Split(c)
	}
}
