package up

import (
	"fmt"
	"io"
	"strings"
	"time"

	"hamlet/algos/drift"
	"hamlet/cmd/internal/show/progress"
)

// A progressLine shows how a stream goes: a line that is redrawn on a terminal, a
// line every ten seconds elsewhere.
type progressLine struct {
	w        io.Writer
	line     *progress.Line
	total    int // of events expected; −1 if unknown
	lastLine time.Time
	lastN    int
	lastAt   time.Time
}

// newProgress returns a progress on w; total is the number of events expected,
// −1 if unknown.
func newProgress(w io.Writer, total int) *progressLine {
	now := time.Now()
	return &progressLine{w: w, line: progress.NewLine(w), total: total, lastAt: now, lastLine: now}
}

// lineEvery is how often there is a line off a terminal.
const lineEvery = 10 * time.Second

// due reports whether there is something to draw: a snapshot costs some milliseconds, in which nothing is observed.
func (p *progressLine) due(now time.Time) bool {
	return p.line.OnTerminal() || now.Sub(p.lastLine) >= lineEvery
}

// draw shows a snapshot.
func (p *progressLine) draw(s snapshot) {
	now := time.Now()
	rate := float64(s.Learned-p.lastN) / max(now.Sub(p.lastAt).Seconds(), 1e-3)
	p.lastN, p.lastAt = s.Learned, now
	parts := append([]string{progress.Count(s.Learned+s.Duplicates+s.Dead, p.total)}, describe(s, rate)...)
	p.line.Draw(parts...)
	if !p.line.OnTerminal() && now.Sub(p.lastLine) >= lineEvery {
		p.lastLine = now
		fmt.Fprintln(p.w, strings.Join(parts, "  "))
	}
}

// describe returns the figures of s, the most important first.
func describe(s snapshot, rate float64) (parts []string) {
	add := func(format string, v any) { parts = append(parts, fmt.Sprintf(format, v)) }
	switch s.Diagnosis {
	case drift.Nothing:
	case drift.SomethingChanged:
		add("SUSPICION: %s", s.Diagnosis.String())
	default:
		add("ALARM: %s", s.Diagnosis.String())
	}
	add("%.0f/s", rate)
	add("lag %d", s.Lag)
	if s.Summary.LogLoss.Defined() {
		add("log loss %.4f", float64(s.Summary.LogLoss))
	}
	if s.Summary.ROCA.Defined() {
		add("1-ROCA%% %.3f", float64(s.Summary.ROCA))
	}
	if s.Dead > 0 {
		add("dead letters %d", s.Dead)
	}
	add("label noise %.4f", s.Epsilon)
	return parts
}
