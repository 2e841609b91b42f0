package text

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/feature"
)

// A Frozen is an expert over the text's 4-grams that never learns. A [Freezer] made its
// weights from labelled mail and rounded them to 8 bits. It holds no text, but see
// [Freezer.Freeze] for what can be inferred from it. Its methods may be called
// concurrently. MEASURED.md compares other lists.
type Frozen struct {
	bytes     []byte // as drawn below
	bits      int    // it has 2^bits slots
	scale     float64
	weights   []byte // int8 each, in units of scale; part of bytes
	ham, spam uint64
	minCount  int
}

// FrozenReads is the list that each Frozen reads. The header's words are left out: they
// hold the names and addresses of sender and recipients.
var FrozenReads = text4Grams

// A Frozen's bytes, little endian:
//
//	 0  "hamletFZ"
//	 8  uint32 version = 1
//	12  uint32 bits
//	16  float32 scale, in nats
//	20  uint32 least number of messages that have a feature with a weight
//	24  uint64 ham | uint64 spam: messages
//	40  uint64 fingerprint of the hashing
//	48  int8 × 2^bits: weight/scale, or −128: no message, or too few, had the feature
//	    uint64 xxhash64 of all before it
const (
	frozenMagic   = "hamletFZ"
	frozenVersion = 1

	frozenHeader  = 48
	frozenTrailer = 8

	frozenAbsent = 0x80 // −128

	mostScale    = 1e6 // AdaGrad's weights are a few nats
	mostMessages = 1 << 53
)

// fingerprint hashes the features of a fixed text. A table is useless where text is hashed
// differently from where it was made.
func fingerprint(bits int) uint64 {
	var v View
	FrozenReads.Read(feature.NewHasher(bits), &v, &Parts{Text: []byte(
		"Re: 100% FREE - don't miss it\nDear friend_1, it's $5.99 at www.example.com/a?b=c&d=\xe9\xff!\n\n" +
			"internationalisation-of-characteristics\x00 a bb ccc <a href=\"x\">\xc3\xa4\xc3\xb6</a> 12:30"),
	})
	var b []byte
	for _, i := range v.Index {
		b = binary.LittleEndian.AppendUint32(b, i)
	}
	return xxhash.Sum64(b)
}

// Bits returns the binary logarithm of the number of slots, FrozenReads.Bits included.
func (f *Frozen) Bits() int { return f.bits }

// Messages returns how many ham and spam f was made from, and how many messages at least had
// a feature with a weight.
func (f *Frozen) Messages() (ham, spam uint64, minCount int) { return f.ham, f.spam, f.minCount }

// Features returns the number of features with a weight.
func (f *Frozen) Features() (n int) {
	for _, q := range f.weights {
		if q != frozenAbsent {
			n++
		}
	}
	return n
}

// Bytes returns f's bytes. The caller must not change them.
func (f *Frozen) Bytes() []byte { return f.bytes }

// Score returns the log-odds of spam, in nats and within ±10, as an [AdaGrad] with these
// weights gives it to a head; 0 without features. v's indices are those of a hasher for
// Bits. The sum of weights is one of integers, so it is exact.
func (f *Frozen) Score(v *View) float64 {
	n := len(v.Index)
	if n == 0 {
		return 0
	}
	total, known := 0, 0
	for _, i := range v.Index {
		if q := f.weights[i]; q != frozenAbsent {
			total += int(int8(q))
			known++
		}
	}
	s := float64(f.scale*float64(total)) / math.Sqrt(float64(n))
	return clip(s * (float64(known+1) / float64(n+1)))
}

// Terms appends a Term for each feature of v: what it adds to Score before that is clipped.
func (f *Frozen) Terms(dst []Term, v *View) []Term {
	n, known, start := len(v.Index), 0, len(dst)
	for _, i := range v.Index {
		one := 0.0
		if q := f.weights[i]; q != frozenAbsent {
			one = f.scale * float64(int8(q)) / math.Sqrt(float64(n))
			known++
		}
		dst = append(dst, Term{one})
	}
	for k := range dst[start:] {
		dst[start+k][0] *= float64(known+1) / float64(n+1)
	}
	return dst
}

// DecodeFrozen returns the Frozen with the bytes b, of which it keeps a copy. It is an
// error if Freeze did not make b, or if it did in a version that hashes text differently.
func DecodeFrozen(b []byte) (*Frozen, error) {
	f, err := decodeFrozen(b)
	if err != nil {
		return nil, fmt.Errorf("frozen expert of %d bytes: %w", len(b), err)
	}
	return f, nil
}

