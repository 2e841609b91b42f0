// Package progress shows on a terminal how far a command has come: one line that
// is redrawn in place. It writes nothing anywhere else.
//
//	line := progress.NewLine(os.Stderr)
//	defer line.Clear()
//	line.Draw("1200 of 5574 events (21 %)", "2310/s")
//	line.Print("a sentence that stays above the line")
//
// The line is never wider than 79 columns or the terminal: parts that do not fit
// are left out, so put the important ones first.
package progress

import (
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// maxWidth leaves the last column of a terminal of 80 free: some terminals wrap
// the cursor there, and the next redraw would leave a stale line.
const maxWidth = 79

// clearToEnd is ECMA-48's "erase in line", from the cursor to the end.
const clearToEnd = "\x1b[K"

// IsTerminal reports whether w is one.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// A Line is redrawn in place. It is for one goroutine.
type Line struct {
	w     io.Writer
	width func() int // columns of the terminal; nil if w is none
	drawn bool       // something stands on the line; written by Draw and Clear
}

// NewLine returns a line on w.
func NewLine(w io.Writer) *Line {
	if !IsTerminal(w) {
		return &Line{w: w}
	}
	fd := int(w.(*os.File).Fd())
	return NewLineOfWidth(w, func() int {
		width, _, err := term.GetSize(fd)
		if err != nil || width <= 0 {
			return maxWidth + 1
		}
		return width
	})
}

// NewLineOfWidth returns a line on w, a terminal of so many columns.
func NewLineOfWidth(w io.Writer, columns func() int) *Line { return &Line{w: w, width: columns} }

// OnTerminal reports whether the line is drawn at all; a nil line is not.
func (l *Line) OnTerminal() bool { return l != nil && l.width != nil }

// Draw shows the parts in place of those before.
func (l *Line) Draw(parts ...string) {
	if !l.OnTerminal() {
		return
	}
	fmt.Fprintf(l.w, "\r%s%s", fit(parts, min(l.width()-1, maxWidth)), clearToEnd)
	l.drawn = true
}

// fit joins the parts that fit into so many columns. The first is cut if it must be.
func fit(parts []string, columns int) string {
	text := ""
	for i, part := range parts {
		switch n := utf8.RuneCountInString(part); {
		case i == 0 && n > columns:
			return string([]rune(part)[:max(0, columns)])
		case i == 0:
			text = part
		case utf8.RuneCountInString(text)+2+n <= columns:
			text += "  " + part
		}
	}
	return text
}

// Print writes a line of text that stays. The next Draw comes below it.
func (l *Line) Print(text string) {
	l.Clear()
	fmt.Fprintln(l.w, text)
}

// Clear erases the line.
func (l *Line) Clear() {
	if l.drawn {
		fmt.Fprintf(l.w, "\r%s", clearToEnd)
		l.drawn = false
	}
}

// redrawEvery bounds how often a Counter writes.
const redrawEvery = 100 * time.Millisecond

// A Counter shows how many events of a source have been read.
type Counter struct {
	line        *Line
	start, last time.Time
}

// NewCounter returns a counter on w.
func NewCounter(w io.Writer) *Counter { return &Counter{line: NewLine(w), start: time.Now()} }

// Set shows n of total events; a total of 0 or less is unknown.
func (c *Counter) Set(n, total int) {
	now := time.Now()
	if !c.line.OnTerminal() || now.Sub(c.last) < redrawEvery {
		return
	}
	c.last = now
	rate := float64(n) / max(now.Sub(c.start).Seconds(), 1e-3)
	c.line.Draw(Count(n, total), fmt.Sprintf("%.0f/s", rate))
}

// Close erases the counter.
func (c *Counter) Close() { c.line.Clear() }

// Count says how many of total events there are; a total of 0 or less is unknown.
func Count(n, total int) string {
	if total <= 0 {
		return fmt.Sprintf("%d events", n)
	}
	return fmt.Sprintf("%d of %d (%d %%)", n, total, min(100, 100*n/total))
}
