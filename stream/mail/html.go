package mail

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// stripHTML appends the text of src. It drops comments, tags, styles and scripts.
// It writes the values of href and src with a space on both sides, decodes character
// references, and folds white space. Of the tags only <p, <br, <td and <div become a
// space, so that Mo<!--x-->rtgage is one word. A tag without its ">" is text. src must
// be valid UTF-8.
//
// It reads tags as the tokenizer of golang.org/x/net/html does, and the tests compare
// the two. That tokenizer is several times slower. It takes quadratic time if one tag
// with a million attributes comes before a million tags, because after each tag it
// clears its table of attribute names.
func stripHTML(dst, src []byte) []byte {
	f := folder{dst: dst, start: len(dst)}
	for len(src) > 0 {
		n, tag := nextTag(src)
		f.unescape(src[:n], false)
		if src = src[n:]; len(src) == 0 {
			break
		}
		switch tag {
		case comment:
			src = src[commentEnd(src):]
		case declaration:
			_, src, _ = bytes.Cut(src, []byte(">"))
		case startTag, endTag:
			end := 0
			if tag == startTag {
				end = f.startTag(src)
			} else {
				end = tagEnd(src)
			}
			if end == 0 { // the tag has no ">": it is text
				f.write(src)
				return f.dst
			}
			if tag == startTag {
				end += f.contents(src, end)
			}
			src = src[end:]
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
	declaration               // <! or <?, or </ not before a letter
)

// nextTag returns the position and the kind of the next markup in b, or len(b). A "<"
// that begins no markup is text.
func nextTag(b []byte) (n int, tag markup) {
	for {
		i := bytes.IndexByte(b[n:], '<')
		if i < 0 || n+i+1 == len(b) {
			return len(b), 0
		}
		n += i
		rest := b[n+1:]
		switch {
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
}

// startTag reads the tag at the start of b, writes the values of its href and src, and
// returns its end. If the tag has no ">", startTag writes nothing and returns 0.
func (f *folder) startTag(b []byte) (end int) {
	at := tagName(b, 1)
	name := b[1:at]
	var href, src []byte // of each name, the first attribute counts
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
			value = b[:0] // not nil, so that a later href is ignored
		}
		switch { // written below, once the ">" is found
		case href == nil && equalFold(key, "href"):
			href = value
		case src == nil && equalFold(key, "src"):
			src = value
		}
	}
	f.space = f.space || equalFold(name, "p") || equalFold(name, "br") || equalFold(name, "td") || equalFold(name, "div")
	for _, target := range [...][]byte{href, src} {
		if len(target) > 0 {
			f.space = true
			f.unescape(target, true)
			f.space = true
		}
	}
	return at + 1
}

// contents handles the elements whose contents hold no tags. src[:end] is the start
// tag. It drops the contents of style and script, and writes those of title and
// textarea. It returns their length, and 0 for all other elements.
func (f *folder) contents(src []byte, end int) int {
	name, rest := src[1:tagName(src, 1)], src[end:]
	switch {
	case equalFold(name, "style"), equalFold(name, "script"):
		return findEndTag(rest, name)
	case equalFold(name, "title"), equalFold(name, "textarea"):
		n := findEndTag(rest, name)
		f.unescape(rest[:n], false)
		return n
	}
	return 0
}

// findEndTag returns the position of the end tag of name in b, or len(b).
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

// tagEnd returns where the end tag at the start of b ends, or 0 if it has no ">".
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

// tagName returns where the name that starts at position at ends.
func tagName(b []byte, at int) int {
	for at < len(b) && !endsName(b[at]) {
		at++
	}
	return at
}

// attribute reads the attribute at position at, which is neither white space nor
// ">". next is always greater than at.
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

// commentEnd returns where the comment at the start of b ends: after "-->" or "--!>".
// "<!-->" and "<!--->" are whole comments.
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
		at-- // in "--->" the second dash begins the "-->"
	}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isAlphanumeric(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

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
	start int  // dst[start:] is what the folder wrote; it never begins with a space
	space bool // the next word gets a space before it
}

// write appends b with white space folded.
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

// unescape appends b with its character references decoded. In an attribute's value
// "?a=1&copy=2" the "&copy" is text, not a reference to ©.
func (f *folder) unescape(b []byte, attribute bool) {
	for {
		i := bytes.IndexByte(b, '&')
		if i < 0 {
			f.write(b)
			return
		}
		f.write(b[:i])
		n := referenceLen(b[i:])
		f.writeReference(b[i:i+n], b[i+n:], attribute)
		b = b[i+n:]
	}
}

// maxReference is longer than the longest name, &CounterClockwiseContourIntegral;
const maxReference = 40

// referenceLen returns the length of a possible character reference at the start
// of b.
func referenceLen(b []byte) int {
	n := 1
	number := len(b) > 1 && b[1] == '#'
	if number {
		n++
	}
	for n < len(b) && isAlphanumeric(b[n]) && (number || n < maxReference) {
		n++
	}
	if n < len(b) && b[n] == ';' {
		n++
	}
	return n
}

// writeReference appends the characters that ref stands for. rest is the text after ref.
func (f *folder) writeReference(ref, rest []byte, attribute bool) {
	switch string(ref) { // the frequent ones need no copy
	case "&":
		f.write(ref)
		return
	case "&nbsp;":
		f.space = true
		return
	case "&amp;":
		f.write(ref[:1])
		return
	}
	decoded := html.UnescapeString(string(ref))
	if last := ref[len(ref)-1]; attribute && last != ';' && ref[1] != '#' {
		// In an attribute a name without ";" counts only if all of ref is the name and
		// no "=" follows. If only a part was decoded, the last character is still ref's.
		if len(rest) > 0 && rest[0] == '=' || decoded[len(decoded)-1] == last {
			f.write(ref)
			return
		}
	}
	f.write([]byte(decoded))
}

// nextSpace returns the position and the size of the first white space in b. A
// no-break space (&nbsp;) is white space.
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
