package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"hamlet/algos/model"
	"hamlet/stream"
)

// Reasons returns the contributions of inputs as the wire carries them.
func Reasons(all []model.Contribution) (reasons []stream.Reason) {
	for _, c := range all {
		reasons = append(reasons, stream.Reason(c))
	}
	return reasons
}

// Words returns the first words, at most so many, as the wire carries them.
func Words(all []model.Word, most int) (words []stream.Word) {
	for _, w := range all[:min(len(all), most)] {
		words = append(words, stream.Word{Text: ShownWord(w.Text), Where: ShownWord(w.Where), Contribution: w.Contribution,
			Shared: w.Shared})
	}
	return words
}

// ShownWord returns s as valid UTF-8 that a terminal may print, within stream.MaxWordLength
// bytes. A mail's bytes that are not UTF-8, and characters that control a terminal or the
// direction of writing, become U+FFFD.
func ShownWord(s string) string {
	const ellipsis = "…"
	s = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return utf8.RuneError
		}
		return r
	}, s)
	if len(s) <= stream.MaxWordLength {
		return s
	}
	end := stream.MaxWordLength - len(ellipsis)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
