package gateway

import (
	"cmp"
	"errors"
	"io"
	"time"

	"hamlet/stream/mail"
)

// A Pace is how fast a client must send a message, or take an answer. After Stall for a start
// its bytes must have come at MinRate in the mean, and all of them within Total. The zero Pace is
// 5 s and a minute.
type Pace struct{ Stall, Total time.Duration }

// MinRate is in bytes a second.
const MinRate = 16 << 10

// OrDefault returns p with the defaults in place of zeros.
func (p Pace) OrDefault() Pace {
	return Pace{cmp.Or(p.Stall, 5*time.Second), cmp.Or(p.Total, time.Minute)}
}

// For returns how long n bytes may take.
func (p Pace) For(n int64) time.Duration {
	return min(p.Stall+time.Duration(n)*time.Second/MinRate, p.Total)
}

// FreeBytes of each body take nothing of the budget: mail of usual size passes also while
// somebody holds all of it. They are bounded by the number of connections.
const FreeBytes = 32 << 10

// Acquire takes n bytes of the budget for as long as a door holds so many beside a
// [Body], such as a decoder's window. It returns whether they were free. [Gateway.Return]
// gives them back.
func (g *Gateway) Acquire(n int64) bool {
	if !g.room.TryAcquire(n) {
		return false
	}
	g.metrics.held.Add(float64(n))
	return true
}

// Return gives back n bytes.
func (g *Gateway) Return(n int64) {
	g.room.Release(n)
	g.metrics.held.Sub(float64(n))
}

// A Body is a message that arrives. Its buffer beyond [FreeBytes] is counted in the
// gateway's budget. It is for one goroutine.
type Body struct {
	door  *Door
	bytes []byte
	held  int64 // of the budget; beyond FreeBytes it covers cap(bytes)
	err   error // ErrTooLarge or ErrMemory, once the message is beyond either; then bytes is nil
	total int64 // bytes written
}

// NewBody returns an empty body. The caller releases it.
func (d *Door) NewBody() *Body { return &Body{door: d} }

// Write adds b. A message beyond the limit or the budget is counted and forgotten: Write
// returns the error [ErrTooLarge] or [ErrMemory] once and for all, and the door reads on
// without it.
func (b *Body) Write(p []byte) (int, error) {
	b.total += int64(len(p))
	if b.err != nil {
		return 0, b.err
	}
	if len(b.bytes)+len(p) > mail.MaxSize {
		return 0, b.drop(passedTooLarge, ErrTooLarge)
	}
	if need := len(b.bytes) + len(p); need > cap(b.bytes) && !b.grow(need) {
		return 0, b.drop(passedMemory, ErrMemory)
	}
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}

// ReadFrom adds all that r has. Beyond a limit it reads on and discards; the error is
// then ErrTooLarge or ErrMemory.
func (b *Body) ReadFrom(r io.Reader) (int64, error) {
	var buffer [16 << 10]byte
	before := b.total
	for {
		n, err := r.Read(buffer[:])
		_, _ = b.Write(buffer[:n])
		if errors.Is(err, io.EOF) {
			return b.total - before, b.err
		}
		if err != nil {
			return b.total - before, err
		}
	}
}

// grow makes room for need bytes. While it copies it holds the old and the new buffer.
func (b *Body) grow(need int) bool {
	size := max(need, 2*cap(b.bytes), 4<<10)
	size = min(size, mail.MaxSize)
	want := max(0, int64(size)-FreeBytes)
	if !b.door.Acquire(want) { // beside b.held
		return false
	}
	b.bytes = append(make([]byte, 0, size), b.bytes...)
	b.door.Return(b.held)
	b.held = want
	return true
}

func (b *Body) drop(reason string, err error) error {
	b.free()
	b.err = b.door.passed("", reason, err)
	return err
}

// Bytes returns the message so far; it is valid until Release.
func (b *Body) Bytes() []byte { return b.bytes }

// Len returns how many bytes were written, forgotten ones too.
func (b *Body) Len() int64 { return b.total }

// Err returns why the body is forgotten: ErrTooLarge, ErrMemory or nil.
func (b *Body) Err() error { return b.err }

// Release gives the memory back. The body may be written again, from its start.
func (b *Body) Release() {
	b.free()
	b.err, b.total = nil, 0
}

func (b *Body) free() {
	b.door.Return(b.held)
	b.bytes, b.held = nil, 0
}
