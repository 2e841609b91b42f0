package progress

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// A drawn line is at most 79 columns wide, narrower on a narrower terminal, and
// erases what stood behind it.
func TestLineFits(t *testing.T) {
	parts := []string{Count(1234567, 2000000), "ALARM: labels went bad", "123456/s", strings.Repeat("x", 60), "1-ROCA% 12.345"}
	for _, c := range []struct {
		columns int
		want    string
	}{
		{200, "1234567 of 2000000 (61 %)  ALARM: labels went bad  123456/s  1-ROCA% 12.345"},
		{80, "1234567 of 2000000 (61 %)  ALARM: labels went bad  123456/s  1-ROCA% 12.345"},
		{60, "1234567 of 2000000 (61 %)  ALARM: labels went bad  123456/s"},
		{40, "1234567 of 2000000 (61 %)  123456/s"},
		{11, "1234567 of"},
		{1, ""},
		{0, ""},
	} {
		var b bytes.Buffer
		NewLineOfWidth(&b, func() int { return c.columns }).Draw(parts...)
		if want := "\r" + c.want + "\x1b[K"; b.String() != want {
			t.Errorf("%d columns: %q, want %q", c.columns, b.String(), want)
		}
		if utf8.RuneCountInString(c.want) > maxWidth {
			t.Errorf("%q is wider than %d", c.want, maxWidth)
		}
	}
}

// What is printed stands alone, and the line comes again below it.
func TestPrintAboveTheLine(t *testing.T) {
	var b bytes.Buffer
	l := NewLineOfWidth(&b, func() int { return 80 })
	l.Draw("1 events")
	l.Print("a sentence")
	l.Draw("2 events")
	l.Clear()
	l.Clear()
	if want := "\r1 events\x1b[K\r\x1b[Ka sentence\n\r2 events\x1b[K\r\x1b[K"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// A writer that is no terminal gets what is printed alone.
func TestNoTerminal(t *testing.T) {
	var b bytes.Buffer
	l := NewLine(&b)
	l.Draw("1 events")
	l.Print("a sentence")
	l.Clear()
	c := NewCounter(&b)
	c.Set(3, 0)
	c.Close()
	if b.String() != "a sentence\n" || l.OnTerminal() || (*Line)(nil).OnTerminal() {
		t.Errorf("%q", b.String())
	}
}
