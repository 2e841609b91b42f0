package feature

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// plainShape is the shape of text in the simplest code: first each byte's kind, then at most
// two of a run.
func plainShape(text []byte) string {
	var kinds, out strings.Builder
	for _, c := range text {
		switch {
		case strings.IndexByte("abcdefghijklmnopqrstuvwxyz", c) >= 0:
			kinds.WriteByte('a')
		case strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZ", c) >= 0:
			kinds.WriteByte('u')
		case strings.IndexByte("0123456789", c) >= 0:
			kinds.WriteByte('9')
		case c > 127:
			kinds.WriteByte('~')
		default:
			kinds.WriteByte(c)
		}
	}
	all := kinds.String()
	for i := range len(all) {
		if i < 2 || all[i] != all[i-1] || all[i] != all[i-2] {
			out.WriteByte(all[i])
		}
	}
	return out.String()
}

// The grams of a shape are those of a text that is the shape: a shape has no upper-case
// letters, which Grams would fold.
func plainShapeIndices(text []byte, n, tableBits int) []uint32 {
	return plainGramIndices([]byte(plainShape(text)), n, tableBits)
}

func TestShape(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"Call 08712300220!!!":       "uaa 99!!",
		"caller calls":              "aa aa",
		"AbAB":                      "uauu",
		"a1b22c333":                 "a9a99a99",
		"gr\xc3\xbc\xc3\x9f, $5.00": "aa~~, $9.99",
		"\x00\x00\x00":              "\x00\x00",
	} {
		dst := make([]byte, len(text)+1)
		if got := string(dst[:shape(dst, []byte(text))]); got != want {
			t.Errorf("the shape of %q is %q, want %q", text, got, want)
		}
	}
}

func TestShapesAreThoseOfThePlainWay(t *testing.T) {
	h := NewHasher(18)
	rapid.Check(t, func(t *rapid.T) {
		text, n := anyText().Draw(t, "text"), rapid.IntRange(1, 8).Draw(t, "n")
		if got, want := h.Shapes(nil, text, n), plainShapeIndices(text, n, 18); !slices.Equal(got, want) {
			t.Errorf("%d-grams of the shape of %q: %v, want %v", n, text, got, want)
		}
	})
}

// Letters and digits do not matter, their number beyond two neither; case and signs do.
func TestShapesIgnoreWhichLetters(t *testing.T) {
	h := NewHasher(18)
	a := h.Shapes(nil, []byte("Dear Bob, win $1000 now!!"), 5)
	if b := h.Shapes(nil, []byte("Yours Tim, get $55 here!!!!"), 5); !slices.Equal(a, b) || len(a) == 0 {
		t.Errorf("%v and %v of two texts of one shape", a, b)
	}
	for _, other := range []string{"DEAR Bob, win $1000 now!!", "Dear Bob, win 1000 now!!", "Dear Bob; win $1000 now!!"} {
		if b := h.Shapes(nil, []byte(other), 5); slices.Equal(sorted(a), sorted(b)) {
			t.Errorf("%q has the same features", other)
		}
	}
}
