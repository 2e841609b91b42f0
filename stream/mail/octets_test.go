package mail

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/emersion/go-message/charset"
	"golang.org/x/text/encoding/charmap"
)

// maskOf is a mask the plain way.
func maskOf(word []byte, named func(c byte) bool) (mask uint64) {
	for i, c := range word {
		if named(c) {
			mask |= 0x80 << (8 * i)
		}
	}
	return mask
}

// Each byte in each place beside each other byte: no carry crosses.
func TestMasks(t *testing.T) {
	for at := range wordBytes {
		for c := range 256 {
			for d := range 256 {
				word := bytes.Repeat([]byte{byte(d)}, wordBytes)
				word[at] = byte(c)
				x := loadWord(word)
				space := func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
				if got, want := maskSpace(x), maskOf(word, space); got != want {
					t.Fatalf("the white space of %q is %x, want %x", word, got, want)
				}
				low := x & eachLow
				if got, want := differs(low, '=')&eachHigh, maskOf(word, func(c byte) bool { return c&0x7f != '=' }); got != want {
					t.Fatalf("%x of %q differ, want %x", got, word, want)
				}
				if got, want := atLeast(low, 'a')&eachHigh, maskOf(word, func(c byte) bool { return c&0x7f >= 'a' }); got != want {
					t.Fatalf("%x of %q are letters, want %x", got, word, want)
				}
			}
		}
	}
}

func TestWithoutBytes(t *testing.T) {
	word := []byte("abcdefgh")
	for set := range 256 {
		var want []byte
		var mask uint64
		for i, c := range word {
			if set>>i&1 == 0 {
				want = append(want, c)
			} else {
				mask |= 0x80 << (8 * i)
			}
		}
		var got [wordBytes]byte
		x, n := withoutBytes(loadWord(word), mask)
		storeWord(got[:], x)
		if !bytes.Equal(got[:n], want) {
			t.Errorf("%q without %08b is %q, want %q", word, set, got[:n], want)
		}
	}
}

func TestPartialWord(t *testing.T) {
	for n := 1; n < wordBytes; n++ {
		got := partialWord([]byte("abcdefg")[:n], '.')
		if want := loadWord([]byte("abcdefg"[:n] + "........")); got != want {
			t.Errorf("of %d bytes: %x, want %x", n, got, want)
		}
	}
}

// readPlainly is appendUTF8 the plain way.
func readPlainly(b []byte) (text []byte) {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			r = charmap.Windows1252.DecodeByte(b[0])
		}
		text, b = utf8.AppendRune(text, r), b[size:]
	}
	return text
}

// Random bytes of few kinds, of all lengths around a word and four.
func TestBytesByWords(t *testing.T) {
	noise := rand.New(rand.NewPCG(9, 10))
	const kinds = "ab \r\n\r\n\té\xe9\x80\xc2\xa0\U0001F600"
	for range 20_000 {
		b := make([]byte, noise.IntN(70))
		some := kinds[:1+noise.IntN(len(kinds))]
		for i := range b {
			b[i] = some[noise.IntN(len(some))]
		}
		if got, want := isASCII(b), bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }) < 0; got != want {
			t.Fatalf("%q is ASCII: %v", b, got)
		}
		if got := appendUTF8(nil, b); !bytes.Equal(got, readPlainly(b)) {
			t.Fatalf("%q is read as %q, want %q", b, got, readPlainly(b))
		}
		want := bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
		if got := withoutCarriageReturns(bytes.Clone(b)); !bytes.Equal(got, want) {
			t.Fatalf("%q has the lines %q, want %q", b, got, want)
		}
		var unfolded []byte
		for line := range bytes.SplitSeq(b, []byte("\n")) {
			if line = bytes.Trim(line, " \t\r"); len(line) > 0 {
				unfolded = append(append(unfolded, line...), ' ')
			}
		}
		unfolded = bytes.TrimSuffix(unfolded, []byte(" "))
		if got := appendUnfolded(nil, b); !bytes.Equal(got, unfolded) {
			t.Fatalf("%q is unfolded %q, want %q", b, got, unfolded)
		}
		if got := appendUnfoldedUTF8(nil, b); !bytes.Equal(got, readPlainly(unfolded)) {
			t.Fatalf("%q is unfolded %q, want %q", b, got, readPlainly(unfolded))
		}
	}
}

// A charset with a table is read as go-message reads it, whatever the case of its name.
func TestSingleByteCharsets(t *testing.T) {
	var all [256]byte
	for c := range all {
		all[c] = byte(c)
	}
	for name := range singleBytes {
		for _, name := range []string{name, strings.ToUpper(name), strings.ToTitle(name[:1]) + name[1:]} {
			r, err := charset.Reader(name, bytes.NewReader(all[:]))
			if err != nil {
				t.Fatal(err)
			}
			want, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			table := singleByteOf([]byte(name))
			if table == nil {
				t.Fatalf("%s has no table", name)
			}
			if got := table.append(nil, all[:]); !bytes.Equal(got, want) {
				t.Errorf("%s: all bytes are %q, want %q", name, got, want)
			}
		}
	}
	if singleByteOf([]byte("utf-16")) != nil || singleByteOf([]byte(strings.Repeat("x", maxCharset))) != nil {
		t.Error("another charset has a table")
	}
}
