package mail

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// stripHTML appends what src says without its mark-up. Comments, tags, style
// and script go; the targets of href and src stay, between spaces; entities
// are decoded; white space is folded to one space. Only <p, <br, <td and <div
// become a space, so that Mo<!--x-->rtgage is one word again. A tag that is
// never closed is text. src must be valid UTF-8, and so is what is appended.
//
// It reads tags as the tokenizer of golang.org/x/net/html does, the oracle in
// its tests, but works on the bytes as they lie, several times as fast, and
// remembers nothing of a tag after it: that tokenizer keeps a table of the
// attributes' names, whose clearing makes a million attributes before a
// million tags quadratic.
func stripHTML(dst, src []byte) []byte {
	f := folder{dst: dst, start: len(dst)}
	for len(src) > 0 {
		n, tag := nextTag(src)
		f.writeText(src[:n])
		if src = src[n:]; len(src) == 0 {
			break
		}
		switch tag {
		case startTag:
			end := f.startTag(src)
			if end == 0 { // never closed
				f.write(src)
				return f.dst
			}
			src = f.contents(src, end)
		case endTag:
			end := tagEnd(src)
			if end == 0 {
				f.write(src)
				return f.dst
			}
			src = src[end:]
		case comment:
			src = src[commentEnd(src):]
		case declaration:
			src = src[closeAngle(src):]
		}
	}
	return f.dst
}

// markup is what a "<" begins.
type markup uint8

const (
	startTag    markup = iota // <a
	endTag                    // </a
	comment                   // <!--
	declaration               // <!, <?, </ before what is no letter
)

// nextTag returns where in b the next mark-up begins, len(b) if nowhere. A "<"
// that begins none is text.
func nextTag(b []byte) (n int, tag markup) {
	for n < len(b) {
		i := bytes.IndexByte(b[n:], '<')
		if i < 0 {
			break
		}
		n += i
		rest := b[n+1:]
		switch {
		case len(rest) == 0:
			return len(b), 0
		case isLetter(rest[0]):
			return n, startTag
		case rest[0] == '!':
			if bytes.HasPrefix(rest, []byte("!--")) {
				return n, comment
			}
			return n, declaration
		case rest[0] == '?':
			return n, declaration
		case rest[0] == '/' && len(rest) > 1:
			if isLetter(rest[1]) {
				return n, endTag
			}
			return n, declaration
		}
		n++
	}
	return len(b), 0
}

// startTag reads the tag that b begins with, writes what it leaves, and
// returns where it ends, or 0 if it is never closed.
func (f *folder) startTag(b []byte) (end int) {
	at := tagName(b, 1)
	name := b[1:at]
	var href, src []byte // the first of each counts
	for {
		at = skipSpace(b, at)
		if at >= len(b) {
			return 0
		}
		if b[at] == '>' {
			break
		}
		var key, value []byte
		key, value, at = attribute(b, at)
		if value == nil {
			value = b[:0] // an attribute without a value is one all the same
		}
		switch {
		case href == nil && equalFold(key, "href"):
			href = value
		case src == nil && equalFold(key, "src"):
			src = value
		default:
			continue
		}
		// Written only when the tag is known to end; both are rare in one.
	}
	switch len(name) {
	case 1, 2, 3:
		f.space = f.space || equalFold(name, "p") || equalFold(name, "br") || equalFold(name, "td") || equalFold(name, "div")
	}
	for _, target := range [...][]byte{href, src} {
		if len(target) > 0 {
			f.space = true
			f.writeTarget(target)
			f.space = true
		}
	}
	return at + 1
}

// contents passes over what a start tag of src, which ends at end, hides:
// style and script; the text of title and textarea has no tags.
func (f *folder) contents(src []byte, end int) []byte {
	name := src[1:tagName(src, 1)]
	rest := src[end:]
	switch {
	case equalFold(name, "style"), equalFold(name, "script"):
		return rest[findEndTag(rest, name):]
	case equalFold(name, "title"), equalFold(name, "textarea"):
		n := findEndTag(rest, name)
		f.writeText(rest[:n])
		return rest[n:]
	}
	return rest
}

// findEndTag returns where in b the end tag of name begins, len(b) if nowhere.
func findEndTag(b, name []byte) int {
	n := 0
	for {
		i := bytes.Index(b[n:], []byte("</"))
		if i < 0 {
			return len(b)
		}
		n += i + len("</")
		if end := n + len(name); end < len(b) && bytes.EqualFold(b[n:end], name) && endsName(b[end]) {
			return n - len("</")
		}
	}
}

// tagEnd returns where the end tag that b begins with ends, or 0.
func tagEnd(b []byte) int {
	at := tagName(b, len("</"))
	for {
		at = skipSpace(b, at)
		if at >= len(b) {
			return 0
		}
		if b[at] == '>' {
			return at + 1
		}
		_, _, at = attribute(b, at)
	}
}

// tagName returns where the name that begins at position at ends.
func tagName(b []byte, at int) int {
	for at < len(b) && !endsName(b[at]) {
		at++
	}
	return at
}

