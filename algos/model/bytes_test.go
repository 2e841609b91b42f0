package model_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/model"
)

var update = flag.Bool("update", false, "write the golden files again")

// goldenEvents are enough for an ensemble to serve and another to be under way.
const goldenEvents = 330

// golden is the model of testdata/model-v7.golden.
func golden(t testing.TB) *model.Model {
	m := newModel(t, model.Config{TableBits: 8, Dense: dense, DuplicateWindow: 16, SecondHead: 0.99, Window: 60, Rebuild: 50})
	events := madeUp(goldenEvents, 10)
	for i := range events {
		events[i].Source = []string{"desk", "trap", "user"}[i%3]
		events[i].Identity = "message " + events[i].ID
	}
	apply(t, m, events)
	return m
}

// The golden file is made by
//
//	go test ./algos/model -run TestGolden -update
//
// It fails where the mathematics or the bytes have changed: then raise
// mathematics in adopt.go or version in bytes.go, and write it again.
func TestGolden(t *testing.T) {
	path := filepath.Join("testdata", "model-v7.golden")
	made := bytesOf(t, golden(t))
	if *update {
		if err := os.WriteFile(path, made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Restore(kept)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytesOf(t, m), kept) {
		t.Error("restored and saved, it has other bytes")
	}
	if m.Events() != goldenEvents || m.Config().TableBits != 8 {
		t.Errorf("%d events, table bits %d; want %d and 8", m.Events(), m.Config().TableBits, goldenEvents)
	}
	if m.Numerics() == model.CurrentNumerics() && !bytes.Equal(made, kept) {
		t.Error("the same events make other bytes than they did")
	}
}

// A model whose bytes call an ensemble by a name that no ensemble has is refused, and so is one that
// is written in another way.
func TestRestoreTakesNoOtherNames(t *testing.T) {
	now := bytesOf(t, golden(t))
	for _, c := range [][2]string{{`["logit-trees"]`, `["logit-trees" ]`}, {`"logit-trees"`, `"xgboost"`}, {`"logit-trees"`, `"anyboost"`}} {
		if _, err := model.Restore(renamed(now, c[0], c[1])); err == nil {
			t.Errorf("%s for %s: no error", c[1], c[0])
		}
	}
}

// A model of earlier numerics is restored as it is and adopts this program's numerics. Those have a
// version and no architecture.
func TestAdoptsNumerics(t *testing.T) {
	m := golden(t)
	if _, err := strconv.Atoi(m.Numerics()); err != nil {
		t.Errorf("numerics %q: want a version alone", m.Numerics())
	}
	former := renamed(bytesOf(t, m), `"numerics":"`+m.Numerics()+`"`, `"numerics":"13"`)
	old, err := model.Restore(former)
	if err != nil {
		t.Fatal(err)
	}
	if old.Numerics() != "13" || !bytes.Equal(bytesOf(t, old), former) {
		t.Errorf("restored with numerics %q, or with other bytes", old.Numerics())
	}
	if err := old.Adopt(m.Config()); err != nil {
		t.Fatal(err)
	}
	was := old.Adoptions()
	if old.Numerics() != model.CurrentNumerics() || len(was) != 1 || was[0].Numerics != "13" || was[0].Events != goldenEvents {
		t.Errorf("adopted numerics %q, recorded %+v", old.Numerics(), was)
	}
}

// renamed returns the bytes b with the first old in the last section replaced by new.
func renamed(b []byte, old, new string) []byte {
	const lastLength = headerSize - 16
	n := binary.LittleEndian.Uint64(b[lastLength:])
	at := len(b) - 8 - int(n)
	section := bytes.Replace(b[at:len(b)-8], []byte(old), []byte(new), 1)
	b = append(append(bytes.Clone(b[:at]), section...), make([]byte, 8)...)
	binary.LittleEndian.PutUint64(b[lastLength:], uint64(len(section)))
	return sound(b)
}

// A save allocates about what it returns: it does not grow table by table.
func TestBytesAreAllocatedOnce(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes slices grow by a copy")
	}
	m := newModel(t, model.Config{})
	apply(t, m, madeUp(50, 12))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b, err := m.AppendBinary(nil)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; float64(got) > 1.25*float64(len(b)) {
		t.Errorf("%d bytes were allocated for %d", got, len(b))
	}
}

