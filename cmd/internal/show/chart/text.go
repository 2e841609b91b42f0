package chart

import (
	"html"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

const (
	fontSize   = 11.0 // in units of the drawing
	lineHeight = 14.0
)

// textWidth estimates, from above, how wide a text is in the page's font. The widths are
// those of DejaVu Sans and Verdana, which are among the widest of usual fonts.
func textWidth(text string) float64 {
	sum := 0.0
	for _, r := range text {
		sum += em(r)
	}
	return sum * fontSize
}

// em is the width of a rune in parts of the font's size.
func em(r rune) float64 {
	switch {
	case strings.ContainsRune("ijlI.,:;|!'`", r):
		return 0.41
	case strings.ContainsRune(" ()[]ftrJ/\\-⁰¹²³⁴⁵⁶⁷⁸⁹⁻", r):
		return 0.48
	case strings.ContainsRune("mwMW%@—…", r):
		return 1.08
	case '0' <= r && r <= '9':
		return 0.64
	case unicode.In(r, unicode.Mn, unicode.Cf):
		return 0
	case unicode.IsUpper(r), strings.ContainsRune("+=<>~#×−≤≥", r):
		return 0.84
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 1.1
	}
	if r < 0x250 {
		return 0.66
	}
	return 1.1 // other scripts
}

// cut shortens a text to a width; an ellipsis shows it.
func cut(text string, room float64) string {
	if textWidth(text) <= room {
		return text
	}
	sum := textWidth("…")
	for i, r := range text {
		if sum += em(r) * fontSize; sum > room {
			return strings.TrimSpace(text[:i]) + "…"
		}
	}
	return text
}

// wrap breaks a text at spaces into at most n lines of a width. Longer text is cut.
func wrap(text string, room float64, n int) []string {
	var lines []string
	words := strings.Fields(text)
	for len(words) > 0 {
		if len(lines) == n-1 {
			return append(lines, cut(strings.Join(words, " "), room))
		}
		k := 1
		for k < len(words) && textWidth(strings.Join(words[:k+1], " ")) <= room {
			k++
		}
		lines = append(lines, cut(strings.Join(words[:k], " "), room))
		words = words[k:]
	}
	return lines
}

// escape makes a text part of XML. Characters that XML forbids become U+FFFD.
func escape(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r < 0x20 || r == 0xFFFE || r == 0xFFFF || 0xD800 <= r && r <= 0xDFFF:
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
	return html.EscapeString(text)
}
