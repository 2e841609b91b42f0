package codec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"hamlet/algos/internal/codec"
)

var errFormat = errors.New("not these bytes")

// raw is a part: its own bytes. An empty one refuses to be written and to be read.
type raw []byte

func (p raw) AppendBinary(dst []byte) ([]byte, error) {
	if len(p) == 0 {
		return dst, errFormat
	}
	return append(dst, p...), nil
}

func (p *raw) UnmarshalBinary(b []byte) error {
	if len(b) == 0 {
		return errEmpty
	}
	*p = slices.Clone(b)
	return nil
}

var errEmpty = errors.New("empty part")

// every writes each kind of field once.
func every(w *codec.Writer) {
	w.Header("test", 3)
	w.Bool(true)
	w.Bool(false)
	w.Zeros(1)
	w.Uint8(4)
	w.Uint8(5)
	w.Uint16(6)
	w.Uint16(7)
	w.Uint32(8, math.MaxUint32)
	w.Uint64(9, math.MaxUint64)
	w.Float32(1.5, -2)
	w.Float64(math.Inf(1), -0.25)
	w.Float64(1, 2, 3)
	w.Text("héllo")
	w.Part32(raw("part"))
	w.Part64(raw("longer part"))
	w.Append(raw("as it is"))
	w.Bytes([]byte{1, 2})
}

func TestRoundTrip(t *testing.T) {
	w := codec.NewWriter([]byte("before"))
	every(w)
	b, err := w.Finish()
	if err != nil || !bytes.HasPrefix(b, []byte("before")) {
		t.Fatalf("%q, %v", b, err)
	}
	r := codec.NewReader(b[len("before"):], errFormat)
	r.Header("test", 3)
	got := []any{r.Bool(), r.Bool()}
	r.Zeros(1)
	got = append(got, r.Uint8(), r.Uint8(), r.Uint16(), r.Uint16(), r.Uint32(), r.Uint32())
	var u, v uint64
	r.Uint64To(&u, &v)
	f32 := make([]float32, 2)
	r.Fill32(f32)
	got = append(got, u, v, f32[0], f32[1], r.Float64(), r.Finite())
	var one float64
	r.FiniteTo(&one)
	var part raw
	got = append(got, one, r.Finites(2), r.Text(), r.Part32())
	r.Unmarshal64(&part)
	got = append(got, part, r.Bytes(8), r.Len(), r.Rest())
	want := []any{true, false, uint8(4), uint8(5), uint16(6), uint16(7), uint32(8), uint32(math.MaxUint32),
		uint64(9), uint64(math.MaxUint64), float32(1.5), float32(-2), math.Inf(1), -0.25, 1.0, []float64{2, 3},
		"héllo", []byte("part"), raw("longer part"), []byte("as it is"), 2, []byte{1, 2}}
	if g, w := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want); g != w {
		t.Errorf("got %s\nwant %s", g, w)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// The layout is little-endian, lengths stand before what they count.
func TestLayout(t *testing.T) {
	w := codec.NewWriter(nil)
	w.Header("ab", 1)
	w.Uint16(0x0102)
	w.Uint32(0x01020304)
	w.Uint64(0x0102030405060708)
	w.Float64(1)
	w.Text("x")
	w.Part64(raw("yz"))
	got, _ := w.Finish()
	want := slices.Concat([]byte("ab\x01"), []byte{2, 1}, []byte{4, 3, 2, 1}, []byte{8, 7, 6, 5, 4, 3, 2, 1},
		binary.LittleEndian.AppendUint64(nil, math.Float64bits(1)), []byte("\x01\x00\x00\x00x"), []byte("\x02\x00\x00\x00\x00\x00\x00\x00yz"))
	if !bytes.Equal(got, want) {
		t.Errorf("got % x\nwant % x", got, want)
	}
}

// refuses is a part that cannot be written.
type refuses struct{ error }

func (p refuses) AppendBinary(dst []byte) ([]byte, error) { return dst, p.error }

// A part's error stays, whatever is appended after it.
func TestWriterKeepsItsFirstError(t *testing.T) {
	w := codec.NewWriter(nil)
	w.Uint8(1)
	w.Part64(raw(nil))
	every(w)
	w.Append(refuses{errEmpty})
	w.Part32(refuses{errEmpty})
	if _, err := w.Finish(); err != errFormat {
		t.Errorf("%v, want %v", err, errFormat)
	}
}

// Each kind of wrong bytes is an error that wraps the cause, and all later fields
// are zero.
func TestReaderStopsAtItsFirstError(t *testing.T) {
	nan := binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN()))
	inf32 := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.Inf(-1))))
	huge := bytes.Repeat([]byte{255}, 16)
	for name, c := range map[string]struct {
		b    []byte
		read func(*codec.Reader)
	}{
		"magic":         {[]byte("tesd\x03"), func(r *codec.Reader) { r.Header("test", 3) }},
		"version":       {[]byte("test\x02"), func(r *codec.Reader) { r.Header("test", 3) }},
		"no version":    {[]byte("test"), func(r *codec.Reader) { r.Header("test", 3) }},
		"zeros":         {[]byte{0, 1}, func(r *codec.Reader) { r.Zeros(2) }},
		"bool":          {[]byte{2}, func(r *codec.Reader) { r.Bool() }},
		"uint8":         {nil, func(r *codec.Reader) { r.Uint8() }},
		"uint16":        {huge[:1], func(r *codec.Reader) { r.Uint16() }},
		"uint32":        {huge[:3], func(r *codec.Reader) { r.Uint32() }},
		"uint64":        {huge[:7], func(r *codec.Reader) { r.Uint64() }},
		"float64":       {huge[:7], func(r *codec.Reader) { r.Float64() }},
		"finite":        {nan, func(r *codec.Reader) { r.Finite() }},
		"fill":          {nan, func(r *codec.Reader) { r.Fill(make([]float64, 1)) }},
		"fill short":    {huge, func(r *codec.Reader) { r.Fill(make([]float64, 3)) }},
		"fill32":        {inf32, func(r *codec.Reader) { r.Fill32(make([]float32, 1)) }},
		"finites":       {nan, func(r *codec.Reader) { r.Finites(1) }},
		"finites many":  {huge, func(r *codec.Reader) { r.Finites(math.MaxUint64) }},
		"finites wrap":  {huge, func(r *codec.Reader) { r.Finites(1 << 61) }},
		"text":          {huge, func(r *codec.Reader) { r.Text() }},
		"part":          {huge, func(r *codec.Reader) { r.Part64() }},
		"bytes":         {huge, func(r *codec.Reader) { r.Bytes(17) }},
		"fits":          {huge, func(r *codec.Reader) { r.Fits(3, 8) }},
		"a part's own":  {make([]byte, 8), func(r *codec.Reader) { r.Unmarshal64(new(raw)) }},
		"the caller's":  {huge, func(r *codec.Reader) { r.Fail("no") }},
		"left at Close": {huge, func(r *codec.Reader) { _ = r.Close() }},
	} {
		r := codec.NewReader(c.b, errFormat)
		c.read(r)
		first := r.Err()
		if !errors.Is(first, errFormat) {
			t.Errorf("%s: %v", name, first)
		}
		if u, s, f := r.Uint64(), r.Text(), r.Finites(1); u != 0 || s != "" || f != nil || r.Len() != 0 || r.Fits(0, 1) {
			t.Errorf("%s: then %d, %q, %v", name, u, s, f)
		}
		r.Fail("a later one")
		if r.Err() != first || r.Close() != first {
			t.Errorf("%s: %v became %v", name, first, r.Err())
		}
	}
	r := codec.NewReader(make([]byte, 8), nil)
	r.Unmarshal64(new(raw))
	if !errors.Is(r.Err(), errEmpty) {
		t.Errorf("without a cause: %v", r.Err())
	}
}

