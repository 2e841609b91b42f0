package filelog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"hamlet/stream"
)

// A segment is a header and frames. All numbers are little endian. A CRC is CRC-32C (RFC 3720). That
// of a frame goes over the log's identity first: so nobody who only writes records, which may hold
// any bytes, can make what looks like a frame.
//
//	header  8 "hamlet" 0 1 │ 16 identity │ 8 base: the first offset │ 4 zero │ 4 CRC of the 36 bytes before
//	frame   4 CRC of all that follows │ 4 length of the body │ 8 offset │ 8 group │ body
//	body    8 time, Unix ms │ key │ number of headers │ name and value of each │ the value, to the end
//
// Within a body each key, name, value of a header and number has a uvarint of its length, or is one.
//
// A group is what was written between two fsyncs; its number is its first offset. A group begins
// after the fsync of the one before. So a frame proves that all offsets below its group were durable.
// A frame without a body is a mark. It has the offset of the next record, and only proves that.
const (
	headerSize = 40
	frameSize  = 24

	// maxBody bounds the body of a record, and so what a wrong length can have read.
	maxBody = 4 << 20
)

var (
	magic      = [8]byte{'h', 'a', 'm', 'l', 'e', 't', 0, 1}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// A seed is the CRC of a log's identity, where those of its frames begin.
type seed uint32

func seedOf(id [16]byte) seed { return seed(crc32.Checksum(id[:], castagnoli)) }

func (s seed) sum(b []byte) uint32 { return crc32.Update(uint32(s), castagnoli, b) }

// A frame is a record or a mark as it stands in a segment.
type frame struct {
	offset, group int64
	body          []byte // empty: a mark
	size          int64  // with its header
}

func appendHeader(b []byte, id [16]byte, base int64) []byte {
	b = append(append(b, magic[:]...), id[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(base))
	b = append(b, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[len(b)-headerSize+4:], castagnoli))
}

// parseHeader returns the identity and the base of a segment.
func parseHeader(b []byte) (id [16]byte, base int64, ok bool) {
	if len(b) < headerSize || [8]byte(b) != magic ||
		crc32.Checksum(b[:headerSize-4], castagnoli) != binary.LittleEndian.Uint32(b[headerSize-4:]) {
		return id, 0, false
	}
	return [16]byte(b[8:]), int64(binary.LittleEndian.Uint64(b[24:])), true
}

// appendRecord appends the frame of a record, without what seal adds.
func appendRecord(b []byte, r *stream.Record) []byte {
	at := len(b)
	b = append(b, make([]byte, frameSize)...)
	when := r.Time
	if when.IsZero() {
		when = time.Now()
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(when.UnixMilli()))
	b = appendBytes(b, r.Key)
	b = binary.AppendUvarint(b, uint64(len(r.Headers)))
	for _, h := range r.Headers {
		b = binary.AppendUvarint(b, uint64(len(h.Key)))
		b = appendBytes(append(b, h.Key...), h.Value)
	}
	b = append(b, r.Value...)
	binary.LittleEndian.PutUint32(b[at+4:], uint32(len(b)-at-frameSize))
	return b
}

func appendBytes(b, part []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// seal gives the first frame of b its place in the log, and returns the rest of b.
func (s seed) seal(b []byte, offset, group int64) (rest []byte) {
	size := frameSize + int(binary.LittleEndian.Uint32(b[4:]))
	binary.LittleEndian.PutUint64(b[8:], uint64(offset))
	binary.LittleEndian.PutUint64(b[16:], uint64(group))
	binary.LittleEndian.PutUint32(b, s.sum(b[4:size]))
	return b[size:]
}

var (
	errBroken = errors.New("the bytes are not those that were written")
	errShort  = errors.New("the file ends within it")
)

// frame returns the frame at the beginning of b. errShort: b must be longer, want bytes in all.
func (s seed) frame(b []byte) (f frame, want int, err error) {
	if len(b) < frameSize {
		return f, frameSize, errShort
	}
	length := int(binary.LittleEndian.Uint32(b[4:]))
	if length > maxBody {
		return f, 0, errBroken
	}
	size := frameSize + length
	if len(b) < size {
		return f, size, errShort
	}
	if s.sum(b[4:size]) != binary.LittleEndian.Uint32(b) {
		return f, 0, errBroken
	}
	f = frame{
		offset: int64(binary.LittleEndian.Uint64(b[8:])), group: int64(binary.LittleEndian.Uint64(b[16:])),
		body: b[frameSize:size:size], size: int64(size),
	}
	if f.offset < 0 || f.group < 0 || f.group > f.offset {
		return f, 0, errBroken
	}
	return f, 0, nil
}

// record returns the record of a frame. It refers to the frame's memory. Where its headers have the names of
// like, it shares them: most records of a log have the same.
func (f *frame) record(like []stream.Header) (r stream.Record, err error) {
	b := f.body
	if len(b) < 8 {
		return r, errBroken
	}
	r.Offset, r.Time = f.offset, time.UnixMilli(int64(binary.LittleEndian.Uint64(b))).UTC()
	b = b[8:]
	take := func() (part []byte) {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			err = errBroken
			return nil
		}
		part, b = b[k:k+int(n):k+int(n)], b[k+int(n):]
		return part
	}
	r.Key = take()
	n, k := binary.Uvarint(b)
	if err != nil || k <= 0 || n > uint64(len(b)) {
		return r, errBroken
	}
	b = b[k:]
	for i := range n {
		name, value := take(), take()
		h := stream.Header{Value: value}
		if i < uint64(len(like)) && like[i].Key == string(name) {
			h.Key = like[i].Key
		} else {
			h.Key = string(name)
		}
		if r.Headers == nil {
			r.Headers = make([]stream.Header, 0, min(n, uint64(max(len(like), 1))))
		}
		r.Headers = append(r.Headers, h)
		if err != nil {
			return r, err
		}
	}
	r.Value = b
	return r, nil
}

// find returns where the next whole frame begins in b, of an offset in (after, most], and what it is;
// −1: b has none. It tries every byte.
func (s seed) find(b []byte, after, most int64) (at int, f frame) {
	for at = 0; at+frameSize <= len(b); at++ {
		offset := int64(binary.LittleEndian.Uint64(b[at+8:]))
		if offset <= after || offset > most || int64(binary.LittleEndian.Uint64(b[at+16:])) > offset ||
			int(binary.LittleEndian.Uint32(b[at+4:])) > len(b)-at-frameSize {
			continue
		}
		if f, _, err := s.frame(b[at:]); err == nil {
			return at, f
		}
	}
	return -1, f
}

// last returns the last whole frame in b that has a record, of an offset in (after, most].
func (s seed) last(b []byte, after, most int64) (last frame, ok bool) {
	for len(b) > 0 {
		at, f := s.find(b, after, most)
		if at < 0 {
			break
		}
		if len(f.body) > 0 {
			last, ok = f, true
		}
		b = b[int64(at)+f.size:]
	}
	return last, ok
}

// A DamagedError says that bytes of the log are not those that were written, or are not there. What
// follows can be read: [Log.Skip] leaves the damage out, for ever.
type DamagedError struct {
	File     string
	At       int64 // where in the file; −1: the file is not there, or ends before
	From, To int64 // the offsets that cannot be read are From to To−1
}

func (e *DamagedError) Error() string {
	what := fmt.Sprintf("offset %d", e.From)
	if e.To > e.From+1 {
		what = fmt.Sprintf("offsets %d to %d", e.From, e.To-1)
	}
	if e.At < 0 {
		return fmt.Sprintf("damage: %s should have %s, which are not there: restore the file, or leave them out",
			e.File, what)
	}
	return fmt.Sprintf("damage: %s, byte %d: %s cannot be read: restore the file, or leave them out", e.File, e.At, what)
}

func (e *DamagedError) Unwrap() error { return stream.ErrDamaged }
