package spamd

import (
	"fmt"
	"strings"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
)

// Bounds of a report.
const (
	reportWidth   = 78 // columns, without the line end
	reportReasons = 12
	reportWords   = 12
)

// reportText returns a verdict for people, in ASCII and without empty lines: Exim folds it
// into a header field.
func reportText(v *stream.Verdict) string {
	if v == nil {
		return "hamlet: no answer, the message passes unmarked.\n"
	}
	var b strings.Builder
	line := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if len(text) > reportWidth {
			text = text[:reportWidth-3] + "..."
		}
		b.WriteString(text + "\n")
	}
	line("hamlet: %s.", v.Decision)
	line("Probability of spam %s, 90 %% interval %s to %s.", gateway.Probability(v.P),
		gateway.Probability(v.Interval[0]), gateway.Probability(v.Interval[1]))
	line("Score %s; %.1f and more is spam.",
		gateway.FormatScore(gateway.ScoreOf(v, gateway.Required), gateway.Required, 1), float64(gateway.Required))
	line("Model %s/%.12s.", ascii(v.Model.Name), ascii(v.Model.SHA256))
	if len(v.Reasons) > 0 {
		line("What moved the log-odds most (nats; above 0 towards spam; with its sd):")
	}
	for i, r := range v.Reasons {
		if i == reportReasons {
			line("  and %d more", len(v.Reasons)-i)
			break
		}
		line("%+9.2f +- %-6.2f %s", r.Contribution, r.SD, ascii(r.Name))
	}
	if len(v.Words) > 0 {
		line("The words, header fields and links that added most (* shares its slot):")
	}
	for i, w := range v.Words {
		if i == reportWords {
			line("  and %d more", len(v.Words)-i)
			break
		}
		shared := ' '
		if w.Shared {
			shared = '*'
		}
		line("%+9.2f%c %s (%s)", w.Contribution, shared, ascii(w.Text), ascii(w.Where))
	}
	return b.String()
}

// ascii returns text in printable ASCII.
func ascii(text string) string {
	quoted := fmt.Sprintf("%+q", text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
