package faults

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// batch returns a record batch with n bytes of records.
func batch(random *rand.Rand, n int) []byte {
	b := make([]byte, batchHeader+n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	binary.BigEndian.PutUint32(b[batchLengthAt:], uint32(len(b)-batchLengthAt-4))
	b[batchMagicAt] = 2
	binary.BigEndian.PutUint32(b[batchCRCAt:], crc32.Checksum(b[batchDataAt:], castagnoli))
	return b
}

// frame returns parts with their length in front.
func frame(parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// feedPieces feeds b in pieces of at most n bytes, and returns what came out and how
// many flips there were. Only the first is wanted.
func feedPieces(f flipper, b []byte, n int) (out []byte, flips int) {
	for len(b) > 0 {
		piece := bytes.Clone(b[:min(n, len(b))])
		b = b[len(piece):]
		got, flipped := f.feed(piece, flips == 0)
		out = append(out, got...)
		if flipped {
			flips++
		}
	}
	return out, flips
}

// differences returns the places in which two streams of one length differ, and in how
// many bits.
func differences(t *testing.T, a, b []byte) (at []int, n int) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%d bytes became %d", len(a), len(b))
	}
	for i := range a {
		if d := bits.OnesCount8(a[i] ^ b[i]); d > 0 {
			at, n = append(at, i), n+d
		}
	}
	return at, n
}

// One bit of a batch's records is flipped, none of anything else, in whatever pieces
// the stream comes.
func TestFlipKafka(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	head := []byte("a request's header with a topic")
	broken := batch(random, 400)
	broken[100] ^= 1 // its CRC is wrong: no checksum covers it
	before := bytes.Join([][]byte{frame(), frame(head), frame(head, broken)}, nil)
	whole := batch(random, 500)
	stream := bytes.Join([][]byte{before, frame(head, whole, head), frame(head, batch(random, 300)), frame(head)}, nil)
	first := len(before) + 4 + len(head)
	for _, n := range []int{1, 3, 64, 700, len(stream)} {
		out, flips := feedPieces(&kafkaFlipper{}, stream, n)
		at, changed := differences(t, stream, out)
		if flips != 1 || changed != 1 || at[0] < first+batchHeader || at[0] >= first+len(whole) {
			t.Errorf("in pieces of %d: %d flips, %d bits at %v, want one in %d…%d", n, flips, changed, at,
				first+batchHeader, first+len(whole))
		}
		if out, flips := feedPieces(&kafkaFlipper{}, before, n); flips != 0 || !bytes.Equal(out, before) {
			t.Errorf("in pieces of %d: %d flips without a whole batch", n, flips)
		}
	}
}

// One bit of a chunk is flipped, none of a command, a key or a short string.
func TestFlipRedis(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	bulk := func(b []byte) []byte { return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(b), b) }
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	before := bytes.Join([][]byte{[]byte("*3\r\n"), bulk([]byte("SET")), bulk(noise(minChunk - 1)),
		[]byte("$-1\r\n:7\r\n+OK\r\n")}, nil)
	const size = minChunk + 5000
	chunk := bulk(noise(size))
	stream := bytes.Join([][]byte{before, chunk, bulk([]byte("NX")), []byte("-ERR no\r\n"),
		bulk(noise(2 * minChunk))}, nil)
	first := len(before) + len(chunk) - size - 2
	for _, n := range []int{1, 7, 1000, 64 << 10, len(stream)} {
		out, flips := feedPieces(&redisFlipper{}, stream, n)
		at, changed := differences(t, stream, out)
		if flips != 1 || changed != 1 || at[0] < first || at[0] >= first+size {
			t.Errorf("in pieces of %d: %d flips, %d bits at %v, want one in %d…%d", n, flips, changed, at, first,
				first+size)
		}
		if _, flips := feedPieces(&redisFlipper{}, before, n); flips != 0 {
			t.Errorf("in pieces of %d: %d flips without a chunk", n, flips)
		}
	}
}
