package mail

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReduce(t *testing.T) {
	long := strings.Repeat("0123456789abcde\n", 5000) // 80,000 bytes in lines of 16
	for _, c := range []struct{ name, raw, want string }{
		{
			"a small text passes as it is, whatever it looks like",
			"From a\r\nsubject : x\nFOLDED:\n\ty\r\n\nbody\r\n",
			"From a\r\nsubject : x\nFOLDED:\n\ty\r\n\nbody\r\n",
		},
		{
			"parts that are not text keep type, name and size",
			"Content-Type: multipart/mixed; boundary=a\r\n\r\npre\r\n--a\r\n\r\none\r\n--a\r\nContent-Type: image/png;\r\n name=x.png\r\n\r\nPNG\r\n\r\n--a--\r\npost",
			"Content-Type: multipart/mixed; boundary=a\r\n\r\npre\r\n--a\r\n\r\none\r\n--a\r\nContent-Type: image/png;\r\n name=x.png\r\nX-Hamlet-Bytes: 5\r\n\r\n\r\n--a--\r\npost",
		},
		{
			"a message that is no text",
			"From a\nContent-Type: application/pdf\n\n%PDF\n",
			"From a\nContent-Type: application/pdf\nX-Hamlet-Bytes: 5\n\n",
		},
		{
			"a size that is already there is renewed",
			"x-hamlet-bytes: 2\nContent-Type: image/gif\nX-HAMLET-BYTES: 99\n\nGIF89a",
			"Content-Type: image/gif\nX-Hamlet-Bytes: 6\n\n",
		},
		{
			"a long text is cut at a line end",
			"Subject: x\n\n" + long,
			"Subject: x\nX-Hamlet-Bytes: 80000\n\n" + long[:4095*16+15],
		},
		{
			"a text of one long line is cut, but not within a character",
			"Subject: x\n\n" + strings.Repeat("é", 40000),
			"Subject: x\nX-Hamlet-Bytes: 80000\n\n" + strings.Repeat("é", 32768),
		},
		{
			"a long text without a header",
			"\n" + long,
			"\n" + long[:4095*16+15],
		},
		{
			"a long preamble and epilogue",
			"Content-Type: multipart/mixed; boundary=a\n\n" + long + "\n--a\n\none\n--a--\n" + long,
			"Content-Type: multipart/mixed; boundary=a\n\n" + long[:255*16+15] + "\n--a\n\none\n--a--\n" + long[:255*16+15],
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Reduce([]byte(c.raw))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("Reduce(%.300q) (-want +got):\n%.2000s", c.raw, diff)
			}
			checkReduce(t, []byte(c.raw))
		})
	}
}

func TestReduceReturnsSmallTextItself(t *testing.T) {
	raw := []byte("Subject: x\n\nbody")
	got, err := Reduce(raw)
	if err != nil || &got[0] != &raw[0] {
		t.Errorf("Reduce(%q) = %q, %v, want the same memory", raw, got, err)
	}
}

func TestReduceErrors(t *testing.T) {
	for _, raw := range []string{"", "\n", " \r\n\t\n"} {
		if _, err := Reduce([]byte(raw)); !errors.Is(err, ErrEmpty) {
			t.Errorf("Reduce(%q): %v, want ErrEmpty", raw, err)
		}
	}
	if _, err := Reduce(make([]byte, MaxSize+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Reduce of MaxSize+1 bytes: %v, want ErrTooLarge", err)
	}
	if _, err := Reduce(make([]byte, MaxSize)); err != nil {
		t.Errorf("Reduce of MaxSize bytes: %v", err)
	}
}

func TestReduceHeader(t *testing.T) {
	var raw []byte
	for i := range 3000 {
		raw = fmt.Appendf(raw, "Received: from host%d.example by mail.example\n", i)
	}
	raw = append(raw, "Subject: late\nContent-Type: text/html\nContent-Transfer-Encoding: base64\n\nPGI+eDwvYj4=\n"...)
	got, err := Reduce(raw)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) > MaxHead+100 || len(got) < MaxHead/2 {
		t.Errorf("%d bytes are left", len(got))
	}
	m := Parse(got)
	if string(m.Text) != "x" || !m.HTML {
		t.Errorf("after a long header the text is %q, HTML %v", m.Text, m.HTML)
	}
	if !bytes.HasPrefix(Parse(raw).Head, m.Head[:MaxHead/2]) {
		t.Error("the header does not begin as it did")
	}
	checkReduce(t, raw)
	checkReduce(t, append([]byte("To: "), bytes.Repeat([]byte("a@b, "), 100000)...))
	checkReduce(t, append([]byte("To: a\n"), bytes.Repeat([]byte(" b\n"), 100000)...))
}

// manyParts returns a message of n parts, each with what f gives for it.
func manyParts(n int, f func(i int) string) []byte {
	raw := []byte("Subject: many\nContent-Type: multipart/mixed; boundary=b\n\n")
	for i := range n {
		raw = append(append(append(raw, "--b\n"...), f(i)...), '\n')
	}
	return append(raw, "--b--\n"...)
}

func TestReduceLargest(t *testing.T) {
	line := strings.Repeat("abcdefghi ", 7) + "\n"
	for _, c := range []struct {
		name string
		raw  []byte
	}{
		{"a thousand long texts", manyParts(990, func(int) string { return "\n" + strings.Repeat(line, 350) })},
		{"fourteen texts of 64 KiB", manyParts(14, func(int) string { return "\n" + strings.Repeat(line, 922) })},
		{"a thousand long headers", manyParts(990, func(int) string { return "X: " + strings.Repeat(line[:70]+"\n ", 300) + "\n\nx" })},
		{"a thousand long names", manyParts(990, func(i int) string {
			return fmt.Sprintf("Content-Type: image/png; name=\"%s\"\n\n%d", strings.Repeat("x", 4000), i)
		})},
		{"2,000 parts", manyParts(2000, func(i int) string { return "\n" + strings.Repeat(line, 170) })},
		{"more epilogues than fit", manyParts(900, func(i int) string {
			return fmt.Sprintf("Content-Type: multipart/mixed; boundary=c%d\n\n--c%d\n\nx\n--c%d--\n%s", i, i, i, strings.Repeat(line, 60))
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkReduce(t, c.raw)
			got, err := Reduce(c.raw)
			if err != nil || len(got) > MaxReduced {
				t.Fatalf("%d bytes are left, %v", len(got), err)
			}
			if m := Parse(got); string(m.Subject) != "many" {
				t.Errorf("Subject = %q after Reduce", m.Subject)
			}
			t.Logf("%d bytes to %d", len(c.raw), len(got))
		})
	}
}

func TestReduceHostile(t *testing.T) {
	for name, raw := range hostile(1 << 18) {
		if isBlank(raw) {
			continue
		}
		t.Run(name, func(t *testing.T) { checkReduce(t, raw) })
	}
}

func ExampleReduce() {
	raw := "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nSee the picture.\n--b\n" +
		"Content-Type: image/png; name=cat.png\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--b--\n"
	reduced, err := Reduce([]byte(raw))
	for line := range strings.Lines(string(reduced)) {
		fmt.Print("|", line)
	}
	fmt.Println(err)
	// Output:
	// |Content-Type: multipart/mixed; boundary=b
	// |
	// |--b
	// |
	// |See the picture.
	// |--b
	// |Content-Type: image/png; name=cat.png
	// |Content-Transfer-Encoding: base64
	// |X-Hamlet-Bytes: 12
	// |
	// |
	// |--b--
	// <nil>
}
