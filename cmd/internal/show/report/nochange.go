package report

// NoChange measures the guess that an event's label is that of the event before
// it. Where labels come in runs it is hard to beat, and a figure beside which it
// is missing says little.
type NoChange struct {
	n, wrong int
	last     bool
}

// Add counts an event by its true label.
func (g *NoChange) Add(spam bool) {
	if g.n > 0 && spam != g.last {
		g.wrong++
	}
	g.n, g.last = g.n+1, spam
}

// Error returns the share of events that the guess gets wrong; the first counts
// as right. Without an event it is 0.
func (g *NoChange) Error() float64 {
	if g.n == 0 {
		return 0
	}
	return float64(g.wrong) / float64(g.n)
}
