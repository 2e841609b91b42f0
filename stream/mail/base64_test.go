package mail

import (
	"bytes"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/jhillyerd/enmime/v2"
)

// brokenBase64 returns bodies of n bytes that declare base64, n divisible by 4, by what
// they hold. Only the first is in order.
func brokenBase64(n int) map[string][]byte {
	noise := rand.New(rand.NewPCG(3, 4))
	data := make([]byte, n/4*3)
	for i := range data {
		data[i] = byte(noise.Uint32())
	}
	digits := base64.StdEncoding.EncodeToString(data)
	return map[string][]byte{
		"ordinary":             []byte(digits),
		"punctuation":          repeat(n, always("!?.,;:()-_*'")),
		"digits and bangs":     repeat(n, always("!A")),
		"a bang at the end":    []byte(digits[:n-1] + "!"),
		"control characters":   repeat(n, always("\x01\x7f")),
		"bytes above ASCII":    repeat(n, always("\xa1")),
		"a letter above ASCII": []byte(digits[:n-1] + "\xc1"),
	}
}

// lenient decodes broken transfer encodings. Its charset detection races, so it is
// off.
var lenient = enmime.NewParser(enmime.DisableCharacterDetection(true),
	enmime.DisableTextConversion(true), enmime.MaxStoredPartErrors(1))

// decodeLenient undoes a transfer encoding with enmime: the law that lenientBase64 and lenientQuoted obey.
func decodeLenient(enc encoding, body []byte) (decoded []byte, ok bool) {
	part, err := lenient.ReadParts(io.MultiReader(
		strings.NewReader("Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: "+enc.name()+"\r\n\r\n"),
		bytes.NewReader(body)))
	if err != nil {
		return nil, false
	}
	return part.Content, true
}

// checkLenientBase64 holds lenientBase64 to enmime.
func checkLenientBase64(t *testing.T, body []byte) {
	t.Helper()
	want, wantOK := decodeLenient(base64Encoding, body)
	got, ok := lenientBase64(body)
	// enmime tells corrupt base64 by an empty result, which its caller takes for broken.
	if ok = ok && (len(got) > 0 || isBlank(body)); ok != (wantOK && (len(want) > 0 || isBlank(body))) || ok && !bytes.Equal(got, want) {
		t.Errorf("lenientBase64(%.200q) = %.200q, %t; enmime makes of it %.200q, %t", body, got, ok, want, wantOK)
	}
}

// What a text becomes is part of a model, so broken base64 is decoded as it ever was.
func TestLenientBase64(t *testing.T) {
	for _, body := range brokenBase64(4096) {
		checkLenientBase64(t, body)
	}
	// Each byte alone, and after each number of digits of a quantum.
	for c := range 256 {
		for _, before := range []string{"", "Q", "QU", "QUJ", "QUJD", "QUJDR"} {
			for _, after := range []string{"", "R", "RA", "RA==", "\r\n"} {
				checkLenientBase64(t, []byte(before+string([]byte{byte(c)})+after))
			}
		}
	}
	// Random bytes of few kinds: every length of a fragment, across the buffers of
	// 1,024 bytes in enmime and encoding/base64.
	noise := rand.New(rand.NewPCG(5, 6))
	const kinds = "ABab01+/==  \r\n!.-_\x00\x7f\xa1\xc1\xbd\xff"
	for range 2000 {
		body := make([]byte, noise.IntN(64)<<noise.IntN(7))
		some := kinds[:1+noise.IntN(len(kinds))]
		for i := range body {
			body[i] = some[noise.IntN(len(some))]
		}
		checkLenientBase64(t, body)
	}
}

func FuzzLenientBase64(f *testing.F) {
	for _, body := range brokenBase64(64) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkLenientBase64(t, body) })
}

// checkStrictBase64 checks that what appendStrictBase64 decodes, go-message does as well.
func checkStrictBase64(t *testing.T, body []byte) {
	t.Helper()
	got, ok := appendStrictBase64([]byte("before"), body)
	want, wantOK := appendStreamedBase64(nil, body)
	if ok && (!wantOK || string(got) != "before"+string(want)) {
		t.Errorf("appendStrictBase64(%.200q) = %.200q; go-message makes of it %.200q, %t", body, got, want, wantOK)
	}
}

func TestStrictBase64(t *testing.T) {
	if got, ok := appendStrictBase64(nil, []byte("QUJDREVG\r\nQUJDRA\n")); ok {
		t.Errorf("half a group is %q", got)
	}
	if got, ok := appendStrictBase64(nil, []byte("QUJDREVG\r\n \n  QUJDRA==\t\n")); !ok || string(got) != "ABCDEFABCD" {
		t.Errorf("got %q, %t", got, ok)
	}
	noise := rand.New(rand.NewPCG(13, 14))
	const kinds = "ABab01+/\n\n\r== \t!\xa1"
	for range 50_000 {
		body := make([]byte, noise.IntN(32)<<noise.IntN(7))
		some := kinds[:1+noise.IntN(len(kinds))]
		for i := range body {
			if body[i] = some[noise.IntN(len(some))]; i%5 == 4 {
				body[i] = '\n'
			}
		}
		checkStrictBase64(t, body)
	}
}

func FuzzStrictBase64(f *testing.F) {
	for _, body := range brokenBase64(64) {
		f.Add(body)
	}
	f.Add([]byte("QUJDREVG\r\n \n  QUJDRA==\t\n"))
	f.Fuzz(func(t *testing.T, body []byte) { checkStrictBase64(t, body) })
}

// A byte that is out of place costs no allocation. enmime makes several for each, so
// that 1 MB of punctuation took twenty times as long as 1 MB of ordinary base64.
func TestBrokenBase64Allocates(t *testing.T) {
	const part, most = 200_000, 500 // bytes, below maxLenient; allocations
	for name, body := range brokenBase64(part) {
		allocations := testing.AllocsPerRun(1, func() { new(scanner).decodeTransfer(base64Encoding, body) })
		if allocations > most {
			t.Errorf("%s: %v allocations for %d bytes, want at most %d", name, allocations, part, most)
		}
	}
}

// BenchmarkBase64 parses and reduces a part of 200 KB, most of it in decodeTransfer.
func BenchmarkBase64(b *testing.B) {
	for name, body := range brokenBase64(200_000) {
		raw := []byte("Content-Transfer-Encoding: base64\n\n" + string(body))
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				Parse(raw)
				if _, err := Reduce(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Padding within base64 is read the same whatever the pooled scanner has read before.
func TestPaddingWithinBase64(t *testing.T) {
	const header = "Content-Transfer-Encoding: base64\n\n"
	large := []byte(header + strings.Repeat("QUJD", 100_000) + "\n")
	for _, at := range []int{676, 680, 764, 1024, 1364, 2048} { // where encoding/base64 may end a buffer
		for _, sep := range []string{"", "\n"} {
			raw := []byte(header + strings.Repeat("YWFh", at/4-1) + "QQ==" + sep + strings.Repeat("QUJD", 300) + sep)
			runtime.GC()
			runtime.GC() // empties the pool
			first := Parse(raw)
			Parse(large)
			if again := Parse(raw); !bytes.Equal(again.Text, first.Text) {
				t.Errorf("padding that ends at %d, %q behind: %q, and after a large mail %q", at, sep,
					first.Text[at-at/2:], again.Text[at-at/2:])
			}
		}
	}
}
