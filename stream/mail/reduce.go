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
// Only where copying would lose what a model reads is something written anew: a
// field too long to keep, a text whose words lie behind 64 KiB of padding, a
// structure that alone exceeds MaxReduced.
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
	return s.summary(raw), nil
}

// An edit puts insert in the place of a range.
type edit struct {
	span
	insert []byte
}

// reduce is one pass; nothing has changed if the message passes as it is.
func (s *scanner) reduce(raw []byte) (out []byte, changed bool) {
	s.scan(raw)
	wanted := s.front()
	for limit := MaxText; limit >= minCut; limit /= 2 {
		edits := s.edits(limit, wanted)
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

// edits lists, in order, what must change so that no text is longer than
// limit, and no header of a part either; the message's own may have MaxHead.
// Of each text the wanted beginning stays, whatever it takes.
func (s *scanner) edits(limit int, wanted []beginning) []edit {
	var edits []edit
	if s.from.len() > maxFrom+1 {
		edits = append(edits, edit{s.from, append(bytes.Clone(s.fromLine()), '\n')})
	}
	gaps := s.gaps
	s.mended = 0
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
		body := s.raw[e.body.start:e.body.end]
		kept := body
		switch {
		case e.kind == textPart:
			if i < len(wanted) {
				kept = s.cutText(e, limit, wanted[i])
			} else {
				kept = cutLines(body, limit)
			}
		case e.kind == otherPart:
			kept = nil
		}
		cut := (e.kind == textPart || e.kind == otherPart) && len(kept) < len(body)
		record := e.recorded
		if cut {
			record = e.size()
		}
		// A part may have an empty line and no field; a message without a
		// field is none.
		mayRecord := e.header.len() > 0 || i > 0 && e.body.start > e.header.end
		if e.header.len() > maxHeader || cut && mayRecord {
			edits = append(edits, edit{e.header, s.header(nil, e, maxHeader, record)})
		}
		if cut {
			edits = append(edits, edit{e.body, kept})
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

func appendRecord(dst []byte, record int, newline string) []byte {
	dst = append(dst, recordField+": "...)
	dst = strconv.AppendInt(dst, int64(record), 10)
	return append(dst, newline...)
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
