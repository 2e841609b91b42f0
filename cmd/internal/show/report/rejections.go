package report

import (
	"fmt"
	"io"
)

// Rejections reports on W what was rejected, or another fault that can repeat often.
// It prints the first ten errors, and their total number at the end.
type Rejections struct {
	W    io.Writer
	What string // begins each line; "rejected" if empty
	N    int    // how many so far; only Add raises it
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
