package state

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// A Position is a place in a log, together with a hash of the records
// before it. The zero Position is the beginning of the log.
//
// Two positions are equal exactly if the same records were read at the same offsets.
// The offset alone is not enough: a topic that was deleted and created again has the
// same offsets and other records.
type Position struct {
	Next   int64             // the next offset to read
	Chain  [sha256.Size]byte // hash chain of the records consumed
	Before [sha256.Size]byte // the chain before the last record; equal to Chain if unknown
}

// A Header is one of a record's headers, in the order of the record.
type Header struct {
	Key   string
	Value []byte
}

// Advance returns the position after the record at offset. It hashes each record,
// with its headers, onto the chain:
//
//	chain ← SHA-256( chain ‖ offset ‖ field(key) ‖ field(value) ‖ number of headers ‖
//	                 field(header key) ‖ field(header value) ‖ … )
//	field(b) = len(b) ‖ b
//
// Offset, lengths and number are 8 bytes, big-endian. A nil key or value counts as an
// empty one. Offsets may leave gaps, as compaction and transactions do. An offset
// before the position panics.
func (p Position) Advance(offset int64, key, value []byte, headers ...Header) Position {
	if offset < p.Next {
		panic(fmt.Sprintf("state: record at offset %d is before the position %d", offset, p.Next))
	}
	h := sha256.New()
	var small [1 << 10]byte // most of what is hashed is small, and a call of h for each part costs more than the parts
	b := append(small[:0], p.Chain[:]...)
	number := func(v int) { b = binary.BigEndian.AppendUint64(b, uint64(v)) }
	b = binary.BigEndian.AppendUint64(b, uint64(offset))
	number(len(key))
	b = append(b, key...)
	number(len(value))
	h.Write(b)
	h.Write(value)
	b = b[:0]
	number(len(headers))
	for i := range headers {
		number(len(headers[i].Key))
		b = append(b, headers[i].Key...)
		number(len(headers[i].Value))
		b = append(b, headers[i].Value...)
	}
	h.Write(b)
	next := Position{Next: offset + 1, Before: p.Chain}
	h.Sum(next.Chain[:0])
	return next
}

// Follows reports whether this record, at offset Next−1, is the last one read. If it is
// not, the log is another one. It is true if the last record is unknown: at the
// beginning of a log, and where Before is Chain.
func (p Position) Follows(key, value []byte, headers ...Header) bool {
	if p.Next == 0 || p.Before == p.Chain {
		return true
	}
	return Position{Chain: p.Before}.Advance(p.Next-1, key, value, headers...).Chain == p.Chain
}

// String returns the next offset and the first bytes of the chain.
func (p Position) String() string {
	return fmt.Sprintf("%d (%x)", p.Next, p.Chain[:6])
}
