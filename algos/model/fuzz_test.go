package model

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// A word is written into a section of a model's bytes, so many bytes from its start.
type word struct {
	section uint8
	at      uint32
	value   uint64
}

// unaltered is the section of a word that is not written.
const unaltered = 255

// altered returns b with the words written, and with checksums that are right.
func altered(b []byte, words ...word) []byte {
	b = bytes.Clone(b)
	header := headerOf(b)
	if len(b) < header+trailerSize {
		return b
	}
	sections := (header - 24) / 8
	for _, w := range words {
		if w.section == unaltered {
			continue
		}
		start, length := uint64(header), uint64(0)
		for s := range int(w.section)%sections + 1 {
			start += length
			length = binary.LittleEndian.Uint64(b[16+8*s:])
			if start > uint64(len(b)) || length > uint64(len(b))-start {
				break
			}
		}
		if length < 8 || start+length > uint64(len(b)) || start > uint64(len(b)) {
			continue
		}
		binary.LittleEndian.PutUint64(b[start+uint64(w.at)%(length-7):], w.value)
	}
	binary.LittleEndian.PutUint64(b[header-8:], xxhash.Sum64(b[:header-8]))
	binary.LittleEndian.PutUint64(b[len(b)-trailerSize:], xxhash.Sum64(b[:len(b)-trailerSize]))
	return b
}

// headerOf returns the length of the header of a model's bytes, as if they were sound.
func headerOf(b []byte) int {
	if len(b) >= 16 && binary.LittleEndian.Uint32(b[12:]) == sectionCount+1 {
		return headerSize + 8
	}
	return headerSize
}

// Whatever bytes are restored, the model takes events, predicts probabilities, and
// has bytes that are restored in turn; and it survives a withdrawal. Beside the bytes
// the fuzzer changes two words of a section that it chooses, because checksums would
// keep it out and tables and sites are most of the bytes.
//
// It needs -fuzzminimizetime 1x: minimizing inputs of 60 KB takes all the time there
// is.
func FuzzRestore(f *testing.F) {
	few := settled(f, 130)
	for _, ex := range letters(60, 2) {
		ex.ID = "l" + ex.ID
		if _, err := few.Apply(&ex); err != nil {
			f.Fatal(err)
		}
	}
	bytesOf := func(m *Model) []byte {
		b, err := m.AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	empty, err := New(Config{TableBits: 8})
	if err != nil {
		f.Fatal(err)
	}
	add := func(b []byte, one, two word) {
		f.Add(b, one.section, one.at, one.value, two.section, two.at, two.value)
	}
	none := word{section: unaltered}
	small, large := bytesOf(few), bytesOf(settled(f, 620))
	for _, b := range [][]byte{small, large, bytesOf(empty)} {
		add(b, none, none)
	}
	// What TestRestoreRefusesWhatNobodyLearnt is about, by the drawings of the bytes.
	const dim = 9
	const columns, head = 24 + 8 + 2*32, 24 + 8 + 2*32 + 8 + 16*2
	const eta, precision = head + 88 + 16*dim, head + 88 + 32*dim
	const noise = 8 + 8 + 88 + 32*dim + 8*dim*(dim+1) + 8
	huge := math.Float64bits(1e308)
	for _, at := range []uint32{precision + 8, eta} {
		add(small, word{sectionSubmodel + 1, at, huge}, none)
	}
	add(small, word{sectionSubmodel + 1, columns, math.MaxUint64}, none)
	add(small, word{sectionSubmodel + 1, columns + 8, huge}, none)
	seen := large[indexOf(large, sectionAlarms+1)+noise:]
	add(large, word{sectionAlarms + 1, noise + 200, binary.LittleEndian.Uint64(seen[200:]) - 25},
		word{sectionAlarms + 1, noise + 208, binary.LittleEndian.Uint64(seen[208:]) - 25})
	fromEnd := uint32(len(sectionOf(small, sectionAlarms+1)) - 120)
	add(small, word{sectionAlarms + 1, fromEnd + 56, math.MaxUint64}, none)

	for _, ex := range asked(letters(60, 9), 0.5) {
		ex.ID, ex.Body.Tenant = "s"+ex.ID, ex.ID[:2]
		if _, err := few.Apply(&ex); err != nil {
			f.Fatal(err)
		}
	}
	judged := bytesOf(few)
	add(judged, none, none)
	add(judged, word{sectionJudged, 0, 1}, none)

	later := append(circles(110, 7), letters(60, 8)...)
	f.Fuzz(func(t *testing.T, b []byte, section1 uint8, at1 uint32, value1 uint64, section2 uint8, at2 uint32, value2 uint64) {
		m, err := Restore(altered(b, word{section1, at1, value1}, word{section2, at2, value2}))
		if err != nil {
			return
		}
		if own := image(t, m); !bytes.Equal(own, altered(b, word{section1, at1, value1}, word{section2, at2, value2})) {
			t.Error("restored and saved, it has other bytes")
		}
		for i := range later {
			ex := later[i]
			ex.ID, ex.SampleWeight = fmt.Sprint("later", i), float64(i%2)
			before, err := m.NewPredictor().Predict(&ex.Body)
			var refused *RefusedError
			if err != nil && !errors.As(err, &refused) || err == nil && !(before.P() >= 0 && before.P() <= 1) {
				t.Fatalf("event %d: predicts %+v, %v", i, before, err)
			}
			effect, err := m.Apply(&ex)
			if err != nil && !errors.As(err, &refused) || err == nil && !effect.Duplicate && effect.Prediction.Mean != before.Mean {
				t.Fatalf("event %d: %+v, %v; predicted %+v", i, effect, err, before)
			}
		}
		if _, err := Restore(image(t, m)); err != nil {
			t.Errorf("after some events: %v", err)
		}
		for _, of := range []Example{circles(130, 1)[129], later[105]} {
			u := unlearn("u"+of.ID, of)
			var refused *RefusedError
			if _, err := m.Apply(&u); err != nil && !errors.As(err, &refused) {
				t.Error(err)
			}
		}
	})
}

// indexOf returns where a section of sound bytes begins.
func indexOf(b []byte, section int) int {
	at := headerOf(b)
	for s := range section {
		at += int(binary.LittleEndian.Uint64(b[16+8*s:]))
	}
	return at
}

// sectionOf returns a section of sound bytes.
func sectionOf(b []byte, section int) []byte {
	at := indexOf(b, section)
	return b[at : at+int(binary.LittleEndian.Uint64(b[16+8*section:]))]
}
