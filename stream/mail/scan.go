package mail

import (
	"bytes"
	"slices"
)

// A scanner finds the structure of a message without copying: every entity is two byte
// ranges, its header and its body. scan sets all fields but the buffers. Later only
// lenientBytes, reason and the buffers change.
type scanner struct {
	raw      []byte
	from     span            // the mbox "From " line with its line end; may be empty
	entities []entity        // in the order of their headers
	fields   []field         // header fields of all entities, in order
	open     []openMultipart // innermost last
	gaps     []span          // preambles and epilogues, which no mail program shows
	reason   string          // the first reason for reading something as raw text

	scratch   []byte // a decoded body or header value; valid until the next one
	converted []byte // an HTML body in UTF-8; valid until the next one
	head      []byte // for Message.Head
	text      []byte // for Message.Text

	// lenientBytes counts bytes given to the lenient decoder for one message.
	lenientBytes int
}

type span struct{ start, end int }

func (p span) len() int { return p.end - p.start }

func (s *scanner) bytes(p span) []byte { return s.raw[p.start:p.end] }

// kind says what an entity's body is.
type kind uint8

const (
	textPart    kind = iota // text, or what is read as raw text
	otherPart               // anything else: an image, a program
	multiPart               // a multipart: its parts follow as entities
	messagePart             // an attached message, which follows as an entity
)

// An entity is the message itself or one of its parts (RFC 2045, section 2.4).
type entity struct {
	kind       kind
	html       bool
	attachment bool // by Content-Disposition
	rawText    bool // not decoded, because the declared structure is not there
	depth      int  // number of multiparts and messages around it
	header     span // all fields, without the empty line
	fields     span // the same as indices into scanner.fields
	body       span
	encoding   encoding
	declared   encoding // in the header; encoding is identity for raw text
	uncutBytes int      // length of the body before Reduce cut it; 0 if it did not
	mediaType  []byte   // as written, without parameters
	charset    []byte
	boundary   []byte // of a multipart
}

// size returns the length of the body before Reduce.
func (e *entity) size() int { return max(e.body.len(), e.uncutBytes) }

// An openMultipart is a multipart whose closing boundary has not come yet.
type openMultipart struct {
	boundary []byte
	entity   int  // its index in scanner.entities
	parts    int  // parts begun
	digest   bool // its parts are messages unless they declare another type
}

// maxBoundary bounds a boundary: RFC 2046 allows 70 characters, RFC 5322 lines
// of 998. maxTrail bounds the white space after it on its line.
const (
	maxBoundary = 998
	maxTrail    = 256
)

// scan reads raw in one pass. It looks for the boundaries of all open multiparts at
// once, so depth does not multiply the work.
func (s *scanner) scan(raw []byte) {
	s.raw, s.entities, s.fields = raw, s.entities[:0], s.fields[:0]
	s.open, s.gaps, s.reason, s.lenientBytes = s.open[:0], s.gaps[:0], "", 0
	pos := len(FromLine(raw))
	s.from.end = pos
	depth, digest := 0, false
	for {
		k := s.begin(pos, depth, digest)
		e := &s.entities[k]
		pos = e.body.start
		if e.kind == messagePart {
			depth, digest = depth+1, false
			continue
		}
		var more bool
		if pos, more = s.finish(k); !more {
			return
		}
		if len(s.entities) >= MaxParts {
			s.fail("more than %d parts", MaxParts)
			s.entities = append(s.entities, entity{kind: textPart, rawText: true,
				header: span{pos, pos}, fields: span{len(s.fields), len(s.fields)}, body: span{pos, len(raw)}})
			return
		}
		top := &s.open[len(s.open)-1]
		top.parts++
		depth, digest = s.entities[top.entity].depth+1, top.digest
	}
}

// begin reads the header at pos and appends its entity.
func (s *scanner) begin(pos, depth int, digest bool) int {
	s.entities = append(s.entities, entity{depth: depth})
	k := len(s.entities) - 1
	e := &s.entities[k]
	h := s.scanHeader(e, pos)
	boundary, isDigest := h.classify(e, digest)
	if h.unended && e.kind == textPart {
		s.fail("header without an empty line after it")
	}
	if h.overflow {
		s.fail("more than %d header fields", MaxFields)
	}
	switch {
	case h.missing && depth == 0:
		s.fail("no header")
		e.asRawText()
	case e.kind == multiPart && len(boundary) == 0:
		s.fail("multipart without a boundary")
		e.asRawText()
	case (e.kind == multiPart || e.kind == messagePart) && depth >= MaxDepth:
		s.fail("nested deeper than %d levels", MaxDepth)
		e.asRawText()
	case e.kind == multiPart:
		s.open = append(s.open, openMultipart{boundary: boundary, entity: k, digest: isDigest})
	}
	return k
}

