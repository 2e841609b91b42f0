package report

import (
	"fmt"
	"io"
)

// Rejections says on standard error what was rejected: the first ten with place
// and reason, then how many there were.
type Rejections struct {
	W io.Writer
	N int
}

const shownRejections = 10

// Add notes one rejected item.
func (r *Rejections) Add(err error) {
	if r.N++; r.N <= shownRejections {
		fmt.Fprintf(r.W, "rejected: %v\n", err)
	}
	if r.N == shownRejections {
		fmt.Fprintln(r.W, "further rejections are only counted")
	}
}

// Close prints the count.
func (r *Rejections) Close() {
	if r.N > 0 {
		fmt.Fprintf(r.W, "rejected: %d in all\n", r.N)
	}
}