// A length of 2⁶⁰ costs no memory.
func TestLengthsAllocateNothing(t *testing.T) {
	b := binary.LittleEndian.AppendUint64(nil, 1<<60)
	dst := make([]float64, 2)
	if n := testing.AllocsPerRun(10, func() {
		r := codec.NewReader(b, nil)
		if n := r.Uint64(); n != 1<<60 {
			t.Fatal(n)
		}
		r.Finites(1 << 60)
		r.Fill(dst)
	}); n > 8 { // the error's own
		t.Errorf("%v allocations", n)
	}
}

// FuzzReader reads fields of kinds that ops names off any bytes: it never panics,
// takes no more than there is, and stops at its first error.
func FuzzReader(f *testing.F) {
	w := codec.NewWriter(nil)
	every(w)
	b, _ := w.Finish()
	f.Add([]byte{0, 5, 5, 6, 7, 7, 1, 1, 2, 2, 3, 3, 9, 4, 4, 8, 10, 11, 12, 13}, b)
	f.Add([]byte{11, 10, 13}, bytes.Repeat([]byte{255}, 40))
	f.Fuzz(func(t *testing.T, ops, b []byte) {
		r := codec.NewReader(b, errFormat)
		for _, op := range ops {
			before := r.Err()
			switch op % 14 {
			case 0:
				r.Header("test", 3)
			case 1:
				r.Uint16()
			case 2:
				r.Uint32()
			case 3:
				r.Uint64()
			case 4:
				r.Finite()
			case 5:
				r.Bool()
			case 6:
				r.Zeros(int(op))
			case 7:
				r.Uint8()
			case 8:
				r.Finites(r.Uint64())
			case 9:
				r.Fill32(make([]float32, op))
			case 10:
				r.Text()
			case 11:
				r.Unmarshal64(new(raw))
			case 12:
				r.Fill(make([]float64, op))
			case 13:
				r.Rest()
			}
			if before != nil && r.Err() != before {
				t.Fatalf("%v became %v", before, r.Err())
			}
			if r.Len() > len(b) {
				t.Fatalf("%d bytes left of %d", r.Len(), len(b))
			}
		}
		if err := r.Close(); err != nil && !errors.Is(err, errFormat) {
			t.Fatal(err)
		}
	})
}
