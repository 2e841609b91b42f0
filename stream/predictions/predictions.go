// Package predictions is the wire form of what a model predicted before it learnt each label.
//
// A learner writes blocks of them to the topic [Topic], which has one partition. A model is a
// pure function of its log, so a learner that learns a label again, with the same configuration
// and history, writes the same prediction again. Readers drop what they have seen. Two models that
// learn one log can be compared event by event: see cmd/internal/operate/comparison.
//
//	b := predictions.Block{Model: "default", Events: stream.EventsTopic("default"), Predictions: made}
//	value, err := b.AppendBinary(nil)
//	…
//	b, err := predictions.Decode(value)
//
// # Layout
//
// A number without a width is a uvarint of encoding/binary.
//
//	┌─────────┬───────────┬────────────┬───────────┬─────┬─────┐
//	│ version │ model     │ events     │ n marks   │ run │ run │ … to the end
//	│ 1 byte  │ len bytes │ len bytes  │           │     │     │
//	└─────────┴───────────┴────────────┴───────────┴─────┴─────┘
//
//	marks  0 or 1
//	mark   0, next: the model has learnt the records before offset next
//	run    0, offset of its first event, n − 1, then n predictions
//	       ┌─────────────────┬─────────────────────────────────┐
//	       │ gap·2 + spam    │ log-odds: float32, little endian │
//	       └─────────────────┴─────────────────────────────────┘
//	gap    how many offsets lie between the previous event of the run and this one; 0 for the first
//
// The events of a run are in the order of the log. After a crash, events come again: the first of
// them begins a new run. An event takes 5 bytes if the gap is below 64, and a run some 5 more.
//
// The 0 is the partition of the events topic. Version 0.1.0 wrote other numbers for a model that
// learnt several partitions. Such a block is refused.
//
// # Rounding
//
// Log-odds z are rounded to 24 bits, which moves them by at most 2⁻²⁴|z|. A log loss falls or
// rises by at most as much: its derivative by z is −σ(−z) or σ(z). Comparisons clip z to ±13.8
// at most, so a loss moves by less than 10⁻⁶ nats. A comparison is a statement about the rounded
// predictions, so its intervals need no allowance for rounding.
package predictions

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

const (
	// version is the version of the layout.
	version = 1
	// MaxEvents bounds the predictions of a block.
	MaxEvents = 512
	// maxName bounds the names: a topic's name has at most 249 bytes.
	maxName = 249
)

// Topic is the topic of a model's predictions.
func Topic(model string) string { return "hamlet.predictions." + model }

// A Prediction is what a model predicted of one event of the log.
type Prediction struct {
	Offset  int64
	Spam    bool    // the label, which the model had not seen
	LogOdds float32 // of spam; never NaN
}

// A Block is what a record of the topic holds.
type Block struct {
	Model       string
	Events      string       // the topic that the model learns
	Predictions []Prediction // at most MaxEvents, in the order of learning; none only where Learnt is set

	// Learnt is an offset; the model has learnt all records before it. Its predictions of them are in
	// this block and earlier ones. It left out the records that have none. 0: not stated.
	Learnt int64
}

func (b *Block) validate() error {
	var errs []error
	for _, name := range []string{b.Model, b.Events} {
		if n := len(name); n == 0 || n > maxName {
			errs = append(errs, fmt.Errorf("a name has 1 to %d bytes, this one %d", maxName, n))
		}
	}
	if n := len(b.Predictions); n > MaxEvents || n == 0 && b.Learnt == 0 {
		errs = append(errs, fmt.Errorf("a block has 1 to %d predictions or says what is learnt, this one has %d",
			MaxEvents, n))
	}
	if b.Learnt < 0 {
		errs = append(errs, fmt.Errorf("offset %d, which is learnt next, is negative", b.Learnt))
	}
	for i := range b.Predictions {
		p := &b.Predictions[i]
		switch {
		case p.Offset < 0:
			errs = append(errs, fmt.Errorf("offset %d is negative", p.Offset))
		case math.IsNaN(float64(p.LogOdds)):
			errs = append(errs, fmt.Errorf("offset %d: the log-odds are NaN", p.Offset))
		}
	}
	return errors.Join(errs...)
}

