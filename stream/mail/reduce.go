package mail

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Bounds of what Reduce lets through, in bytes.
const (
	MaxReduced = 900 << 10 // of a whole message; Kafka and NATS stop at 1 MiB
	MaxText    = 64 << 10  // of one text part, still encoded
	maxGap     = 4 << 10   // of a preamble or an epilogue, which nobody is shown

	// minCut is the smallest bound that is tried on texts, gaps and headers
	// of parts before the structure of a message is given up. Halving MaxText
	// reaches it in ten steps.
	minCut = 64

	// maxPasses bounds the search for a message that Reduce leaves alone.
	// Hardly any needs more than one cut and one look at the result.
	maxPasses = 4
)

// Reduce makes a message fit for any wire: texts are cut to MaxText each,
// headers to MaxHead, all that is not text is taken out, and if the whole still
// exceeds MaxReduced, texts are cut shorter. It works on the bytes as they are:
// what it keeps it copies, in order, and a small message of text alone is
// returned as it is, raw itself. A part that was cut or taken out keeps its
// header, and with it type and name; a further field, X-Hamlet-Bytes, says how
// long its body was. So the result is a message where raw was one.
//
// Reduce(Reduce(raw)) equals Reduce(raw), and the same raw always gives the same
// bytes. The error is [ErrTooLarge] beyond MaxSize, or [ErrEmpty].
func Reduce(raw []byte) ([]byte, error) {
	if len(raw) > MaxSize {
		return nil, fmt.Errorf("reduce mail of %d bytes: %w", len(raw), ErrTooLarge)
	}
	if isBlank(raw) {
		return nil, fmt.Errorf("reduce mail of %d bytes: %w", len(raw), ErrEmpty)
	}
	s := scanners.Get().(*scanner)
	defer s.release()

	out := raw
	for range maxPasses {
		next, changed := s.reduce(out)
		if !changed {
			return out, nil
		}
		out = next
	}
	return s.flatten(raw), nil
}

// An edit puts insert in the place of a range.
type edit struct {
	span
	insert []byte
}

// reduce is one pass; nothing has changed if the message passes as it is.
func (s *scanner) reduce(raw []byte) (out []byte, changed bool) {
	s.scan(raw)
	for limit := MaxText; limit >= minCut; limit /= 2 {
		edits := s.edits(limit)
		size := len(raw)
		for _, e := range edits {
			size += len(e.insert) - e.len()
		}
		if size > MaxReduced {
			continue
		}
		if len(edits) == 0 {
			return raw, false
		}
		return applyEdits(raw, edits, size), true
	}
	return s.flatten(raw), true
}

// edits lists, in order, what must change so that no text is longer than
// limit, and no header of a part either; the message's own may have MaxHead.
func (s *scanner) edits(limit int) []edit {
	var edits []edit
	gaps := s.gaps
	room := MaxFields - len(s.fields) // for records
	for i := range s.entities {
		e := &s.entities[i]
		for len(gaps) > 0 && gaps[0].start < e.header.start {
			edits = cutGap(edits, s.raw, gaps[0], limit)
			gaps = gaps[1:]
		}
		maxHeader := limit
		if i == 0 {
			maxHeader = MaxHead
		}
		kept := e.body.len()
		switch {
		case e.kind == textPart && kept > limit:
			kept = len(cutLines(s.raw[e.body.start:e.body.end], limit))
		case e.kind == otherPart:
			kept = 0
		}
		isLeaf := e.kind == textPart || e.kind == otherPart
		record := 0
		if isLeaf && kept < e.body.len() && e.header.len() > 0 && room > 0 {
			record = e.size()
			room--
		}
		if record > 0 || e.header.len() > maxHeader {
			edits = append(edits, edit{e.header, s.header(e, maxHeader, record)})
		}
		if isLeaf && kept < e.body.len() {
			edits = append(edits, edit{span: span{e.body.start + kept, e.body.end}})
		}
	}
	for _, g := range gaps {
		edits = cutGap(edits, s.raw, g, limit)
	}
	return edits
}

