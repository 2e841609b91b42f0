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
func stripHTML(dst, src []byte) []byte {
	f := folder{dst: dst, start: len(dst)}
	z := html.NewTokenizer(bytes.NewReader(src))
	hidden := false // within style or script
	for {
		switch z.Next() {
		case html.ErrorToken: // the end: src cannot fail otherwise
			f.write(z.Raw())
			return f.dst
		case html.TextToken:
			if !hidden {
				f.write(z.Text())
			}
			hidden = false
		case html.StartTagToken, html.SelfClosingTagToken:
			name, attributes := z.TagName()
			switch string(name) {
			case "p", "br", "td", "div":
				f.space = true
			case "style", "script":
				hidden = true
			case "iframe", "noembed", "noframes", "noscript", "plaintext", "xmp":
				z.NextIsNotRawText() // what they hold has tags, too
			}
			for attributes {
				var key, value []byte
				key, value, attributes = z.TagAttr()
				if string(key) == "href" || string(key) == "src" {
					f.space = true
					f.write(value)
					f.space = true
				}
			}
		case html.EndTagToken:
			hidden = false
		}
	}
}

// A folder appends text with white space folded.
type folder struct {
	dst   []byte
	start int  // of what the folder wrote
	space bool // white space is due before the next word
}

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