// AppendBinary appends the block to dst. Equal blocks give equal bytes.
func (b *Block) AppendBinary(dst []byte) ([]byte, error) {
	if err := b.validate(); err != nil {
		return dst, fmt.Errorf("encode predictions of %.64s: %w", b.Model, err)
	}
	dst = append(dst, version)
	for _, name := range []string{b.Model, b.Events} {
		dst = binary.AppendUvarint(dst, uint64(len(name)))
		dst = append(dst, name...)
	}
	if b.Learnt == 0 {
		dst = append(dst, 0)
	} else {
		dst = binary.AppendUvarint(append(dst, 1, 0), uint64(b.Learnt))
	}
	for rest := b.Predictions; len(rest) > 0; {
		n := run(rest)
		next := rest[0].Offset
		dst = binary.AppendUvarint(append(dst, 0), uint64(next))
		dst = binary.AppendUvarint(dst, uint64(n-1))
		for i := range rest[:n] {
			p := &rest[i]
			head := uint64(p.Offset-next) << 1
			if p.Spam {
				head |= 1
			}
			dst = binary.AppendUvarint(dst, head)
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(p.LogOdds))
			next = p.Offset + 1
		}
		rest = rest[n:]
	}
	return dst, nil
}

// run returns how many of the first predictions have ascending offsets.
func run(all []Prediction) int {
	n := 1
	for n < len(all) && all[n].Offset > all[n-1].Offset {
		n++
	}
	return n
}

// Decode reads a block. It refuses bytes that AppendBinary has not written.
func Decode(from []byte) (Block, error) {
	d := decoder{rest: from}
	b := d.block()
	if d.err == nil {
		d.err = b.validate()
	}
	if d.err != nil {
		return Block{}, fmt.Errorf("decode predictions: %w", d.err)
	}
	return b, nil
}

var (
	errShort      = errors.New("they end too early")
	errPartitions = errors.New("they are of a model of several partitions, which only version 0.1.0 can compare")
)

// A decoder takes values off the front of rest. After an error it returns zeros.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(err error) {
	d.rest = nil
	if d.err == nil {
		d.err = err
	}
}

func (d *decoder) number(most uint64) uint64 {
	n, width := binary.Uvarint(d.rest)
	switch {
	case width <= 0:
		d.fail(errShort)
		return 0
	case width > 1 && d.rest[width-1] == 0:
		d.fail(errors.New("a number is longer than it need be"))
		return 0
	case n > most:
		d.fail(fmt.Errorf("%d is beyond %d", n, most))
		return 0
	}
	d.rest = d.rest[width:]
	return n
}

// partition takes the partition of the events topic.
func (d *decoder) partition() {
	if d.number(math.MaxUint64) != 0 {
		d.fail(errPartitions)
	}
}

func (d *decoder) name() string {
	n := int(d.number(maxName))
	if n > len(d.rest) {
		d.fail(errShort)
		return ""
	}
	name := string(d.rest[:n])
	d.rest = d.rest[n:]
	return name
}

func (d *decoder) block() (b Block) {
	if len(d.rest) == 0 {
		d.fail(errShort)
		return b
	}
	if v := d.rest[0]; v != version {
		d.fail(fmt.Errorf("they have layout %d: this program reads layout %d", v, version))
		return b
	}
	d.rest = d.rest[1:]
	b.Model, b.Events = d.name(), d.name()
	switch d.number(MaxEvents) {
	case 0:
	case 1:
		d.partition()
		b.Learnt = int64(d.number(math.MaxInt64))
	default:
		d.fail(errPartitions)
	}
	for len(d.rest) > 0 && d.err == nil {
		d.partition()
		next := d.number(math.MaxInt64)
		n := int(d.number(MaxEvents-1)) + 1
		if len(b.Predictions)+n > MaxEvents {
			d.fail(fmt.Errorf("there are more than %d", MaxEvents))
		}
		for i := 0; i < n && d.err == nil; i++ {
			head := d.number(math.MaxUint64)
			offset := next + head>>1 // below 2⁶⁴: both are below 2⁶³
			if offset > math.MaxInt64 || i == 0 && head>>1 != 0 {
				d.fail(errors.New("an offset is out of range"))
			}
			if len(d.rest) < 4 {
				d.fail(errShort)
				return b
			}
			z := math.Float32frombits(binary.LittleEndian.Uint32(d.rest))
			d.rest = d.rest[4:]
			b.Predictions = append(b.Predictions, Prediction{int64(offset), head&1 == 1, z})
			next = offset + 1
		}
	}
	return b
}
