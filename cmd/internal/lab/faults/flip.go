package faults

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strconv"
)

// maxFrame bounds what is held back of a frame; larger ones pass as they come.
const maxFrame = 16 << 20

// A kafkaFlipper flips within record batches. Their CRC-32C covers all that follows it in a batch;
// nothing covers the rest of a request or a response. It reads frames of a length in 4 bytes,
// big-endian, and a body.
type kafkaFlipper struct {
	frame []byte // what has come of the present frame, its length included
	pass  int    // bytes of a frame that is too large to be held back
}

func (f *kafkaFlipper) feed(b []byte, wanted bool) (out []byte, flipped bool) {
	for len(b) > 0 {
		if f.pass > 0 {
			n := min(f.pass, len(b))
			out, b, f.pass = append(out, b[:n]...), b[n:], f.pass-n
			continue
		}
		if len(f.frame) < 4 {
			n := min(4-len(f.frame), len(b))
			f.frame, b = append(f.frame, b[:n]...), b[n:]
			continue
		}
		length := int(binary.BigEndian.Uint32(f.frame))
		if length > maxFrame {
			out, f.pass, f.frame = append(out, f.frame...), length, f.frame[:0]
			continue
		}
		n := min(4+length-len(f.frame), len(b))
		f.frame, b = append(f.frame, b[:n]...), b[n:]
		if len(f.frame) < 4+length {
			continue
		}
		if wanted && !flipped {
			flipped = flipBatch(f.frame)
		}
		out, f.frame = append(out, f.frame...), f.frame[:0]
	}
	if len(f.frame) == 4 && binary.BigEndian.Uint32(f.frame) == 0 { // an empty frame
		out, f.frame = append(out, f.frame...), f.frame[:0]
	}
	return out, flipped
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The layout of a record batch of version 2: base offset (8 bytes), length of what
// follows it (4), leader epoch (4), magic (1), CRC-32C of what follows it (4), …
const (
	batchLengthAt = 8
	batchMagicAt  = 16
	batchCRCAt    = 17
	batchDataAt   = 21
	batchHeader   = 61 // of a batch without records
)

// flipBatch flips a bit in the middle of a frame's first record batch that is whole.
// A batch is one only if its CRC is right, so that no other bytes are taken for one.
func flipBatch(frame []byte) bool {
	for at := 4; at+batchHeader < len(frame); at++ {
		if frame[at+batchMagicAt] != 2 {
			continue
		}
		end := at + batchLengthAt + 4 + int(binary.BigEndian.Uint32(frame[at+batchLengthAt:]))
		if end > len(frame) || end <= at+batchHeader {
			continue
		}
		data := frame[at+batchDataAt : end]
		if crc32.Checksum(data, castagnoli) != binary.BigEndian.Uint32(frame[at+batchCRCAt:]) {
			continue
		}
		frame[(at+batchHeader+end)/2] ^= 0x10
		return true
	}
	return false
}

// minChunk is far more than the scripts and manifests that go to Redis, and less than a
// model.
const minChunk = 32 << 10

// A redisFlipper flips within bulk strings of at least minChunk bytes: a model's chunks, named by
// their SHA-256. Nothing covers other requests and replies. It follows RESP. A line begins with its
// type; "$" and "=" are followed by as many bytes as the line says.
type redisFlipper struct {
	line []byte // what has come of the present line
	bulk int    // bytes left of the present bulk string, its line end included
	size int    // length of the present bulk string
}

func (f *redisFlipper) feed(b []byte, wanted bool) (out []byte, flipped bool) {
	rest := b
	for len(rest) > 0 {
		if f.bulk > 0 {
			n := min(f.bulk, len(rest))
			// The middle of a chunk, and not the line end behind it.
			if passed := f.size + 2 - f.bulk; wanted && !flipped && f.size >= minChunk && passed <= f.size/2 &&
				f.size/2 < passed+n {
				rest[f.size/2-passed] ^= 0x10
				flipped = true
			}
			rest, f.bulk = rest[n:], f.bulk-n
			continue
		}
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			f.line = append(f.line, rest...)
			break
		}
		f.line = append(f.line, rest[:end+1]...)
		rest = rest[end+1:]
		if len(f.line) > 0 && slices.Contains([]byte("$=!"), f.line[0]) {
			if n, err := strconv.Atoi(string(bytes.TrimSpace(f.line[1:]))); err == nil && n >= 0 {
				f.size, f.bulk = n, n+2
			}
		}
		f.line = f.line[:0]
	}
	return b, flipped
}
