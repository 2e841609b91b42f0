package up

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// A Counter shows on a terminal how many events of a file have been read;
// elsewhere it is silent.
type Counter struct {
	bar *progressbar.ProgressBar
	max int
}

// NewCounter returns a counter on w.
func NewCounter(w io.Writer) *Counter {
	if !IsTerminal(w) {
		return &Counter{}
	}
	return &Counter{bar: progressbar.NewOptions(-1, progressbar.OptionSetWriter(w), progressbar.OptionClearOnFinish(),
		progressbar.OptionShowIts(), progressbar.OptionShowCount(), progressbar.OptionSetItsString("events"),
		progressbar.OptionThrottle(100*time.Millisecond))}
}

// Set shows n of total events; a total of 0 or less is unknown.
func (c *Counter) Set(n, total int) {
	if c.bar == nil {
		return
	}
	if total > 0 && total != c.max {
		c.max = total
		c.bar.ChangeMax(total)
	}
	_ = c.bar.Set(n) // beyond the total the bar is full
}

// Close clears it.
func (c *Counter) Close() {
	if c.bar != nil {
		_ = c.bar.Clear()
	}
}
