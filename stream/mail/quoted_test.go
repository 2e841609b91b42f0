package mail

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// checkLenientQuoted holds lenientQuoted to enmime.
func checkLenientQuoted(t *testing.T, body []byte) {
	t.Helper()
	want, wantOK := decodeLenient(quotedPrintable, body)
	got, ok := lenientQuoted(body)
	if ok != wantOK || ok && !bytes.Equal(got, want) {
		t.Errorf("lenientQuoted(%.200q) = %.200q, %t; enmime makes of it %.200q, %t", body, got, ok, want, wantOK)
	}
}

// What a text becomes is part of a model, so broken quoted-printable is decoded as it ever was.
func TestLenientQuoted(t *testing.T) {
	// Each byte alone and escaped, at the end and before others, and where a line grows too long.
	for c := range 256 {
		for _, before := range []string{"", "=", "=4", "==", "\r", strings.Repeat("x", 1021)} {
			for _, after := range []string{"", "1", "41\r\n", strings.Repeat("y", 1030)} {
				checkLenientQuoted(t, []byte(before+string([]byte{byte(c)})+after))
			}
		}
	}
	// A line is broken where a buffer of 4,096 bytes is full, and a body ends there.
	for shift := range 12 {
		checkLenientQuoted(t, []byte(strings.Repeat("x", 1008+shift)+"\n"+strings.Repeat("A", 5000)))
		for _, end := range []string{"=", "=4", "=zz", "\xff=", "\xff=4"} {
			checkLenientQuoted(t, []byte(strings.Repeat(strings.Repeat("y", 1000)+"\n", 4)+strings.Repeat("z", 80+shift)+end))
		}
	}
	// Random bytes of few kinds, across the buffers of 4,096 bytes.
	noise := rand.New(rand.NewPCG(7, 8))
	const kinds = "A=4f\r\nx==\t \x00\x7f\xa1\xff"
	for range 300 {
		body := make([]byte, noise.IntN(64)<<noise.IntN(9))
		some := kinds[:1+noise.IntN(len(kinds))]
		for i := range body {
			body[i] = some[noise.IntN(len(some))]
		}
		checkLenientQuoted(t, body)
	}
}

func FuzzLenientQuoted(f *testing.F) {
	for _, body := range []string{"", "=", "=4", "a=zb", "=\r\nx", strings.Repeat("é", 600)} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkLenientQuoted(t, body) })
}
