package feature

import (
	"bytes"
	"strconv"
)

// A Token is a piece of H or T that people can point at: a word, a link, or a run of other
// marks such as "!!!".
type Token struct {
	Begin, End int  // its bytes
	Mark       bool // it has no byte of a word

	// Text is the token in lower case: a link's host, the word, the marks. It shares the
	// bytes of what was read.
	Text []byte

	// Where it stands: a header field's name, or one of the names below.
	Where string
}

// Where a token stands that is not in a header field.
const (
	InSubject = "subject" // also that of H
	InText    = "text"
	InLink    = "link"
	InHeader  = "header" // the token is a field's name
)

// HeadTokens appends the tokens of h, which AppendH wrote, in order.
func HeadTokens(dst []Token, h []byte) []Token {
	for at := 0; at < len(h); {
		end := len(h)
		if n := bytes.IndexByte(h[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		line := h[at:end]
		name, _, found := bytes.Cut(line, []byte{':'})
		switch {
		case bytes.HasPrefix(line, []byte("From ")):
			dst = appendTokens(dst, h, at, end, FromLine, false)
		case found:
			dst = appendTokens(dst, h, at, at+len(name), InHeader, false)
			dst = appendTokens(dst, h, at+len(name)+1, end, fieldPlace(string(name)), false)
		default: // H was cut within a name
			dst = appendTokens(dst, h, at, end, InHeader, false)
		}
		at = end
	}
	return dst
}

// fieldPlace returns where a token in a field of that name stands: the name. Names of
// fields that are also names of other places are told apart from them.
func fieldPlace(name string) string {
	switch name {
	case "", InText, InLink, InHeader:
		return InHeader + " " + strconv.Quote(name)
	}
	return name
}

// TextTokens appends the tokens of t, which m.AppendT wrote, in order.
func (m *Message) TextTokens(dst []Token, t []byte) []Token {
	begin := 0
	if m.Subject != nil {
		name, value := min(len("subject"), len(t)), min(len("subject:"), len(t))
		begin = min(len("subject: ")+len(m.Subject), len(t))
		dst = appendTokens(dst, t, 0, name, InHeader, false)
		dst = appendTokens(dst, t, value, begin, InSubject, false)
	}
	return appendTokens(dst, t, begin, len(t), InText, true)
}

// appendTokens appends the tokens of all[begin:end]. They stand where it says; with links,
// those that are a link stand in one.
func appendTokens(dst []Token, all []byte, begin, end int, where string, links bool) []Token {
	var h Hasher
	bounds := h.words(all[begin:end])
	folded := h.folded
	at := 0 // of the part that has been read
	marks := func(to int) {
		for at < to {
			if isSpace(all[begin+at]) {
				at++
				continue
			}
			from := at
			for at < to && !isSpace(all[begin+at]) {
				at++
			}
			dst = append(dst, Token{Begin: begin + from, End: begin + at, Mark: true, Text: all[begin+from : begin+at],
				Where: where})
		}
	}
	for ; len(bounds) > 0; bounds = bounds[2:] {
		from, to := int(bounds[0]), int(bounds[1])
		if from < at {
			continue // of a link
		}
		marks(from)
		word := Token{Begin: begin + from, End: begin + to, Text: folded[from:to], Where: where}
		if links {
			if host, length := link(all[begin+from:end], folded[from:to]); length > 0 {
				word.End, word.Text, word.Where = word.Begin+length, host, InLink
			}
		}
		dst = append(dst, word)
		at = word.End - begin
	}
	marks(end - begin)
	return dst
}

func isSpace(c byte) bool { return c <= ' ' || c == 0x7f }

// link returns the host and the length of the link at the start of text, whose first word
// is given; 0 if no link begins there. A link has a scheme and "://", or begins with "www.".
// It ends at white space, a control character, <, > or a double quote. Its user, host and
// port have at most maxAuthority bytes.
func link(text, word []byte) (host []byte, length int) {
	begin := 0
	if bytes.HasPrefix(text[len(word):], []byte("://")) && isScheme(word) {
		begin = len(word) + len("://")
	} else if !bytes.HasPrefix(word, []byte("www.")) {
		return nil, 0
	}
	length = begin
	for length < len(text) && !endsLink(text[length]) && !endsHost(text[length]) {
		if length++; length-begin > maxAuthority {
			return nil, 0
		}
	}
	host = text[begin:length]
	host = host[bytes.LastIndexByte(host, '@')+1:] // no user
	if n := bytes.IndexByte(host, ':'); n >= 0 && !bytes.HasPrefix(host, []byte{'['}) {
		host = host[:n]
	}
	host = bytes.ToLower(bytes.TrimRight(host, ".,;)'"))
	if len(host) == 0 {
		return nil, 0
	}
	for length < len(text) && !endsLink(text[length]) {
		length++
	}
	return host, length
}

// maxAuthority bounds the bytes of a link's user, host and port: what is no link after all
// is read once for each word in it. A host's name has at most 253.
const maxAuthority = 1 << 10

func endsLink(c byte) bool { return isSpace(c) || c == '<' || c == '>' || c == '"' }

func endsHost(c byte) bool { return c == '/' || c == '?' || c == '#' || c == '\\' }

// isScheme reports whether a word can be a scheme: letters, at most eight.
func isScheme(word []byte) bool {
	for _, c := range word {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return len(word) <= 8
}
