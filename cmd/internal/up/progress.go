package up

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"hamlet/algos/drift"
)

// A Progress shows how a stream goes: a bar that is redrawn on a terminal, a
// line every ten seconds elsewhere.
type Progress struct {
	w        io.Writer
	bar      *progressbar.ProgressBar
	lastLine time.Time
	lastN    int
	lastAt   time.Time
	rate     float64
}

// NewProgress returns a progress on w; total is the number of events expected,
// −1 if unknown.
func NewProgress(w io.Writer, total int) *Progress {
	p := &Progress{w: w, lastAt: time.Now(), lastLine: time.Now()}
	if IsTerminal(w) {
		p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(16), progressbar.OptionShowCount(), progressbar.OptionSpinnerType(14),
			progressbar.OptionThrottle(100*time.Millisecond))
	}
	return p
}

// IsTerminal reports whether w is one.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// OnTerminal reports whether p is drawn on a terminal; nil is not.
func (p *Progress) OnTerminal() bool { return p != nil && p.bar != nil }

// Draw shows a snapshot.
func (p *Progress) Draw(s Snapshot) {
	now := time.Now()
	if d := now.Sub(p.lastAt).Seconds(); d > 0 {
		p.rate = float64(s.Learned-p.lastN) / d
	}
	p.lastN, p.lastAt = s.Learned, now
	text := fmt.Sprintf("%.0f/s  lag %d", p.rate, s.Lag)
	if s.Summary.LogLoss.Defined() {
		text += fmt.Sprintf("  log loss %.4f", float64(s.Summary.LogLoss))
	}
	if s.Summary.ROCA.Defined() {
		text += fmt.Sprintf("  1-ROCA%% %.3f", float64(s.Summary.ROCA))
	}
	text += fmt.Sprintf("  label noise %.4f", s.Epsilon)
	if s.Reading != drift.Nothing {
		text += "  ALARM: " + s.Reading.String()
	}
	if s.Dead > 0 {
		text += fmt.Sprintf("  dead letters %d", s.Dead)
	}
	switch {
	case p.bar != nil:
		p.bar.Describe(text)
		_ = p.bar.Set(s.Learned + s.Duplicates + s.Dead) // beyond the total the bar is full
	case now.Sub(p.lastLine) >= 10*time.Second:
		p.lastLine = now
		fmt.Fprintf(p.w, "%d events  %s\n", s.Learned, text)
	}
}

// Say writes a line that stays, above the bar where there is one.
func (p *Progress) Say(line string) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintln(p.w, line)
}

// Close clears the bar.
func (p *Progress) Close() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
