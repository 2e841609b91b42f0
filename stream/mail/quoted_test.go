package mail

import (
	"bytes"
	"io"
	"math/rand/v2"
	"mime/quotedprintable"
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

// checkStrictQuoted holds appendStrictQuoted to the standard library.
func checkStrictQuoted(t *testing.T, body []byte) {
	t.Helper()
	want, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(body)))
	got, ok := appendStrictQuoted([]byte("before"), body)
	if ok != (err == nil) || ok && string(got) != "before"+string(want) {
		t.Errorf("appendStrictQuoted(%.200q) = %.200q, %t; mime/quotedprintable makes of it %.200q, %v", body, got, ok, want, err)
	}
}

func TestStrictQuoted(t *testing.T) {
	for c := range 256 {
		for _, before := range []string{"", "=", "=4", "==", "\r", " ", "a\n", "1234567", "1234567="} {
			for _, after := range []string{"", "1", "\n", "\r\n", " \t\n", "=", "=\n", "= \r\n", "=\r", "41\r\n", "12345678\n"} {
				checkStrictQuoted(t, []byte(before+string([]byte{byte(c)})+after))
			}
		}
	}
	for n := maxStrictLine - 3; n < maxStrictLine+3; n++ {
		line := strings.Repeat("x", n)
		for _, body := range []string{line, line + "\n", "a\n" + line, "a\n" + line + "\r\nb", line + "=\n", line + "="} {
			checkStrictQuoted(t, []byte(body))
		}
	}
	noise := rand.New(rand.NewPCG(11, 12))
	const kinds = "A=4f\r\nx==\t \xa1\xff\n=3D\x7f\x00"
	for range 20_000 {
		body := make([]byte, noise.IntN(64))
		some := kinds[:1+noise.IntN(len(kinds))]
		for i := range body {
			body[i] = some[noise.IntN(len(some))]
		}
		checkStrictQuoted(t, body)
	}
}

func FuzzStrictQuoted(f *testing.F) {
	for _, body := range []string{"", "=", "=4", "a=zb", "=\r\nx", "a =3D\t\r\nb=20\nc= \n", strings.Repeat("é", 600)} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkStrictQuoted(t, body) })
}