func (e *entity) asRawText() {
	e.kind, e.rawText, e.html, e.encoding = textPart, true, false, identity
}

// finish finds the end of the body of entity k, and closes multiparts until another
// part begins, at pos.
func (s *scanner) finish(k int) (pos int, more bool) {
	inBody := true // then in epilogues
	pos = s.entities[k].body.start
	for {
		line, level, final, ok := s.nextBoundary(pos)
		end := len(s.raw)
		if ok {
			end = max(pos, s.beforeLineEnd(line.start))
		}
		if !inBody || s.entities[k].kind == multiPart {
			s.gaps = append(s.gaps, span{pos, end})
		}
		if inBody {
			s.entities[k].body.end = end
		}
		inBody = false
		if !ok {
			s.closeDownTo(0)
			return end, false
		}
		s.closeDownTo(level + 1)
		if !final {
			return line.end, true
		}
		s.open[level].close(s)
		s.open = s.open[:level]
		pos = line.end
	}
}

// closeDownTo closes the open multiparts from level on without a closing boundary.
func (s *scanner) closeDownTo(level int) {
	for i := len(s.open) - 1; i >= level; i-- {
		s.fail("multipart without its closing boundary")
		s.open[i].close(s)
	}
	s.open = s.open[:level]
}

// close ends a multipart. One without a part is read as raw text.
func (m *openMultipart) close(s *scanner) {
	e := &s.entities[m.entity]
	if m.parts > 0 || isBlank(s.bytes(e.body)) {
		return
	}
	s.fail("multipart without a part")
	e.asRawText()
	if i := slices.IndexFunc(s.gaps, func(g span) bool { return g.start == e.body.start }); i >= 0 {
		s.gaps = slices.Delete(s.gaps, i, i+1)
	}
}

// nextBoundary finds the next line, from the line start pos on, that is a boundary
// of an open multipart. Among equal boundaries the innermost counts.
func (s *scanner) nextBoundary(pos int) (line span, level int, final, ok bool) {
	for len(s.open) > 0 {
		if bytes.HasPrefix(s.raw[pos:], []byte("--")) {
			if level, final, ok = s.matchBoundary(pos); ok {
				return span{pos, lineEnd(s.raw, pos)}, level, final, true
			}
		}
		i := bytes.Index(s.raw[pos:], []byte("\n--"))
		if i < 0 {
			break
		}
		pos += i + 1
	}
	return span{}, 0, false, false
}

// matchBoundary compares the line at pos, which starts with two dashes, with the
// boundaries of the open multiparts.
func (s *scanner) matchBoundary(pos int) (level int, final, ok bool) {
	line := s.raw[pos+2 : min(len(s.raw), pos+2+maxBoundary+maxTrail)]
	for level = len(s.open) - 1; level >= 0; level-- {
		rest, found := bytes.CutPrefix(line, s.open[level].boundary)
		if !found {
			continue
		}
		if endsLine(rest) {
			return level, false, true
		}
		if rest, found = bytes.CutPrefix(rest, []byte("--")); found && endsLine(rest) {
			return level, true, true
		}
	}
	return 0, false, false
}

// endsLine reports whether b is blank up to its line end or its end.
func endsLine(b []byte) bool {
	for i, c := range b {
		switch c {
		case '\n':
			return true
		case ' ', '\t', '\r':
		default:
			return false
		}
		if i >= maxTrail {
			return false
		}
	}
	return true
}

// lineEnd returns the position after the line that begins at pos.
func lineEnd(b []byte, pos int) int {
	if i := bytes.IndexByte(b[pos:], '\n'); i >= 0 {
		return pos + i + 1
	}
	return len(b)
}

// beforeLineEnd returns the position before the line end that precedes pos. That
// line end belongs to the boundary (RFC 2046, section 5.1.1).
func (s *scanner) beforeLineEnd(pos int) int {
	before, found := bytes.CutSuffix(s.raw[:pos], []byte("\n"))
	if found {
		before = bytes.TrimSuffix(before, []byte("\r"))
	}
	return len(before)
}
