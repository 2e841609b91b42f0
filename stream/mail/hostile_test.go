package mail

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// repeat fills n bytes with what f gives.
func repeat(n int, f func(i int) string) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		b.WriteString(f(i))
	}
	return b.Bytes()[:n]
}

func always(s string) func(int) string { return func(int) string { return s } }

// hostile are messages of n bytes that make careless parsers slow or large.
func hostile(n int) map[string][]byte {
	const htmlHead = "Content-Type: text/html\n\n"
	h := map[string][]byte{}
	h["quoted-printable of control characters"] = append([]byte("Content-Transfer-Encoding: quoted-printable\n\n"), repeat(n-100, always("=\x01"))...)
	h["base64 of blanks and bangs"] = append([]byte("Content-Transfer-Encoding: base64\n\n"), repeat(n-100, always("! "))...)
	h["many broken base64 parts"] = repeat(n, func(i int) string {
		if i == 0 {
			return "Content-Type: multipart/mixed; boundary=b\n\n"
		}
		return "--b\nContent-Transfer-Encoding: base64\n\n" + strings.Repeat("!A", 16<<10) + "\n"
	})
	h["tag with a million attributes, then many tags"] = append([]byte(htmlHead), append(
		repeat(n/2, func(i int) string {
			if i == 0 {
				return "<a "
			}
			return fmt.Sprintf("a%d ", i)
		}), repeat(n/2-100, func(i int) string {
			if i == 0 {
				return "> "
			}
			return "<i b>"
		})...)...)
	h["tags never closed"] = append([]byte(htmlHead), repeat(n-100, always("<a "))...)
	h["quotes never closed"] = append([]byte(htmlHead), repeat(n-100, always(`<a b="`))...)
	h["comments never closed"] = append([]byte(htmlHead), repeat(n-100, always("<!--"))...)
	h["scripts never closed"] = append([]byte(htmlHead), repeat(n-100, always("<script></script "))...)
	h["script comments"] = append([]byte(htmlHead), repeat(n-100, always("<script><!--<script></script>"))...)
	h["ampersands"] = append([]byte(htmlHead), repeat(n-100, always("&"))...)
	h["entities that grow"] = append([]byte(htmlHead), repeat(n-100, always("&ngE;"))...)
	h["line starts with dashes"] = append([]byte("Content-Type: multipart/mixed; boundary="+strings.Repeat("-", 900)+"x\n\n"), repeat(n-1000, always("--\n"))...)
	h["long dashes"] = append([]byte("Content-Type: multipart/mixed; boundary="+strings.Repeat("-", 900)+"x\n\n"), repeat(n-1000, always(strings.Repeat("-", 900)+"\n"))...)
	h["nested fifty deep"] = append(nested(50), repeat(n-10000, always("text\n--b3\n"))...)
	h["deep boundaries alike"] = append(nested(20), repeat(n-10000, always("--b\n--b1\n--b2\n"))...)
	h["messages in messages"] = repeat(n, always("Content-Type: message/rfc822\n\n"))
	h["parts without end"] = append([]byte("Content-Type: multipart/mixed; boundary=b\n\n"), repeat(n-100, always("--b\n\n"))...)
	h["fields without end"] = repeat(n, always("a:\n"))
	h["stray header lines"] = append([]byte("a: b\n"), repeat(n-10, always("!\na:\n"))...)
	h["one folded field"] = append([]byte("Subject: a\n"), repeat(n-20, always(" \n"))...)
	h["encoded words"] = append([]byte("Subject: "), repeat(n-20, always("=?utf-8?q?=?"))...)
	h["subjects"] = repeat(n, always("Subject: =?iso-2022-jp?b?GyRC?=\n"))
	h["content types"] = append([]byte("Content-Type: multipart/mixed"), repeat(n-100, always("; boundary*0=b"))...)
	h["zeros"] = make([]byte, n)
	h["line feeds"] = append([]byte("\n\n"), repeat(n-2, always("\r\n"))...)
	h["quoted-printable line"] = append([]byte("Content-Transfer-Encoding: quoted-printable\n\n"), repeat(n-100, always("="))...)
	noise := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, n)
	for i := range random {
		random[i] = byte(noise.Uint32())
	}
	h["random bytes"] = random
	return h
}

// nested returns a message of multiparts inside one another with a text inside.
func nested(depth int) []byte {
	var b bytes.Buffer
	for i := range depth {
		fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
	}
	b.WriteString("Content-Type: text/plain\n\ninnermost\n")
	for i := depth - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "--b%d--\n", i)
	}
	return b.Bytes()
}

// TestHostileTime checks that the work grows with the length and no faster: a
// second is twenty times what the slowest of these takes on two busy cores.
func TestHostileTime(t *testing.T) {
	for name, raw := range hostile(2 << 20) {
		begin := time.Now()
		m := Parse(raw)
		parsed := time.Since(begin)
		checkMessage(t, raw, m)
		begin = time.Now()
		if _, err := Reduce(raw); err != nil && !bytes.Equal(bytes.TrimSpace(raw), nil) {
			t.Errorf("%s: reduce: %v", name, err)
		}
		t.Logf("%-50s parse %v, reduce %v: %v %d %s", name, parsed, time.Since(begin), len(m.Text), m.Parts, m.Reason)
	}
}