// cutGap bounds a preamble or an epilogue.
func cutGap(edits []edit, raw []byte, g span, limit int) []edit {
	limit = min(limit, maxGap)
	if g.len() <= limit {
		return edits
	}
	kept := len(cutLines(raw[g.start:g.end], limit))
	return append(edits, edit{span: span{g.start + kept, g.end}})
}

// header writes the header of e in at most limit bytes and some: fields are
// kept in order as long as there is room, but those that say how the body is to
// be read are always kept. A record above 0 is added as the last field.
func (s *scanner) header(e *entity, limit, record int) []byte {
	newline := "\n"
	if h := s.raw[e.header.start:e.header.end]; bytes.HasSuffix(h, []byte("\r\n")) {
		newline = "\r\n"
	}
	fields := s.fields[e.fields.start:e.fields.end]
	room := limit - len(recordField) - len(": 26214400\r\n")
	for _, f := range fields {
		if s.isStructural(f) {
			room -= f.end - f.start
		}
	}
	out := make([]byte, 0, min(limit, e.header.len())+maxStructural)
	for _, f := range fields {
		line := s.raw[f.start:f.end]
		if s.isStructural(f) {
			if record == 0 || !equalFold(s.name(f), "x-hamlet-bytes") {
				out = append(out, line...)
			}
			continue
		}
		if len(line) <= room {
			out = append(out, line...)
			room -= len(line)
			continue
		}
		if room > len(newline) {
			// The cut may fall within the name; then the rest is no field.
			if line = cutLines(line, room-len(newline)); fieldColon(line) >= 0 {
				out = append(out, line...)
				out = append(out, newline...)
			}
		}
		room = 0
	}
	if n := len(out); n > 0 && out[n-1] != '\n' { // the message ends within its header
		out = append(out, newline...)
	}
	if record > 0 {
		out = append(out, recordField+": "...)
		out = strconv.AppendInt(out, int64(record), 10)
		out = append(out, newline...)
	}
	return out
}

// isStructural reports whether a field says how the body is to be read.
func (s *scanner) isStructural(f field) bool {
	var h structure
	return f.colon >= 0 && f.end-f.start <= maxStructural && h.slot(s.name(f)) != nil
}

// cutLines returns the beginning of b, at most n bytes, up to a line end where
// one is near: encodings and characters end there. The line end is left out.
func cutLines(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	b = b[:n]
	if i := bytes.LastIndexByte(b, '\n'); i > n/2 {
		return bytes.TrimSuffix(b[:i], []byte("\r"))
	}
	for k := 1; k < utf8.UTFMax && k < len(b); k++ { // not within a character
		if last := b[len(b)-k:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				b = b[:len(b)-k]
			}
			break
		}
	}
	return b
}

// applyEdits returns raw with the edits, which are in order, made.
func applyEdits(raw []byte, edits []edit, size int) []byte {
	out := make([]byte, 0, size)
	at := 0
	for _, e := range edits {
		out = append(out, raw[at:e.start]...)
		out = append(out, e.insert...)
		at = e.end
	}
	return append(out, raw[at:]...)
}

// flatten gives up a structure that does not fit: a thousand parts with long
// headers. What is left is the header, without the fields that promise the
// structure, and the body as one text.
func (s *scanner) flatten(raw []byte) []byte {
	s.scan(raw)
	e := &s.entities[0]
	out := make([]byte, 0, MaxHead+MaxText)
	for _, f := range s.fields[e.fields.start:e.fields.end] {
		if line := raw[f.start:f.end]; f.colon >= 0 && line[len(line)-1] == '\n' &&
			!s.isStructural(f) && len(out)+len(line) < MaxHead {
			out = append(out, line...)
		}
	}
	out = append(out, "Content-Type: text/plain\n\n"...)
	return append(out, cutLines(raw[e.body.start:], MaxText)...)
}
