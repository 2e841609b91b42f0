package mail

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// repeat fills n bytes with f's results.
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
	h["deep boundaries alike"] = append(openNested(20, strings.Repeat("b", 900)), repeat(n-40000, always("--"+strings.Repeat("b", 900)+"\n"))...)
	h["deep boundaries and blanks"] = append(openNested(20, "b"), repeat(n-40000, always("--b"+strings.Repeat(" ", 500)+"x\n"))...)
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

// openNested returns the beginnings of multiparts inside one another, with
// boundaries that differ at their ends.
func openNested(depth int, prefix string) []byte {
	var b bytes.Buffer
	for i := range depth {
		fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=%s%d\n\n--%s%d\n", prefix, i, prefix, i)
	}
	b.WriteString("\n")
	return b.Bytes()
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

// TestHostileWork checks that work does not grow with the square of the length. Linear
// work takes at most 20 ms for 1 MiB. Quadratic work of 1 ns a step would take a
// quarter of an hour. The limit allows for a busy machine and the race detector.
func TestHostileWork(t *testing.T) {
	const limit = 20 * time.Second
	for name, raw := range hostile(1 << 20) {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			m := Parse(raw)
			if _, err := Reduce(raw); err != nil && !isBlank(raw) {
				t.Error(err)
			}
			if took := time.Since(begin); took > limit {
				t.Errorf("%d bytes took %v", len(raw), took)
			}
			checkMessage(t, raw, m)
		})
	}
}

// BenchmarkHostile reads 25 MiB of each.
func BenchmarkHostile(b *testing.B) {
	for name, raw := range hostile(MaxSize) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				Parse(raw)
			}
		})
	}
}
