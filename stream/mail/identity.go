package mail

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"sync"

	"hamlet/stream"
)

// identityText bounds the text that an identity reads, in bytes without repeated white
// space. It is half of what Reduce keeps in any case.
const identityText = openingBytes / 2

// Identity returns a name for a tenant's message: 32 hexadecimal digits, the first half of
// a SHA-256. Headers show it, and a correction finds an earlier label by it. It is a hash of
//
//	the tenant                     (none is the default tenant)
//	the Message-ID                 (nothing if there is none)
//	the subject
//	the first 4 KiB of the text
//
// each after its length. A run of white space in subject and text counts as one blank, and
// white space at their ends does not count. Text is read up to 8 KiB, which Reduce keeps.
//
// So the identity of a message stays when hops add fields, when it is scored, tagged or
// reduced, and when line ends, blanks or the transfer encoding change. It changes with what
// a hop writes into subject or text, and when one adds a Message-ID that was missing.
func Identity(tenant string, m *Message) string {
	tenant = cmp.Or(tenant, stream.DefaultName)
	text := m.Text[:min(len(m.Text), openingBytes)]
	scratch := identities.Get().(*[]byte)
	b := (*scratch)[:0]
	b = appendSized(b, func(b []byte) []byte { return append(b, tenant...) })
	b = appendSized(b, func(b []byte) []byte { return append(b, m.MessageID...) })
	b = appendSized(b, func(b []byte) []byte { return appendSqueezed(b, m.Subject, len(m.Subject)) })
	b = appendSized(b, func(b []byte) []byte { return appendSqueezed(b, text, identityText) })
	sum := sha256.Sum256(b)
	*scratch = b
	identities.Put(scratch)
	return hex.EncodeToString(sum[:sha256.Size/2])
}

// IdentityOf returns the Identity of the message that Parse makes of raw. It reads less of it.
func IdentityOf(tenant string, raw []byte) string {
	s := scanners.Get().(*scanner)
	defer s.release()
	m := s.parse(raw, maxGrowth, true)
	return Identity(tenant, &m)
}

// identities are buffers for what an identity hashes: 14 KiB and a tenant's name at most, if Parse made the message.
var identities = sync.Pool{New: func() any { return new([]byte) }}

// appendSized appends the number of the bytes that add appends, and them.
func appendSized(b []byte, add func([]byte) []byte) []byte {
	n := len(b)
	b = add(append(b, 0, 0, 0, 0))
	binary.LittleEndian.PutUint32(b[n:], uint32(len(b)-n-4))
	return b
}

// appendSqueezed appends at most limit bytes of text with one blank for each run of white
// space, and none at the ends.
func appendSqueezed(dst, text []byte, limit int) []byte {
	n := len(dst)
	limit = min(limit, len(text))
	dst = slices.Grow(dst, limit+wordBytes) // the last word may reach beyond the limit
	out := dst[n : n+limit+wordBytes]
	k, before := 0, firstByte // as if a blank came before
	for k < limit && len(text) > 0 {
		x, size := eachOne*uint64(' '), wordBytes
		if len(text) >= wordBytes {
			x = loadWord(text)
		} else {
			x, size = partialWord(text, ' '), len(text)
		}
		text = text[size:]
		space := maskSpace(x)
		again := space & (space<<8 | before)
		before = space >> 56
		x, size = withoutBytes(withBlanks(x, space), again)
		storeWord(out[k:], x)
		k += size
	}
	return dst[:n+len(bytes.TrimRight(out[:min(k, limit)], " "))]
}
