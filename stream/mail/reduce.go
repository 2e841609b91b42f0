package mail

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Bounds of what Reduce returns, in bytes.
const (
	MaxReduced = 900 << 10 // of a whole message; Kafka and NATS stop at 1 MiB
	MaxText    = 64 << 10  // of one text part, still encoded
	maxGap     = 4 << 10   // of a preamble or an epilogue, which no mail program shows

	// minCut is the smallest bound tried before summary gives up the message's
	// structure.
	minCut = 64

	// maxPasses bounds the passes until Reduce changes nothing; two are usually enough.
	maxPasses = 4
)

// Reduce makes a message small enough for Kafka and NATS. It cuts texts to MaxText
// each and headers to MaxHead, and removes all bodies that are not text. If the
// whole still exceeds MaxReduced, it cuts texts shorter. A message that is small
// enough is returned as it is: raw itself.
//
// A part that was cut keeps its header and gets a field X-Hamlet-Bytes with the
// former length of its body. Reduce copies bytes, except where that would lose what
// a model reads: for a field that is too long, a text behind 64 KiB of padding, and a
// structure that alone exceeds MaxReduced.
//
// Reduce(Reduce(raw)) equals Reduce(raw). The error is [ErrTooLarge] or [ErrEmpty].
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
	return s.summary(raw), nil
}

// An edit replaces a range of bytes.
type edit struct {
	span
	insert []byte
}

// reduce is one pass. changed is false if raw needs no edit.
func (s *scanner) reduce(raw []byte) (out []byte, changed bool) {
	s.scan(raw)
	openings := s.openings()
	for limit := MaxText; limit >= minCut; limit /= 2 {
		edits := s.edits(limit, openings)
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
	return s.summary(raw), true
}

// edits returns, in order, the edits that cut each text and each part's header to
// limit, but keep the openings. The message's own header may have MaxHead bytes.
func (s *scanner) edits(limit int, openings []opening) []edit {
	var edits []edit
	if s.from.len() > maxFrom+1 {
		edits = append(edits, edit{s.from, append(bytes.Clone(s.fromLine()), '\n')})
	}
	gaps := s.gaps
	s.lenientBytes = 0
	for i := range s.entities {
		e := &s.entities[i]
		for len(gaps) > 0 && gaps[0].start < e.header.start {
			edits = s.cutGap(edits, gaps[0], limit)
			gaps = gaps[1:]
		}
		maxHeader := limit
		if i == 0 {
			maxHeader = MaxHead
		}
		body := s.bytes(e.body)
		reduced := body
		switch {
		case e.kind == otherPart:
			reduced = nil
		case e.kind == textPart && i < len(openings):
			reduced = s.reduceText(e, limit, openings[i])
		case e.kind == textPart:
			reduced = cutLines(body, limit)
		}
		cut := len(reduced) < len(body)
		uncutBytes := e.uncutBytes
		if cut {
			uncutBytes = e.size()
		}
		// A message without header fields gets none.
		mayHaveField := e.header.len() > 0 || i > 0 && e.body.start > e.header.end
		if e.header.len() > maxHeader || cut && mayHaveField {
			edits = append(edits, edit{e.header, s.appendHeader(nil, e, maxHeader, uncutBytes)})
		}
		if cut {
			edits = append(edits, edit{e.body, reduced})
		}
	}
	for _, g := range gaps {
		edits = s.cutGap(edits, g, limit)
	}
	return edits
}

// cutGap bounds a preamble or an epilogue.
func (s *scanner) cutGap(edits []edit, g span, limit int) []edit {
	limit = min(limit, maxGap)
	if g.len() <= limit {
		return edits
	}
	length := len(cutLines(s.bytes(g), limit))
	return append(edits, edit{span: span{g.start + length, g.end}})
}

// cutLines returns the start of b, at most n bytes, up to a line end if one is in the
// second half: encodings and characters end there too.
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

// applyEdits returns raw with the edits, which are in order, applied.
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
