package mail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readMbox returns the messages of an mbox, and errors as "error: …".
func readMbox(r io.Reader) []string {
	var got []string
	for m, err := range Mbox(r) {
		if err != nil {
			m = fmt.Appendf(nil, "error: %v", err)
		}
		got = append(got, string(m))
	}
	return got
}

func TestMbox(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"empty", "", nil},
		{"only empty lines", "\n\r\n\n", nil},
		{"two", "From a\nA: b\n\nx\n\nFrom c\nC: d\n\ny\n", []string{"From a\nA: b\n\nx\n", "From c\nC: d\n\ny\n"}},
		{"CR LF", "From a\r\n\r\nx\r\n\r\nFrom c\r\n\r\ny\r\n\r\n", []string{"From a\r\n\r\nx\r\n", "From c\r\n\r\ny\r\n"}},
		{"From within a paragraph", "From a\n\nx\nFrom y\n", []string{"From a\n\nx\nFrom y\n"}},
		{"quoted", "From a\n\n>From x\n>>From y\n> From z\n>Fromage\n", []string{"From a\n\nFrom x\n>From y\n> From z\n>Fromage\n"}},
		{"one message, no mbox", "Subject: x\n\nbody", []string{"Subject: x\n\nbody"}},
		{"something before the first", "Subject: x\n\nFrom a\n\ny", []string{"Subject: x\n", "From a\n\ny"}},
		{"empty lines before the first", "\n\nFrom a\n\nx", []string{"From a\n\nx"}},
		{"no body", "From a\n\nFrom b\n\nFrom c", []string{"From a\n", "From b\n", "From c"}},
		{"one empty line is the format's", "From a\n\nx\n\n\nFrom b\n", []string{"From a\n\nx\n\n", "From b\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, readMbox(strings.NewReader(c.in))); diff != "" {
				t.Errorf("Mbox(%q) (-want +got):\n%s", c.in, diff)
			}
			if diff := cmp.Diff(c.want, readMbox(iotest.OneByteReader(strings.NewReader(c.in)))); diff != "" {
				t.Errorf("Mbox(%q) byte by byte (-want +got):\n%s", c.in, diff)
			}
		})
	}
}

// zeros reads n zeros: a line longer than any buffer.
func zeros(n int64) io.Reader { return io.LimitReader(endless{}, n) }

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func TestMboxTooLarge(t *testing.T) {
	r := io.MultiReader(
		strings.NewReader("From a\n\none\n\nFrom b\n\n"), zeros(MaxSize),
		strings.NewReader("\n>From x\n\nFrom c\n\nthree\n"))
	want := []string{"From a\n\none\n", "error: mbox: message 2: message is larger than 25 MiB", "From c\n\nthree\n"}
	if diff := cmp.Diff(want, readMbox(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, err := range Mbox(zeros(MaxSize + 1)) {
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("a message of MaxSize+1 bytes: %v, want ErrTooLarge", err)
		}
	}
	for m, err := range Mbox(zeros(MaxSize)) {
		if err != nil || len(m) != MaxSize {
			t.Errorf("a message of MaxSize bytes: %d bytes, %v", len(m), err)
		}
	}
}

func TestMboxReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	r := io.MultiReader(strings.NewReader("From a\n\nx\n\nFrom b\n\ny"), iotest.ErrReader(broken))
	var got []error
	for _, err := range Mbox(r) {
		got = append(got, err)
	}
	if len(got) != 2 || got[0] != nil || !errors.Is(got[1], broken) {
		t.Errorf("errors are %v, want none and then %v", got, broken)
	}
}

func TestMboxStops(t *testing.T) {
	n := 0
	for range Mbox(strings.NewReader("From a\n\n\nFrom b\n\n\nFrom c\n")) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d messages after break", n)
	}
}

// appendMbox writes a message as mboxrd has it.
func appendMbox(dst, message []byte) []byte {
	for line := range bytes.Lines(message) {
		if isQuotedFrom(line) || len(dst) > 0 && bytes.HasPrefix(line, fromPrefix) {
			dst = append(dst, '>')
		}
		dst = append(dst, line...)
	}
	if !bytes.HasSuffix(dst, []byte("\n")) {
		dst = append(dst, '\n')
	}
	return append(dst, '\n')
}

// TestMboxOfCorpus puts the corpus into one mbox and takes it out again.
func TestMboxOfCorpus(t *testing.T) {
	var box []byte
	var want [][]byte
	for _, m := range corpus(t) {
		if !bytes.HasPrefix(m.raw, fromPrefix) {
			continue
		}
		raw := m.raw
		if !bytes.HasSuffix(raw, []byte("\n")) {
			raw = append(bytes.Clone(raw), '\n')
		}
		want = append(want, raw)
		box = append(box, appendMbox(nil, raw)...)
	}
	i := 0
	for m, err := range Mbox(bytes.NewReader(box)) {
		if err != nil {
			t.Fatal(err)
		}
		if i >= len(want) || !bytes.Equal(m, want[i]) {
			t.Fatalf("message %d is not what was written: %.300q", i, m)
		}
		i++
	}
	if i != len(want) {
		t.Errorf("%d messages, want %d", i, len(want))
	}
}

func FuzzMbox(f *testing.F) {
	f.Add([]byte("From a\n\nx\n\nFrom b\n>From y\n"))
	f.Add([]byte("\r\nx\r\n\r\nFrom b\r\n>>From "))
	f.Fuzz(func(t *testing.T, in []byte) {
		total, n := 0, 0
		for m, err := range Mbox(bytes.NewReader(in)) {
			if err != nil {
				t.Fatalf("Mbox(%q): %v", in, err)
			}
			if len(m) == 0 {
				t.Errorf("Mbox(%q) yields an empty message", in)
			}
			n++
			total += len(m)
		}
		if total > len(in) {
			t.Errorf("Mbox(%q) yields %d bytes", in, total)
		}
		if slow := readMbox(iotest.OneByteReader(bytes.NewReader(in))); len(slow) != n {
			t.Errorf("Mbox(%q) yields %d messages, byte by byte %d", in, n, len(slow))
		}
	})
}

// A line that is read in two pieces, the second of which is its line end, is not an
// empty line: no message starts after it.
func TestMboxLineInTwoPieces(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	for _, size := range []int{1, MaxSize / len(long)} { // the second message is too large
		file := "From a\n\n" + strings.Repeat(long+"\n", size) + "From b\n"
		n := 0
		for range Mbox(strings.NewReader(file)) {
			n++
		}
		if n != 1 {
			t.Errorf("%d lines of %d bytes: %d messages, want 1", size, len(long), n)
		}
	}
}