// attribute reads the attribute at position at, where neither white space nor
// ">" is. It always moves on.
func attribute(b []byte, at int) (key, value []byte, next int) {
	start := at
	for at < len(b) && !endsName(b[at]) && (b[at] != '=' || at == start) {
		at++
	}
	key = b[start:at]
	if at < len(b) && b[at] == '/' {
		return key, nil, at + 1
	}
	at = skipSpace(b, at)
	if at >= len(b) || b[at] != '=' {
		return key, nil, at
	}
	at = skipSpace(b, at+1)
	if at >= len(b) || b[at] == '>' {
		return key, nil, at
	}
	if quote := b[at]; quote == '"' || quote == '\'' {
		n := bytes.IndexByte(b[at+1:], quote)
		if n < 0 {
			return key, nil, len(b)
		}
		return key, b[at+1 : at+1+n], at + n + 2
	}
	start = at
	for at < len(b) && b[at] != '>' && !isHTMLSpace(b[at]) {
		at++
	}
	return key, b[start:at], at
}

// commentEnd returns where the comment that b begins with ends: at "-->" or
// "--!>", or as early as "<!-->" and "<!--->".
func commentEnd(b []byte) int {
	at := len("<!--")
	switch {
	case bytes.HasPrefix(b[at:], []byte(">")):
		return at + 1
	case bytes.HasPrefix(b[at:], []byte("->")):
		return at + 2
	}
	for {
		i := bytes.Index(b[at:], []byte("--"))
		if i < 0 {
			return len(b)
		}
		at += i + 2
		switch rest := b[at:]; {
		case bytes.HasPrefix(rest, []byte(">")):
			return at + 1
		case bytes.HasPrefix(rest, []byte("!>")):
			return at + 2
		}
		at-- // the second dash may be the first of the next two
	}
}

// closeAngle returns where b has its first ">", after it.
func closeAngle(b []byte) int {
	if i := bytes.IndexByte(b, '>'); i >= 0 {
		return i + 1
	}
	return len(b)
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isHTMLSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'
}

func endsName(c byte) bool { return c == '>' || c == '/' || isHTMLSpace(c) }

func skipSpace(b []byte, at int) int {
	for at < len(b) && isHTMLSpace(b[at]) {
		at++
	}
	return at
}

// A folder appends text with white space folded.
type folder struct {
	dst   []byte
	start int  // of what the folder wrote
	space bool // white space is due before the next word
}

// write appends b as it is but for white space.
func (f *folder) write(b []byte) {
	for len(b) > 0 {
		n, size := nextSpace(b)
		if n > 0 {
			if f.space && len(f.dst) > f.start {
				f.dst = append(f.dst, ' ')
			}
			f.dst = append(f.dst, b[:n]...)
			f.space = false
		}
		if size > 0 {
			f.space = true
		}
		b = b[n+size:]
	}
}

// writeText appends b with its entities decoded.
func (f *folder) writeText(b []byte) { f.unescape(b, false) }

// writeTarget appends the value of an attribute. In "?a=1&copy=2" is no entity.
func (f *folder) writeTarget(b []byte) { f.unescape(b, true) }

func (f *folder) unescape(b []byte, attribute bool) {
	for {
		i := bytes.IndexByte(b, '&')
		if i < 0 {
			f.write(b)
			return
		}
		f.write(b[:i])
		n := entityLen(b[i:])
		f.writeEntity(b[i:i+n], b[i+n:], attribute)
		b = b[i+n:]
	}
}

// maxEntity is longer than the name of any entity, &CounterClockwiseContourIntegral;
const maxEntity = 40

// entityLen returns the length of what may be an entity at the start of b.
func entityLen(b []byte) int {
	n := 1
	number := len(b) > 1 && b[1] == '#'
	if number {
		n++
	}
	for n < len(b) && (isLetter(b[n]) || '0' <= b[n] && b[n] <= '9') && (number || n < maxEntity) {
		n++
	}
	if n < len(b) && b[n] == ';' {
		n++
	}
	return n
}

// writeEntity appends what e stands for; rest follows it.
func (f *folder) writeEntity(e, rest []byte, attribute bool) {
	switch string(e) {
	case "&":
		f.write(e)
		return
	case "&nbsp;":
		f.space = true
		return
	case "&amp;":
		f.write(e[:1])
		return
	}
	decoded := html.UnescapeString(string(e))
	if last := e[len(e)-1]; attribute && last != ';' && e[1] != '#' {
		// Only a whole name counts here, and not before "=". What is decoded
		// of a part of a name ends as the name does.
		if len(rest) > 0 && rest[0] == '=' || decoded[len(decoded)-1] == last {
			f.write(e)
			return
		}
	}
	f.write([]byte(decoded))
}

// nextSpace returns where the first white space of b is and its size; a
// no-break space, the &nbsp; of HTML, counts as well.
func nextSpace(b []byte) (n, size int) {
	for i, c := range b {
		switch {
		case c == ' ' || '\t' <= c && c <= '\r':
			return i, 1
		case c == 0xC2 && i+1 < len(b) && b[i+1] == 0xA0:
			return i, utf8.RuneLen('\u00A0')
		}
	}
	return len(b), 0
}
