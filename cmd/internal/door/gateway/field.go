package gateway

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"hamlet/stream"
)

// The fields that doors add. FieldTag says which tag stands before the subject, so that
// whoever reads the message again can take it off.
const (
	Field       = "X-Hamlet"
	FieldWords  = "X-Hamlet-Words"
	FieldTag    = "X-Hamlet-Tag"
	FieldFlag   = "X-Spam-Flag"
	FieldStatus = "X-Spam-Status"
)

// FieldValue returns the value of X-Hamlet:
//
//	spam; p=0.9987; lo=0.9921; hi=0.9998; model=default/0123456789ab; id=…
func FieldValue(v *stream.Verdict) string {
	value := fmt.Sprintf("%s; p=%s; lo=%s; hi=%s; model=%s/%.12s", v.Decision,
		Probability(v.P), Probability(v.Interval[0]), Probability(v.Interval[1]), v.Model.Name, v.Model.SHA256)
	if v.Identity != "" {
		value += "; id=" + v.Identity
	}
	return value
}

// Probability writes p with four decimals, or as many more as show that it is neither 0
// nor 1; below 0.0001 as a power of ten.
func Probability(p float64) string {
	switch {
	case p == 0 || p == 1:
		return strconv.FormatFloat(p, 'f', 4, 64)
	case p < 0.0001:
		return strconv.FormatFloat(p, 'e', 1, 64)
	}
	for decimals := 4; ; decimals++ {
		if text := strconv.FormatFloat(p, 'f', decimals, 64); text[0] == '0' || decimals == 17 {
			return text
		}
	}
}

// ScoreOf returns the verdict as a score that reaches required exactly where the verdict
// is spam: required + the verdict's margin, in nats.
func ScoreOf(v *stream.Verdict, required float64) float64 { return required + v.Margin }

// FormatScore writes a score with the given decimals, rounded away from required, so that
// the text is on the score's side of it.
func FormatScore(score, required float64, decimals int) string {
	scale := math.Pow10(decimals)
	rounded := math.Round(score*scale) / scale
	switch {
	case score < required && rounded >= required:
		rounded = math.Ceil(required*scale-1) / scale
	case score >= required && rounded < required:
		rounded = math.Ceil(required*scale) / scale
	}
	return strconv.FormatFloat(rounded, 'f', decimals, 64)
}

// statusValue returns the value of X-Spam-Status, as SpamAssassin's readers know it.
func statusValue(v *stream.Verdict) string {
	yes := "No"
	if v.Decision == stream.DecideSpam {
		yes = "Yes"
	}
	return fmt.Sprintf("%s, score=%s required=%s", yes,
		FormatScore(ScoreOf(v, Required), Required, 1), strconv.FormatFloat(Required, 'f', 1, 64))
}

// Ours reports whether a field of that name in a message from outside could be taken for
// one of ours. Doors remove every X-Hamlet field, and X-Spam fields where they add them.
func (m Marks) Ours(name string) bool {
	name = strings.ToLower(strings.TrimRight(name, " \t"))
	if name == "x-hamlet" || strings.HasPrefix(name, "x-hamlet-") {
		return true
	}
	if !m.SpamFields {
		return false
	}
	return name == "x-spam-flag" || name == "x-spam-status"
}
