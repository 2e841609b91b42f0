package state

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sample is a checkpoint with every field set and a model of three chunks, the
// last of them short.
func sample() *Checkpoint {
	model := make([]byte, 2*ChunkSize+100)
	for i := range model {
		model[i] = byte(i*i>>7 ^ i ^ i>>20)
	}
	return &Checkpoint{
		Schema:   3,
		Numerics: "1/amd64",
		Config:   []byte(`{"table_bits":18}`),
		Epoch:    7,
		Events:   123456,
		Position: Position{}.Advance(130000, []byte("example.org/alice"), []byte("an event")),
		Model:    model,
		Saved:    time.Date(2026, 3, 14, 15, 9, 26, 535897932, time.UTC),
	}
}

// A manifest of version 2 stays readable for ever. The file is made by
//
//	go test ./state -run TestManifestGolden -update
func TestManifestGolden(t *testing.T) {
	want, _ := Split(sample())
	path := filepath.Join("testdata", "manifest-v2.golden")
	b, err := want.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, golden) {
		t.Errorf("manifest has the bytes\n%x, want\n%x", b, golden)
	}
	var got Manifest
	if err := got.UnmarshalBinary(golden); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*want, got); diff != "" {
		t.Errorf("golden manifest (-want +got):\n%s", diff)
	}
}

// A manifest of version 3 is hamlet 0.1.0's, of one model of several partitions. It is refused,
// whatever follows.
func TestManifestOfSeveralPartitions(t *testing.T) {
	m, _ := Split(sample())
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	b[11] = 3
	for _, manifest := range [][]byte{b, seal(bytes.Clone(b))} {
		err := new(Manifest).UnmarshalBinary(manifest)
		if !errors.Is(err, ErrPartitions) || !errors.Is(err, ErrOrdered) || errors.Is(err, ErrCorrupt) {
			t.Errorf("got %v, want ErrOrdered", err)
		}
	}
}

// Any one bit that flips in a stored manifest is noticed.
func TestManifestNoticesEveryBit(t *testing.T) {
	m, _ := Split(sample())
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		var got Manifest
		if err := got.UnmarshalBinary(b); err == nil {
			t.Fatalf("bit %d of byte %d flipped unnoticed", bit%8, bit/8)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	for n := range len(b) {
		if err := new(Manifest).UnmarshalBinary(b[:n]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("manifest cut to %d bytes: error %v, want ErrCorrupt", n, err)
		}
	}
	if err := new(Manifest).UnmarshalBinary(append(b, 0)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("manifest with a byte more: error %v, want ErrCorrupt", err)
	}
}

func TestManifestRefusesWhatItCannotHold(t *testing.T) {
	for name, spoil := range map[string]func(*Manifest){
		"schema":          func(m *Manifest) { m.Schema = -1 },
		"epoch":           func(m *Manifest) { m.Epoch = -1 },
		"offset":          func(m *Manifest) { m.Position.Next = -1 },
		"length":          func(m *Manifest) { m.Length = -1 },
		"chunks too few":  func(m *Manifest) { m.Chunks = m.Chunks[1:] },
		"chunks too many": func(m *Manifest) { m.Length -= ChunkSize },
	} {
		m, _ := Split(sample())
		spoil(m)
		if b, err := m.AppendBinary([]byte("kept")); err == nil || string(b) != "kept" {
			t.Errorf("%s: AppendBinary returned %d bytes and the error %v, want dst alone and an error", name, len(b), err)
		}
	}
}

// The layout holds a time that UnixNano cannot: the zero one.
func TestManifestTime(t *testing.T) {
	for _, saved := range []time.Time{{}, time.Unix(-1, 999999999), time.Date(9999, 1, 1, 0, 0, 0, 1, time.UTC)} {
		b, err := (&Manifest{Saved: saved}).AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		var got Manifest
		if err := got.UnmarshalBinary(b); err != nil || !got.Saved.Equal(saved) {
			t.Errorf("saved at %v: got %v, error %v", saved, got.Saved, err)
		}
	}
}

// Decoding never panics, and what it accepts encodes to the same bytes. The test corrects the hash at the end, which
// would reject nearly all of a fuzzer's inputs.
func FuzzManifest(f *testing.F) {
	for _, c := range []*Checkpoint{sample(), {}, {Model: []byte("x"), Config: []byte("{}")}} {
		m, _ := Split(c)
		b, err := m.AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, false)
		f.Add(b, true)
	}
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if mend && len(b) >= 32 {
			b = seal(bytes.Clone(b))
		}
		var m Manifest
		if err := m.UnmarshalBinary(b); err != nil {
			if diff := cmp.Diff(Manifest{}, m); diff != "" {
				t.Fatalf("a failed decode changed the manifest:\n%s", diff)
			}
			return
		}
		got, err := m.AppendBinary(nil)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		if !bytes.Equal(got, b) {
			t.Fatalf("decoded and encoded\n%x to\n%x", b, got)
		}
	})
}
