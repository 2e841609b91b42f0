package mail

import (
	"bytes"
	"slices"

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
	for {
		if src = f.text(src); len(src) == 0 {
			break
		}
		if src[0] == '&' {
			src = f.reference(src, false)
			continue
		}
		switch tag := markupOf(src[1:]); tag {
		case noMarkup:
			f.dst = append(f.dst, '<')
			src = src[1:]
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
				return f.done()
			}
			src = src[end:]
		}
	}
	return f.done()
}

// markup is what a "<" begins.
type markup uint8

const (
	noMarkup    markup = iota // the "<" is text
	startTag                  // <a
	endTag                    // </a
	comment                   // <!--
	declaration               // <! or <?, or </ not before a letter
)

// markupOf returns what a "<" begins that comes before rest.
func markupOf(rest []byte) markup {
	switch {
	case len(rest) == 0:
		return noMarkup
	case isLetter(rest[0]):
		return startTag
	case rest[0] == '/' && len(rest) > 1:
		if isLetter(rest[1]) {
			return endTag
		}
		return declaration
	case rest[0] == '!':
		if bytes.HasPrefix(rest, []byte("!--")) {
			return comment
		}
		return declaration
	case rest[0] == '?':
		return declaration
	}
	return noMarkup
}

// startTag reads the tag at the start of b, writes the values of its href and src and what
// its element holds as text, and returns where the rest begins. If the tag has no ">",
// startTag writes nothing and returns 0.
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
	at++
	kind := elementOf(name)
	if kind == spacing {
		f.blank()
	}
	for _, target := range [...][]byte{href, src} {
		if len(target) > 0 {
			f.blank()
			f.unescape(target, true)
			f.blank()
		}
	}
	if kind == hidden || kind == plain {
		contents := b[at:]
		contents = contents[:findEndTag(contents, name)]
		if kind == plain {
			f.unescape(contents, false)
		}
		at += len(contents)
	}
	return at
}

// element says how an element's tag and contents are read.
type element uint8

const (
	inline  element = iota // its tag is nothing
	spacing                // its tag is a space
	hidden                 // it holds no tags, and is not text
	plain                  // it holds no tags, and is text
)

