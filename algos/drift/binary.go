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

// expect reads the configuration of an alarm and fails unless it is the one given.
func expect(r *codec.Reader, wholes []uint64, numbers []float64) {
	for _, want := range wholes {
		if got := r.Uint64(); got != want {
			r.Fail("an alarm with %d, its configuration says %d", got, want)
		}
	}
	for _, want := range numbers {
		if got := r.Float64(); got != want {
			r.Fail("an alarm with %v, its configuration says %v", got, want)
		}
	}
}