// A save appends, and what is behind the tables does not move them.
func TestTablesKeepTheirPlace(t *testing.T) {
	m := newModel(t, small)
	events := madeUp(300, 11)
	apply(t, m, events[:250])
	a := bytesOf(t, m)
	with, err := m.AppendBinary([]byte("before"))
	if err != nil || string(with) != "before"+string(a) {
		t.Errorf("appended to what was there, other bytes; error %v", err)
	}
	apply(t, m, events[250:])
	b := bytesOf(t, m)
	const header, tables = headerSize, 4*8<<10 + 16 + 2*8<<10 + 16
	share := func(shift int) float64 {
		same := 0
		for i := header; i < header+tables; i++ {
			if a[i] == b[i+shift] {
				same++
			}
		}
		return float64(same) / tables
	}
	// In place .775 of the bytes are the same, shifted half: slots that are still 0.
	const most = 0.65
	if s := share(0); s < most {
		t.Errorf("%.3f of the tables' bytes are where they were 50 events ago, want %v", s, most)
	}
	for _, shift := range []int{8, 64, 1000} {
		if s := share(shift); s >= most {
			t.Errorf("%.3f of the tables' bytes would be the same if they had moved by %d: nothing is told by that", s, shift)
		}
	}
}

func TestRestoreRefusesDamage(t *testing.T) {
	good := bytesOf(t, golden(t))
	for name, b := range map[string][]byte{
		"nothing": nil, "one byte short": good[:len(good)-1], "one byte more": append(bytes.Clone(good), 0),
		"only a header": good[:headerSize], "another format": bytes.Repeat([]byte("x"), 5000),
	} {
		if _, err := model.Restore(b); err == nil || !strings.HasPrefix(err.Error(), "restore model from ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	// Every byte of the header, and every 251st of the rest: a restore reads them all.
	for i := 0; i < len(good); i++ {
		if i > headerSize {
			i = min(i+250, len(good)-1)
		}
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if _, err := model.Restore(bad); err == nil {
			t.Fatalf("byte %d of %d flipped: no error", i, len(good))
		}
	}
	if _, err := model.Restore(sound(bytes.Clone(good))); err != nil {
		t.Fatalf("sound bytes: %v", err)
	}
	// Sound checksums around unsound numbers are the checks' own work.
	for name, change := range map[string]func(b []byte){
		"another version": func(b []byte) { b[8] = 9 },
		"a section longer than all": func(b []byte) {
			binary.LittleEndian.PutUint64(b[16:], 1<<63)
		},
		"tables one slot shorter": func(b []byte) {
			for at, by := range map[int]int{16: -8, 24: 8} {
				n := binary.LittleEndian.Uint64(b[at:])
				binary.LittleEndian.PutUint64(b[at:], n+uint64(by))
			}
		},
		"a weight that is no number": func(b []byte) { copy(b[headerSize:], []byte{0, 0, 0xc0, 0x7f}) },
		"more sources than bytes":    func(b []byte) { binary.LittleEndian.PutUint64(textSources(b), 4096) },
		"a source twice":             func(b []byte) { s := textSources(b)[8:]; n := 108 + len("desk"); copy(s[:8], s[n:n+8]) },
		"a source of the future":     func(b []byte) { binary.LittleEndian.PutUint64(textSources(b)[16:], 1<<40) },
		"more doubts than labels": func(b []byte) {
			binary.LittleEndian.PutUint64(textSources(b)[48:], math.Float64bits(1e6))
		},
	} {
		bad := bytes.Clone(good)
		change(bad)
		if _, err := model.Restore(sound(bad)); err == nil || strings.Contains(err.Error(), "checksum") {
			t.Errorf("%s: error %v, want one about the numbers", name, err)
		}
	}
}

// textSources are the text half's bytes from its sources on: its twelfth section,
// behind the event count, ε, the share of spam and eight numbers of their standing.
func textSources(b []byte) []byte {
	at := uint64(headerSize)
	for section := range 11 {
		at += binary.LittleEndian.Uint64(b[16+8*section:])
	}
	return b[at+24+72:]
}

// headerSize is that of the drawing in bytes.go.
const headerSize = 136

// sound corrects b's checksums.
func sound(b []byte) []byte {
	if len(b) >= headerSize+8 {
		binary.LittleEndian.PutUint64(b[headerSize-8:], xxhash.Sum64(b[:headerSize-8]))
		binary.LittleEndian.PutUint64(b[len(b)-8:], xxhash.Sum64(b[:len(b)-8]))
	}
	return b
}
