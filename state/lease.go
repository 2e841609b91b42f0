package state

// A Lease says who is active for a model: who may save, and whether they still live. It stands
// beside the epoch in a store. The epoch alone makes saves safe; the lease makes a take-over fast.
//
// Its holder beats: Beats grows while it lives. Whoever reads the same lease several times in a
// row concludes that nobody beats any more. So no clock is compared and nothing has a time to live.
type Lease struct {
	Epoch int64 // the counter that fences saves; 0: nobody has written yet

	// Beats is 1 after the epoch was acquired and grows with each beat. 0: the lease is free.
	// [Unbeaten]: the epoch is of a program that knows no lease.
	Beats int64

	Writer string // the holder's word: random, without spaces; "" if Beats is Unbeaten or Epoch is 0

	// Saved is true where Beats is Unbeaten, and the holder has saved since this store was
	// asked last, or it is asked for the first time.
	Saved bool
}

// Unbeaten is Beats of an epoch that a program before 0.2.0 has taken: it never beats.
const Unbeaten = -1

// Free reports whether nobody holds the lease.
func (l Lease) Free() bool { return l.Beats == 0 }

// Same reports whether l was read again unchanged: nobody has beaten or saved between the two.
func (l Lease) Same(before Lease) bool {
	return !l.Saved && l.Epoch == before.Epoch && l.Beats == before.Beats && l.Writer == before.Writer
}

// Holds reports whether l, as read, is the lease that mine was acquired as.
func (l Lease) Holds(mine Lease) bool {
	return l.Epoch == mine.Epoch && l.Writer == mine.Writer && l.Beats > 0
}
