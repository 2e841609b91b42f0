package page

import (
	"fmt"
	"strings"
	"unicode"
)

// Visible returns text of a stranger so that nothing in it acts unseen: a control character, and
// a character that turns the direction of writing or has no width, becomes its code point in
// brackets, as in [U+202E]. Line ends and tabs stay.
func Visible(s string) string {
	if !strings.ContainsFunc(s, unseen) && strings.ToValidUTF8(s, "") == s {
		return s
	}
	var b strings.Builder
	for _, r := range s { // what is not UTF-8 is U+FFFD
		if unseen(r) {
			fmt.Fprintf(&b, "[U+%04X]", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func unseen(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs)
}
