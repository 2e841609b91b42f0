package cli

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cell returns s as a terminal and a table's column take it: "-" if it is empty, and a
// replacement for what cannot be printed. Senders and clients choose names.
func Cell(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}
