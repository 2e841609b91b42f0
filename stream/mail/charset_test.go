package mail

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/emersion/go-message/charset"
)

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
