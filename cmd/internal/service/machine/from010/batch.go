package from010

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/segmentio/kafka-go/compress"

	"hamlet/stream"
)

// A batch is Kafka's record batch of version 2 (KIP-98), as it stands in a segment. All integers are
// big-endian. The CRC is CRC-32C of all bytes behind it.
//
//	at  bytes
//	 0   8    first offset
//	 8   4    bytes that follow
//	12   4    epoch of the partition's leader
//	16   1    version: 2
//	17   4    CRC
//	21   2    attributes: 0–2 compression, 3 the broker set the time, 5 it is the mark of a transaction's end
//	23   4    last offset, less the first
//	27   8    first time, Unix ms
//	35   8    highest time
//	43  14    who wrote it: id, epoch, number
//	57   4    number of records
//	61        records, compressed together
//
// A record has the varints of its length, of its time and of its offset, less the first ones, and those
// of the lengths of its parts, −1 for none:
//
//	length │ 1 zero │ time │ offset │ key │ value │ number of headers │ name and value of each
//
// The client of 0.1.0 gave the marks of transactions, and records of those that were given up, as all
// others. They are in the positions of models, so they are records here too.
type batch struct {
	first      int64
	size       int64 // of all
	attributes int16
	lastDelta  int64
	firstTime  int64
	maxTime    int64
	count      int32
}

const (
	batchHeader = 61
	batchCRC    = 21 // where the bytes begin that the CRC covers
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errBroken = errors.New("the bytes are not those that were written")
	errShort  = errors.New("the file ends within a batch")
)

func (b *batch) end() int64 { return b.first + b.lastDelta + 1 }

// parseHeader reads the first bytes of a batch. There is no CRC of the first 17.
func parseHeader(h *[batchHeader]byte) (b batch, crc uint32, ok bool) {
	b = batch{
		first:      int64(binary.BigEndian.Uint64(h[0:])),
		size:       12 + int64(int32(binary.BigEndian.Uint32(h[8:]))),
		attributes: int16(binary.BigEndian.Uint16(h[21:])),
		lastDelta:  int64(int32(binary.BigEndian.Uint32(h[23:]))),
		firstTime:  int64(binary.BigEndian.Uint64(h[27:])),
		maxTime:    int64(binary.BigEndian.Uint64(h[35:])),
		count:      int32(binary.BigEndian.Uint32(h[57:])),
	}
	ok = h[16] == 2 && b.first >= 0 && b.size >= batchHeader &&
		b.lastDelta >= 0 && b.count >= 0 && int64(b.count) <= b.lastDelta+1
	return b, binary.BigEndian.Uint32(h[17:]), ok
}

// readBatch reads the header of the batch at a place of a file, and verifies its CRC. The error is
// errBroken, errShort, or one of the disk.
func readBatch(f io.ReaderAt, at, size int64) (b batch, err error) {
	var h [batchHeader]byte
	if size-at < batchHeader {
		return b, errShort
	}
	if _, err := f.ReadAt(h[:], at); err != nil {
		return b, err
	}
	b, crc, ok := parseHeader(&h)
	if !ok {
		return b, errBroken
	}
	if b.size > size-at {
		return b, errShort
	}
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(sum, io.NewSectionReader(f, at+batchCRC, b.size-batchCRC)); err != nil {
		return b, err
	}
	if sum.Sum32() != crc {
		return b, errBroken
	}
	return b, nil
}

// records calls each with the records of a batch, of which r has the bytes behind the header. It
// holds one record in memory.
func (b *batch) records(r io.Reader, each func(stream.Record) error) (err error) {
	if codec := b.attributes & 7; codec != 0 {
		c := compress.Compression(codec).Codec()
		if c == nil {
			return fmt.Errorf("%w: compression %d", errBroken, codec)
		}
		unpacked := c.NewReader(r)
		defer unpacked.Close()
		r = unpacked
	}
	in := bufio.NewReaderSize(r, 64<<10)
	last := int64(-1)
	for range b.count {
		n, err := binary.ReadVarint(in)
		if err != nil || n < 0 {
			return broken(err, "the length of a record")
		}
		body, err := io.ReadAll(io.LimitReader(in, n))
		if err != nil {
			return broken(err, "a record")
		}
		record, delta, ok := b.record(body)
		if !ok || int64(len(body)) != n || delta <= last || delta > b.lastDelta {
			return broken(nil, "a record")
		}
		last = delta
		if err := each(record); err != nil {
			return err
		}
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return broken(err, "what follows the last record")
	}
	return nil
}

// broken returns an error of bytes that are not a batch, unless it is the disk that failed: the CRC
// was read from the same bytes.
func broken(err error, what string) error {
	if err == nil {
		return fmt.Errorf("%w: %s", errBroken, what)
	}
	return fmt.Errorf("%w: %s: %w", errBroken, what, err)
}

// record reads the body of a record, which it refers to.
func (b *batch) record(body []byte) (r stream.Record, delta int64, ok bool) {
	p := parser{rest: body}
	p.take(1)
	when := b.firstTime + p.varint()
	if b.attributes&8 != 0 {
		when = b.maxTime
	}
	delta = p.varint()
	r = stream.Record{Offset: b.first + delta, Time: time.UnixMilli(when).UTC(), Key: p.field(), Value: p.field()}
	n := p.varint()
	if n < 0 || n > int64(len(p.rest)) {
		return r, 0, false
	}
	for ; n > 0 && !p.failed; n-- {
		r.Headers = append(r.Headers, stream.Header{Key: string(p.field()), Value: p.field()})
	}
	return r, delta, !p.failed && len(p.rest) == 0
}

// A parser reads from the front of bytes. After a failure it returns zeros.
type parser struct {
	rest   []byte
	failed bool // once true, it stays true
}

func (p *parser) take(n int64) []byte {
	if p.failed || n < 0 || n > int64(len(p.rest)) {
		p.failed = true
		return nil
	}
	taken := p.rest[:n:n]
	p.rest = p.rest[n:]
	return taken
}

func (p *parser) varint() int64 {
	v, n := binary.Varint(p.rest)
	if n <= 0 {
		p.failed = true
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

// field reads bytes with their length before them. None are as none that are empty.
func (p *parser) field() []byte {
	n := p.varint()
	if n == -1 {
		return nil
	}
	return p.take(n)
}
