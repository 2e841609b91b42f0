package feature

import (
	"bytes"
	"slices"
	"strings"

	"hamlet/algos/internal/logistic"
)

// How many bytes of a message are read. Measured on the SpamAssassin mail: more
// of either costs time and gains nothing.
const (
	HeadBytes = 3000 // of H, which has no marks of filters
	TextBytes = 8000 // of T
	FactBytes = 3000 // of the stripped text, for the facts that count characters
)

// A Message is a parsed mail or a plain text. This package does not change or retain it.
type Message struct {
	// Head is the whole of H: the mbox "From " line if present, then "name: value\n" for
	// each header. Names are in lower case, values unfolded, Subject and From decoded.
	// It is empty for plain text. AppendH leaves out the marks of filters.
	Head []byte

	// Subject is the decoded subject; nil if and only if the message is plain text.
	Subject []byte

	Body      []byte // the stripped text
	BodyBytes int    // bytes of the body before stripping
	HTML      bool   // some part is HTML

	Parts, Attachments int
}

// FromLine is the mbox "From " line among the names to skip.
const FromLine = "from-line"

// AppendH appends H, the bytes of m's headers that are read: at most HeadBytes of the
// lines that are neither marks of filters nor skipped. skip has names in lower case,
// sorted. It costs one search for line ends and one copy.
func (m *Message) AppendH(dst []byte, skip []string) []byte {
	head, limit := m.Head, len(dst)+HeadBytes
	kept := 0 // head[kept:at] is to be copied
	at := 0
	for at < len(head) && len(dst)+at-kept < limit {
		end := len(head)
		if n := bytes.IndexByte(head[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		if line := head[at:end]; isMark(line) || len(skip) > 0 && skips(skip, line) {
			dst = append(dst, head[kept:at]...)
			kept = end
		}
		at = end
	}
	dst = append(dst, head[kept:at]...)
	return dst[:min(len(dst), limit)]
}

// skips reports whether the name of line's field is in skip.
func skips(skip []string, line []byte) bool {
	name, _, _ := bytes.Cut(line, []byte{':'})
	if bytes.HasPrefix(line, []byte("From ")) {
		name = []byte(FromLine)
	}
	_, found := slices.BinarySearchFunc(skip, name, func(s string, name []byte) int {
		return strings.Compare(s, string(name))
	})
	return found
}

// AppendT appends T, the bytes of m's text that are read: at most TextBytes.
func (m *Message) AppendT(dst []byte) []byte {
	end := len(dst) + TextBytes
	if m.Subject != nil {
		dst = append(dst, "subject: "...)
		dst = append(dst, m.Subject[:min(len(m.Subject), TextBytes)]...)
		dst = append(dst, "\n\n"...)
		dst = dst[:min(len(dst), end)]
	}
	return append(dst, m.Body[:min(len(m.Body), end-len(dst))]...)
}

// The facts, in the order of [Facts].
const (
	FactBodyBytes = iota
	FactTextBytes
	FactHTML
	FactParts
	FactAttachments
	FactUpper
	FactDigits
	FactSigns
	FactCount
)

// FactNames are the facts' names, in the order of [Facts].
var FactNames = [FactCount]string{
	"body bytes", "text bytes", "html", "parts", "attachments", "upper case", "digits", "exclamation and dollar signs",
}

// Facts writes m's eight facts into dst[:8]. All are of the order of 1:
//
//	(ln(1+v) − 7)/2   for v = bytes of the body, and of the stripped text
//	0 or 1            HTML
//	min(v, 3)/3       for v = parts, and attachments (a negative v counts as 0)
//	3·upper/(upper+lower+10) − ½,  5·digits/(len+10),  30·(count of ! and $)/(len+10)
//
// The last three count in the first FactBytes bytes of the stripped text; len is their
// number, upper and lower count ASCII letters. Facts panics if dst is shorter than 8. It
// costs O(FactBytes) and allocates nothing.
func Facts(dst []float64, m *Message) {
	dst = dst[:FactCount]
	text := m.Body[:min(len(m.Body), FactBytes)]
	all := counts(text)
	counter := func(k int) float64 { return float64(all >> (16 * k) & 0xffff) }
	upper, lower, digits, signs := counter(0), counter(1), counter(2), counter(3)
	length := float64(len(text)) + 10

	dst[FactBodyBytes] = (logistic.Log1p(float64(max(m.BodyBytes, 0))) - 7) / 2
	dst[FactTextBytes] = (logistic.Log1p(float64(len(m.Body))) - 7) / 2
	dst[FactHTML] = 0
	if m.HTML {
		dst[FactHTML] = 1
	}
	dst[FactParts] = float64(min(max(m.Parts, 0), 3)) / 3
	dst[FactAttachments] = float64(min(max(m.Attachments, 0), 3)) / 3
	dst[FactUpper] = 3*upper/(upper+lower+10) - 0.5
	dst[FactDigits] = 5 * digits / length
	dst[FactSigns] = 30 * signs / length
}

// countsGo adds the factCounters of text.
func countsGo(text []byte) (counts uint64) {
	for _, c := range text {
		counts += factCounters[c]
	}
	return counts
}

// factCounters maps a byte to 1 in its 16-bit counter: upper case, lower case, digits, or
// the signs ! and $. Other bytes map to 0. 16 bits are
// enough for FactBytes.
var factCounters = func() (one [256]uint64) {
	for c := range one {
		switch {
		case 'A' <= c && c <= 'Z':
			one[c] = 1
		case 'a' <= c && c <= 'z':
			one[c] = 1 << 16
		case '0' <= c && c <= '9':
			one[c] = 1 << 32
		case c == '!' || c == '$':
			one[c] = 1 << 48
		}
	}
	return one
}()