func decodeFrozen(b []byte) (*Frozen, error) {
	if len(b) < frozenHeader+frozenTrailer || string(b[:8]) != frozenMagic {
		return nil, errors.New("these are not the bytes of a frozen expert")
	}
	le := binary.LittleEndian
	if v := le.Uint32(b[8:]); v != frozenVersion {
		return nil, fmt.Errorf("version %d; this program reads version %d", v, frozenVersion)
	}
	bits, scale, minCount := le.Uint32(b[12:]), math.Float32frombits(le.Uint32(b[16:])), le.Uint32(b[20:])
	ham, spam := le.Uint64(b[24:]), le.Uint64(b[32:])
	switch end := len(b) - frozenTrailer; {
	case bits < feature.MinTableBits || bits > feature.MaxTableBits:
		return nil, fmt.Errorf("2^%d slots", bits)
	case end != frozenHeader+1<<bits:
		return nil, fmt.Errorf("2^%d slots take %d bytes in all", bits, frozenHeader+1<<bits+frozenTrailer)
	case le.Uint64(b[end:]) != xxhash.Sum64(b[:end]):
		return nil, errors.New("the checksum is wrong")
	case !(scale > 0 && scale <= mostScale):
		return nil, fmt.Errorf("weights in units of %v", scale)
	case minCount < 1 || minCount > math.MaxUint16 || ham > mostMessages || spam > mostMessages:
		return nil, fmt.Errorf("%d ham and %d spam, features that at least %d have", ham, spam, minCount)
	case le.Uint64(b[40:]) != fingerprint(int(bits)):
		return nil, errors.New("another version of hamlet made it, which hashes text differently: make it again")
	}
	b = bytes.Clone(b)
	return &Frozen{
		bytes: b, bits: int(bits), scale: float64(scale), weights: b[frozenHeader : len(b)-frozenTrailer],
		ham: ham, spam: spam, minCount: int(minCount),
	}, nil
}

// A Freezer learns the weights of a [Frozen], as an [AdaGrad] of rate 1. It is not safe for
// concurrent use.
type Freezer struct {
	bits      int
	expert    *AdaGrad
	counts    []uint16 // by feature: messages that have it, at most the largest uint16
	hasher    *feature.Hasher
	view      View
	ham, spam uint64
}

// NewFreezer returns a Freezer for models with these table bits. The table has
// 2^(tableBits + FrozenReads.Bits) slots. A slot takes 10 bytes.
func NewFreezer(tableBits int) (*Freezer, error) {
	bits := tableBits + FrozenReads.Bits
	if bits < feature.MinTableBits || bits > feature.MaxTableBits {
		return nil, fmt.Errorf("frozen expert: table bits %d; %d to %d is wanted",
			tableBits, feature.MinTableBits-FrozenReads.Bits, feature.MaxTableBits-FrozenReads.Bits)
	}
	return &Freezer{
		bits: bits, hasher: feature.NewHasher(bits), counts: make([]uint16, 1<<bits),
		expert: NewAdaGrad(NewColumn(bits), AdaGradConfig{Rate: 1}),
	}, nil
}

// Learn learns a message. Each message should be learnt several times, in passes over all
// of them: MEASURED.md compares one and three. first marks the first pass, which counts.
func (f *Freezer) Learn(p *Parts, spam, first bool) {
	v := &f.view
	FrozenReads.Read(f.hasher, v, p)
	f.expert.Learn(v, f.expert.Score(v), spam, 1)
	if !first {
		return
	}
	for _, i := range v.Index {
		if f.counts[i] < math.MaxUint16 {
			f.counts[i]++
		}
	}
	if spam {
		f.spam++
	} else {
		f.ham++
	}
}

// Freeze returns the Frozen of what f has learnt. A feature that fewer than minCount
// messages have gets no weight. minCount is in 1…65,535.
//
// The result holds no text, but it is a statistic of the mail: treat it as such. Whoever
// has the file can hash four bytes of text and read whether minCount messages or more had
// them, or others with the same hash, and whether those were rather spam or ham. A guessed
// word or name of more letters is confirmed by its 4-grams, each of which must be there;
// common letters make them be there by chance. Overlapping 4-grams can be joined to longer
// passages, with guesses at every letter. The labels of single messages are not in the file,
// but the weights of rare features tell them. A larger minCount hides what few messages
// say. It does not hide what one sender repeats in many.
func (f *Freezer) Freeze(minCount int) (*Frozen, error) {
	if minCount < 1 || minCount > math.MaxUint16 {
		return nil, fmt.Errorf("frozen expert: features that at least %d messages have; 1 to %d is wanted",
			minCount, math.MaxUint16)
	}
	le := binary.LittleEndian
	scale := f.scale(minCount)
	b := append(make([]byte, 0, frozenHeader+1<<f.bits+frozenTrailer), frozenMagic...)
	b = le.AppendUint32(b, frozenVersion)
	b = le.AppendUint32(b, uint32(f.bits))
	b = le.AppendUint32(b, math.Float32bits(scale))
	b = le.AppendUint32(b, uint32(minCount))
	b = le.AppendUint64(b, f.ham)
	b = le.AppendUint64(b, f.spam)
	b = le.AppendUint64(b, fingerprint(f.bits))
	for i, n := range f.counts {
		q := byte(frozenAbsent)
		if int(n) >= minCount {
			w, _ := f.expert.at(uint32(i))
			q = byte(int8(max(-127, min(127, math.RoundToEven(float64(w)/float64(scale))))))
		}
		b = append(b, q)
	}
	return DecodeFrozen(le.AppendUint64(b, xxhash.Sum64(b)))
}

// scale returns the unit of the weights: the largest is 127. A rounded weight is off by at
// most scale/2, and by scale/√12 in the root mean square: a hundredth of a nat. So is a
// Score, which divides the sum of n weights by √n.
func (f *Freezer) scale(minCount int) float32 {
	largest := float32(0)
	for i, n := range f.counts {
		if int(n) >= minCount {
			w, _ := f.expert.at(uint32(i))
			largest = max(largest, w, -w)
		}
	}
	if scale := largest / 127; scale > 0 {
		return scale
	}
	return 1 // every weight is 0
}
