package report

import (
	"fmt"
	"io"
)

// Rejections says on standard error what was rejected, or what else went wrong
// many times over: the first ten with place and reason, then how many there were.
type Rejections struct {
	W    io.Writer
	What string // the word for it; "rejected" without one
	N    int
}

const shownRejections = 10

// Add notes one rejected item.
func (r *Rejections) Add(err error) {
	if r.N++; r.N <= shownRejections {
		fmt.Fprintf(r.W, "%s: %v\n", r.word(), err)
	}
	if r.N == shownRejections {
		fmt.Fprintf(r.W, "%s: further ones are only counted\n", r.word())
	}
}

// Close prints the count.
func (r *Rejections) Close() {
	if r.N > 0 {
		fmt.Fprintf(r.W, "%s: %d in all\n", r.word(), r.N)
	}
}

func (r *Rejections) word() string {
	if r.What == "" {
		return "rejected"
	}
	return r.What
}
