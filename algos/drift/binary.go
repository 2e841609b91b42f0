package drift

import (
	"errors"

	"hamlet/algos/internal/codec"
)

// ErrFormat is the cause of every error of UnmarshalBinary: the bytes are not an
// alarm of a version that this program reads. Take another copy.
var ErrFormat = errors.New("not the bytes of an alarm")

const (
	version = 1

	// mostSeen bounds counts of events, so that sums of them do not overflow.
	mostSeen = 1 << 53
)

// newWriter writes the first eight bytes of an alarm: four of magic, the version,
// whether it is raised, two zeros.
func newWriter(dst []byte, magic string, raised bool) *codec.Writer {
	w := codec.NewWriter(dst)
	w.Header(magic, version)
	w.Bool(raised)
	w.Zeros(2)
	return w
}

// newReader reads what newWriter wrote.
func newReader(b []byte, magic string) (r *codec.Reader, raised bool) {
	r = codec.NewReader(b, ErrFormat)
	r.Header(magic, version)
	raised = r.Bool()
	r.Zeros(2)
	return r, raised
}

// readSpans reads numbers of events, each a uint64.
func readSpans(r *codec.Reader, dst ...*int) {
	for _, d := range dst {
		v := r.Uint64()
		if v > mostEvents {
			r.Fail("a span of %d events", v)
			return
		}
		*d = int(v)
	}
}

// checkFilled fails unless cfg is valid and its defaults are filled in.
func checkFilled[C comparable](r *codec.Reader, cfg C, fill func(*C) error) {
	filled := cfg
	if err := fill(&filled); err != nil || filled != cfg {
		r.Fail("configuration %+v", cfg)
	}
}
