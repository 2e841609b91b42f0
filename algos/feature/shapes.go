package feature

import (
	"fmt"
	"slices"
)

// Shapes appends the indices of the byte n-grams of text's shape, each once, in the order of
// first occurrence. The shape says which kinds of characters stand where, and not which
// characters: a lower-case letter becomes a, an upper-case letter u, a digit 9, a byte from
// 128 on ~. Other bytes stay. Of more than two equal bytes in a row two are kept. So
// "Call 08712300220!!!" has the shape "uaa 99!!". Shapes panics if n is not in [1, 8]. It
// costs O(len(text)) and allocates nothing once dst and h are large enough.
func (h *Hasher) Shapes(dst []uint32, text []byte, n int) []uint32 {
	if n < 1 || n > 8 {
		panic(fmt.Sprintf("feature: %d-grams of shapes", n))
	}
	h.folded = slices.Grow(h.folded[:0], len(text)+wordLoad)[:len(text)+wordLoad]
	if h.trace != nil {
		h.trace.locate(text)
	}
	return h.grams(dst, shape(h.folded, text), n)
}

// shapeGo writes text's shape into dst and returns its length. The shape of the first done bytes stands there
// and is k bytes long. dst is at least as long as text, plus one byte. The loop does not branch on the bytes of text.
func shapeGo(dst, text []byte, done, k int) int {
	const none = 1 << 8 // no byte
	last, before := uint32(none), uint32(none)
	if done > 1 {
		last, before = uint32(shapeByte[text[done-1]]), uint32(shapeByte[text[done-2]])
	}
	for _, c := range text[done:] {
		kind := uint32(shapeByte[c])
		dst[k] = byte(kind)
		differs := (kind ^ last) | (kind ^ before) // 0: it is the third of its kind in a row
		k += int((differs | -differs) >> 31)
		last, before = kind, last
	}
	return k
}

// shapeByte maps a byte to its shape.
var shapeByte = func() (fold [256]uint8) {
	for c := range fold {
		switch {
		case 'a' <= c && c <= 'z':
			fold[c] = 'a'
		case 'A' <= c && c <= 'Z':
			fold[c] = 'u'
		case '0' <= c && c <= '9':
			fold[c] = '9'
		case c >= 128:
			fold[c] = '~'
		default:
			fold[c] = uint8(c)
		}
	}
	return fold
}()