func elementOf(name []byte) element {
	switch len(name) {
	case 1, 2, 3:
		if equalFold(name, "p") || equalFold(name, "br") || equalFold(name, "td") || equalFold(name, "div") {
			return spacing
		}
	case 5, 6, 8:
		if equalFold(name, "style") || equalFold(name, "script") {
			return hidden
		}
		if equalFold(name, "title") || equalFold(name, "textarea") {
			return plain
		}
	}
	return inline
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
		if end := n + len(name); end < len(b) && bytes.EqualFold(b[n:end], name) && htmlClass[b[end]]&endsName != 0 {
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
	for at < len(b) && htmlClass[b[at]]&endsName == 0 {
		at++
	}
	return at
}

// attribute reads the attribute at position at, which is neither white space nor
// ">". next is always greater than at.
func attribute(b []byte, at int) (key, value []byte, next int) {
	start := at
	if b[at] == '=' { // a name may begin with it
		at++
	}
	for at < len(b) && htmlClass[b[at]]&endsKey == 0 {
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
	for at < len(b) && htmlClass[b[at]]&endsValue == 0 {
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

// Classes of characters within a tag.
const (
	isSpace   = 1 << iota
	endsName  // of an element: white space, "/" or ">"
	endsKey   // of an attribute: the same or "="
	endsValue // without quotes: white space or ">"
)

var htmlClass = [256]uint8{
	' ':  isSpace | endsName | endsKey | endsValue,
	'\t': isSpace | endsName | endsKey | endsValue,
	'\n': isSpace | endsName | endsKey | endsValue,
	'\f': isSpace | endsName | endsKey | endsValue,
	'\r': isSpace | endsName | endsKey | endsValue,
	'>':  endsName | endsKey | endsValue,
	'/':  endsName | endsKey,
	'=':  endsKey,
}

func skipSpace(b []byte, at int) int {
	for at < len(b) && htmlClass[b[at]]&isSpace != 0 {
		at++
	}
	return at
}

// A folder appends text with white space folded: one blank for each run, and none at the
// start. done removes the one at the end. A no-break space (&nbsp;) is white space.
type folder struct {
	dst   []byte
	start int // dst[start:] is what the folder wrote
}

// blank writes white space.
func (f *folder) blank() {
	if n := len(f.dst); n > f.start && f.dst[n-1] != ' ' {
		f.dst = append(f.dst, ' ')
	}
}

// done returns what was there before, and the folded text.
func (f *folder) done() []byte {
	if n := len(f.dst); n > f.start && f.dst[n-1] == ' ' {
		return f.dst[:n-1]
	}
	return f.dst
}

// text writes b up to the first "<" or "&", and returns the rest, which begins with it.
func (f *folder) text(b []byte) (rest []byte) { return f.fold(b, eachHigh) }

// write writes b.
func (f *folder) write(b []byte) { f.fold(b, 0) }

// fold writes b up to the first "<" or "&" if marks is eachHigh, and all of b if it is 0. It
// returns the rest.
func (f *folder) fold(b []byte, marks uint64) (rest []byte) {
	if most := len(b); cap(f.dst)-len(f.dst) < most+wordBytes { // the last word may reach beyond the text
		if n := bytes.IndexByte(b, '<'); n >= 0 && marks != 0 {
			most = n
		}
		f.dst = slices.Grow(f.dst, most+wordBytes)
	}
	out, k := f.dst[:cap(f.dst)], len(f.dst)
	before := uint64(0)
	if k == f.start || out[k-1] == ' ' {
		before = firstByte // white space comes before, or nothing
	}
	for len(b) > 0 {
		var x, stop uint64
		if len(b) >= wordBytes {
			x = loadWord(b)
		} else {
			x, stop = partialWord(b, 0), firstByte<<(8*len(b))
		}
		low := x & eachLow
		// 0xC2 begins a no-break space, and other characters.
		stop |= ^(differs(low, '<')&differs(low, '&')|x)&marks | x&^differs(low, 0xC2&0x7f)&eachHigh
		space := maskSpace(x)
		again := space & (space<<8 | before) & (stop&-stop - 1)
		x, n := withoutBytes(withBlanks(x, space), again)
		storeWord(out[k:], x)
		if stop == 0 {
			k, b, before = k+n, b[wordBytes:], space>>56
			continue
		}
		taken := firstOf(stop)
		k, b = k+n-(wordBytes-taken), b[taken:]
		if len(b) == 0 || b[0] != 0xC2 {
			break
		}
		before = (space<<8 | before) >> (8 * taken) & firstByte
		if len(b) == 1 || b[1] != 0xA0 {
			out[k] = 0xC2
			k, b, before = k+1, b[1:], 0
			continue
		}
		if b = b[2:]; before == 0 {
			out[k] = ' '
			k, before = k+1, firstByte
		}
	}
	f.dst = out[:k]
	return b
}

// unescape writes b with its character references decoded. In an attribute's value
// "?a=1&copy=2" the "&copy" is text, not a reference to ©.
func (f *folder) unescape(b []byte, attribute bool) {
	for {
		if b = f.text(b); len(b) == 0 {
			return
		}
		if b[0] == '&' {
			b = f.reference(b, attribute)
			continue
		}
		f.dst = append(f.dst, b[0])
		b = b[1:]
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

// reference writes the characters that the reference at the start of b stands for, and
// returns the rest.
func (f *folder) reference(b []byte, attribute bool) (rest []byte) {
	n := referenceLen(b)
	ref, rest := b[:n], b[n:]
	switch string(ref) { // the frequent ones need no copy
	case "&", "&amp;":
		f.dst = append(f.dst, '&')
		return rest
	case "&nbsp;":
		f.blank()
		return rest
	case "&lt;":
		f.dst = append(f.dst, '<')
		return rest
	case "&gt;":
		f.dst = append(f.dst, '>')
		return rest
	case "&quot;":
		f.dst = append(f.dst, '"')
		return rest
	}
	// In an attribute a name without ";" counts only if all of ref is the name and
	// no "=" follows.
	name := attribute && ref[n-1] != ';' && ref[1] != '#'
	if name && len(rest) > 0 && rest[0] == '=' {
		f.write(ref)
		return rest
	}
	decoded := html.UnescapeString(string(ref))
	if name && decoded[len(decoded)-1] == ref[n-1] { // only a part was decoded: the last character is still ref's
		f.write(ref)
		return rest
	}
	f.write([]byte(decoded))
	return rest
}
