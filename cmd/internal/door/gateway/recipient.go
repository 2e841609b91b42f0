package gateway

import "strings"

// canonical returns an address in small letters, without what does not change its
// mailbox. The SMTP client chooses the spelling, and must not choose the tenant by it.
// Postfix takes all of these for ann@example.org:
//
//	"ann"@example.org   a\nn@example.org   ann@example.org.   quotes, escapes, a last dot
//	@host:ann@example.org   list:ann@example.org;              a route, a group
//	<ann @example.org>   ann(comment)@example.org              blanks, comments, brackets
//	ann%example.org   example.org!ann                          without an "@"
//
// An address that needs its quotes loses them too; it remains unlike any other.
//
// What only the mail server knows is not undone: aliases, and the domain that it adds to
// an address without one.
func canonical(address string) string {
	var (
		b       strings.Builder
		quoted  bool // between quotes
		literal bool // between brackets: an IP address
		depth   int  // of comments
	)
	for i := 0; i < len(address); i++ {
		c := address[i]
		if c == '\\' && i+1 < len(address) {
			i++
			if depth == 0 {
				b.WriteByte(address[i])
			}
			continue
		}
		switch {
		case depth > 0 && c == '(', !quoted && !literal && c == '(':
			depth++
		case depth > 0:
			if c == ')' {
				depth--
			}
		case c == '"':
			quoted = !quoted
		case quoted:
			b.WriteByte(c)
		case c == '[', c == ']':
			literal = c == '['
			b.WriteByte(c)
		case literal:
			b.WriteByte(c)
		case c == ':': // the end of a route, or of a group's name
			b.Reset()
		case strings.IndexByte(" \t\r\n<>,;", c) >= 0:
		default:
			b.WriteByte(c)
		}
	}
	address = strings.TrimRight(b.String(), ".")
	if !strings.Contains(address, "@") {
		if i := strings.LastIndexByte(address, '%'); i >= 0 {
			address = address[:i] + "@" + address[i+1:]
		} else if domain, user, ok := strings.Cut(address, "!"); ok {
			address = user + "@" + domain
		}
	}
	return strings.ToLower(address)
}
