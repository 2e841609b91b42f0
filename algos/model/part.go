package model

import (
	"encoding/binary"
	"fmt"

	"hamlet/algos/blr"
	"hamlet/algos/internal/codec"
)

// An appender appends its bytes, a decoder reads them. They keep no memory of b.
type (
	appender interface {
		AppendBinary(dst []byte) ([]byte, error)
	}
	decoder interface{ UnmarshalBinary(b []byte) error }
)

// appendPart appends a part's bytes behind their length, a uint64.
func appendPart(dst []byte, part appender) ([]byte, error) {
	at := len(dst)
	dst = append(dst, make([]byte, 8)...)
	dst, err := part.AppendBinary(dst)
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint64(dst[at:], uint64(len(dst)-at-8))
	return dst, nil
}

// cutPart returns the part at the front of b, and what is behind it.
func cutPart(b []byte) (part, rest []byte, err error) {
	if len(b) < 8 {
		return nil, nil, fmt.Errorf("%d bytes are left where a length of 8 should be", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if b = b[8:]; n > uint64(len(b)) {
		return nil, nil, fmt.Errorf("a part of %d bytes, %d are left", n, len(b))
	}
	return b[:n], b[n:], nil
}

// restoreHead reads the head at the front of b, which is to be configured as
// fresh, and returns it with what is behind it.
func restoreHead(b []byte, fresh *blr.Posterior) (*blr.Posterior, []byte, error) {
	r := codec.NewReader(b, nil)
	head := blr.Read(r, fresh)
	return head, r.Rest(), r.Err()
}
