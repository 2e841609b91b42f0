package mail

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
)

// Limits of one message. What lies beyond them is read as raw text, and
// [Message.Raw] is set.
const (
	MaxSize   = 25 << 20 // bytes of a message; common servers accept no more
	MaxDepth  = 20       // multiparts and attached messages inside one another
	MaxParts  = 1000     // parts of a message, multiparts counted as well
	MaxFields = 10000    // header fields of a message and its parts together
	MaxHead   = 64 << 10 // bytes of Message.Head, and of one header on a wire

	// maxGrowth bounds the decoded text against a faulty decoder. Neither MIME nor
	// HTML grows a hundredfold.
	maxGrowth = 100
)

var (
	// ErrTooLarge: the message has more than MaxSize bytes. Refuse it to its sender.
	ErrTooLarge = errors.New("message is larger than 25 MiB")

	// ErrEmpty: the message is white space only.
	ErrEmpty = errors.New("message is empty")
)

// A Message is what a model learns from a mail, and what [Identity] names it by. Head,
// Subject, MessageID and Text are valid UTF-8 and share no memory with the raw message.
type Message struct {
	// Head has the mbox "From " line, if there is one, and a line "name: value\n"
	// for each header field in order. The name is in lower case, the value unfolded,
	// and Subject and From are decoded (RFC 2047). It is cut at MaxHead bytes. It lacks
	// the fields that hamlet wrote, and the tag before the subject.
	Head []byte

	Subject   []byte // the decoded Subject without a tag; never nil, empty if there is none
	MessageID []byte // the Message-ID without blanks around it, the first 998 bytes; empty if there is none

	// Text has the text parts, decoded, without HTML's mark-up, joined by line ends.
	// It has the media type of every other part: "[[image/png]]".
	Text []byte

	BodyBytes   int  // bytes of the parts' bodies, before Reduce
	HTML        bool // there is a text/html part
	Parts       int  // parts that are not multiparts; 1 for a simple message
	Attachments int  // parts that are not text, or whose Content-Disposition is attachment

	Raw    bool   // something was read as raw text, or left out
	Reason string // the first reason why; empty unless Raw
}

// Parse reads a message of RFC 5322 and MIME, with or without an mbox "From " line. It
// accepts every input. It may be called concurrently.
func Parse(raw []byte) Message { return parse(raw, maxGrowth) }

func parse(raw []byte, growth int) Message {
	s := scanners.Get().(*scanner)
	defer s.release()
	m := s.parse(raw, growth, false)
	if len(s.text) > MaxText {
		s.text = nil // it is the message's: a copy would cost too much
	} else {
		m.Text = append([]byte{}, s.text...)
	}
	return m
}

// parse is Parse, but Text is the scanner's. If named, all is the scanner's, and only what an identity is made of
// is there: MessageID, Subject, and at least the first openingBytes of Text.
func (s *scanner) parse(raw []byte, growth int, named bool) Message {
	oversize := len(raw) > MaxSize
	if oversize {
		raw = raw[:MaxSize]
	}
	s.scan(raw)
	if oversize {
		s.reason = "larger than 25 MiB: the rest is missing"
	}

	var m Message
	s.readHead(&m, named)
	s.text = s.text[:0]
	budget := growth * len(raw)
	for i := range s.entities {
		e := &s.entities[i]
		if e.kind != textPart && e.kind != otherPart {
			continue
		}
		m.Parts++
		m.BodyBytes += e.size()
		if e.attachment || e.kind == otherPart {
			m.Attachments++
		}
		if n := len(s.text); n > 0 && s.text[n-1] != '\n' {
			s.text = append(s.text, '\n')
		}
		if e.kind == otherPart {
			s.text = appendPlaceholder(s.text, e.mediaType)
			continue
		}
		m.HTML = m.HTML || e.html
		s.text = s.appendText(s.text, e, s.bytes(e.body))
		if len(s.text) > budget {
			s.text = truncate(s.text, budget)
			s.fail("decoded text is more than %d times the message", growth)
			break
		}
		if named && len(s.text) >= openingBytes {
			break
		}
	}
	m.Text = s.text
	m.BodyBytes = min(m.BodyBytes, MaxSize) // more can only be forged
	m.Reason = s.reason
	m.Raw = s.reason != ""
	return m
}

// appendPlaceholder writes the media type in lower case and double brackets.
func appendPlaceholder(dst, mediaType []byte) []byte {
	dst = append(dst, "[["...)
	n := len(dst)
	dst = appendUTF8(dst, mediaType)
	lower(dst[n:])
	return append(dst, "]]"...)
}

// lower changes ASCII capitals in place. (bytes.ToLower would change other letters.)
func lower(b []byte) {
	for i, c := range b {
		b[i] = lowerCase[c]
	}
}

// lowerCase maps the capitals of ASCII to small letters, and all other bytes to themselves.
var lowerCase = func() (t [256]byte) {
	for c := range t {
		if t[c] = byte(c); 'A' <= c && c <= 'Z' {
			t[c] += 'a' - 'A'
		}
	}
	return t
}()

// fail records why something is read as raw text. The first reason stays.
func (s *scanner) fail(format string, args ...any) {
	if s.reason == "" {
		s.reason = fmt.Sprintf(format, args...)
	}
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

// maxScratch bounds the buffers that a scanner keeps.
const maxScratch = 1 << 20

// release returns the scanner to the pool, without the memory of a giant message.
func (s *scanner) release() {
	s.raw = nil
	clear(s.entities) // they point into raw
	clear(s.open)
	for _, buffer := range []*[]byte{&s.scratch, &s.converted, &s.head, &s.text} {
		if cap(*buffer) > maxScratch {
			*buffer = nil
		}
	}
	if cap(s.fields) > maxScratch/40 { // a field has 40 bytes
		s.fields = nil
	}
	scanners.Put(s)
}

func isBlank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }
