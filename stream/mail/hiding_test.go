package mail

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What a model reads of a message: the first bytes of H and of T.
const (
	modelHead = 3000
	modelText = 8000
)

// A view is what a model learns from, except the counts that summary may lose, and what
// names the message.
type view struct{ Head, Subject, Text, Identity string }

func viewOf(m Message) view {
	text := append(append(append([]byte("subject: "), m.Subject...), "\n\n"...), m.Text...)
	return view{
		Head:     string(m.Head[:min(len(m.Head), modelHead)]),
		Subject:  string(m.Subject),
		Text:     string(text[:min(len(text), modelText)]),
		Identity: Identity("", &m),
	}
}

// failer is what testing.T and rapid.T share.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// checkView checks that Reduce removes nothing that a model reads.
func checkView(t failer, raw []byte) {
	t.Helper()
	reduced, err := Reduce(raw)
	if errors.Is(err, ErrEmpty) && isBlank(raw) {
		return
	}
	if err != nil {
		t.Fatalf("Reduce(%.300q): %v", raw, err)
	}
	if len(reduced) > MaxReduced {
		t.Errorf("Reduce(%.300q) has %d bytes, from %d", raw, len(reduced), len(raw))
	}
	again, err := Reduce(reduced)
	if err != nil || !bytes.Equal(reduced, again) {
		t.Errorf("Reduce(%.300q) has %d bytes, from %d\nthen %d (%v)", raw, len(reduced), len(raw), len(again), err)
	}
	if diff := cmp.Diff(viewOf(Parse(raw)), viewOf(Parse(reduced))); diff != "" {
		t.Errorf("Parse of %.600q\nand of  %.600q (-raw +reduced):\n%.3000s", raw, reduced, diff)
	}
}

// base64Mail is a multipart with one base64 part that says "buy viagra", after
// a header that begins with prefix.
func base64Mail(prefix, contentType string) []byte {
	return []byte(prefix + contentType + "Subject: last\n\n--b\nContent-Type: text/html\nContent-Transfer-Encoding: base64\n\n" +
		base64.StdEncoding.EncodeToString([]byte("<b>buy viagra</b>")) + "\n--b--\n")
}

// TestHiding tries what hides words from a model that a mail reader shows.
func TestHiding(t *testing.T) {
	const multipart = "Content-Type: multipart/mixed; boundary=b\n"
	long := strings.Repeat("0123456789abcde\n ", 300)
	for _, c := range []struct {
		name string
		raw  []byte
	}{
		{"a long Content-Type, boundary first", base64Mail("", "Content-Type: multipart/mixed; boundary=b;\n x=\""+long+"\"\n")},
		{"a long Content-Type, boundary last", base64Mail("", "Content-Type: multipart/mixed;\n x=\""+strings.Repeat(long, 30)+"\"; boundary=\"b\"\n")},
		{"a Content-Type behind a fold of 5 KB", base64Mail("", "Content-Type:"+strings.Repeat(" \n ", 2000)+"multipart/mixed; boundary=b\n")},
		{"a boundary folded within its quotes", []byte("Content-Type: multipart/mixed; boundary=\"a\n b\"\n\n--a b\nContent-Transfer-Encoding: base64\n\nYnV5IHZpYWdyYQ==\n--a b--\n")},
		{"ten thousand fields before the Content-Type", base64Mail(strings.Repeat("a:\r\n", MaxFields+1), multipart)},
		{"64 KiB of fields before Content-Type and Subject", base64Mail(strings.Repeat("X-Filler: "+strings.Repeat("x", 60)+"\n", 2000), multipart)},
		{"repeated Content-Disposition", base64Mail(multipart, strings.Repeat("Content-Disposition: inline; x="+strings.Repeat("x", 4000)+"\n", 18))},
		{"repeated X-Hamlet-Bytes", base64Mail(multipart, strings.Repeat(bytesName+": "+strings.Repeat("1", 4000)+"\n", 18))},
		{"repeated Content-Disposition in a part", []byte(multipart + "\n--b\nContent-Transfer-Encoding: base64\n" +
			strings.Repeat("Content-Disposition: inline; x="+strings.Repeat("x", 4000)+"\n", 40) + "\nYnV5IHZpYWdyYQ==\n--b--\n")},
		{"an encoding far down in a part's header", []byte(multipart + "\n--b\n" + strings.Repeat("X: "+strings.Repeat("x", 1000)+"\n", 100) +
			"Content-Transfer-Encoding: base64\n\nYnV5IHZpYWdyYQ==\n--b--\n")},
		{"a comment of 100 KB before the words", []byte("Content-Type: text/html\n\n<!--" + strings.Repeat("x", 100000) + "-->buy <b>viagra</b> & more")},
		{"a style of 100 KB, in base64", []byte("Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n" +
			base64.StdEncoding.EncodeToString([]byte("<style>"+strings.Repeat("x", 100000)+"</style>--b buy <b>viagra</b> &euro;")))},
		{"a comment of 100 KB and a control character", []byte("Content-Type: text/html; charset=iso-8859-1\n\n<!--" + strings.Repeat("x", 100000) + "-->buy viagra\x81 caf\xe9")},
		{"soft line ends before the words", []byte("Content-Type: text/plain\nContent-Transfer-Encoding: quoted-printable\n\n" + strings.Repeat("=\n", 50000) + "buy viagra")},
		{"a comment in a part", []byte(multipart + "\n--b\nContent-Type: text/html\n\n<!--" + strings.Repeat("x", 100000) + "-->\n\nbuy viagra\n--b\n\nmore\n--b--\n")},
		{"broken base64, too much of it", []byte("Content-Transfer-Encoding: base64\n\n" + strings.Repeat("!!!!!!!!\n", 40000) + base64.StdEncoding.EncodeToString([]byte("buy viagra")))},
		{"a text behind a thousand parts", manyParts(990, func(i int) string {
			if i < 900 {
				return "X: " + strings.Repeat("x", 2000) + "\n\n"
			}
			return "\nbuy viagra"
		})},
		{"a structure that does not fit", manyParts(450, func(i int) string {
			boundary := fmt.Sprint(i, strings.Repeat("x", 900))
			return "Content-Type: multipart/mixed; boundary=" + boundary + "\n\n--" + boundary + "\nContent-Transfer-Encoding: base64\n\nYnV5IHZpYWdyYQ==\n--" + boundary + "--\n"
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkView(t, c.raw)
			if m := Parse(c.raw); !strings.Contains(string(m.Text), "buy viagra") {
				t.Errorf("the text is %.300q", m.Text)
			}
			reduced, _ := Reduce(c.raw) // checkView has seen the error
			if m := Parse(reduced); !strings.Contains(string(m.Text), "buy viagra") {
				t.Errorf("after Reduce the text is %.300q, from %.300q", m.Text, reduced)
			}
		})
	}
}

// TestSubjectFarDown checks that Subject and From are kept wherever they stand.
func TestSubjectFarDown(t *testing.T) {
	filler := strings.Repeat("X-Filler: "+strings.Repeat("x", 60)+"\n", 20000)
	for _, c := range []struct{ name, raw, want string }{
		{"behind 1.4 MB", filler + "Subject: buy viagra\nFrom: a@b\n\nx", "buy viagra"},
		{"behind a million empty fields", strings.Repeat("a:\n", 1000000) + "Subject: buy viagra\nFrom: a@b\n\nx", "buy viagra"},
		{"behind 10 KB of its own blanks", filler + "Subject:" + strings.Repeat(" \n ", 4000) + "buy viagra\nFrom: a@b\n\nx", "buy viagra"},
		{"behind 10 KB of empty words", filler + "Subject:" + strings.Repeat(" =?utf-8?q??=\n", 1000) + " buy viagra\nFrom: a@b\n\nx", "buy viagra"},
		{"the first of two", filler + "Subject: buy\n viagra\nFrom: a@b\nSubject: other\n\nx", "buy viagra"},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkView(t, []byte(c.raw))
			reduced, err := Reduce([]byte(c.raw))
			if err != nil {
				t.Fatal(err)
			}
			for _, raw := range [][]byte{[]byte(c.raw), reduced} {
				m := Parse(raw)
				if string(bytes.TrimSpace(m.Subject)) != c.want || !bytes.Contains(m.Head, []byte("from: a@b\n")) {
					t.Errorf("Subject = %q, head ends %q", m.Subject, m.Head[max(0, len(m.Head)-100):])
				}
			}
		})
	}
}

// TestForgedRecords checks that a forged record cannot exceed MaxSize.
func TestForgedRecords(t *testing.T) {
	for _, c := range []struct {
		raw  []byte
		want int
	}{
		{[]byte("X-Hamlet-Bytes: 26214400\n\nx"), MaxSize},
		{[]byte("X-Hamlet-Bytes: 26214401\n\nx"), 1},
		{[]byte("X-Hamlet-Bytes: 18446744073709551617\n\nx"), 1},
		{[]byte("X-Hamlet-Bytes: -1\n\nx"), 1},
		{[]byte("X-Hamlet-Bytes: " + strings.Repeat("0", 100) + "7\n\nx"), 1},
		{[]byte("X-Hamlet-Bytes: 0\nX-Hamlet-Bytes: 99\n\nx"), 1},
		{manyParts(900, func(int) string { return "X-Hamlet-Bytes: 26214400\n\nx" }), MaxSize},
	} {
		if m := Parse(c.raw); m.BodyBytes != c.want || bytes.Contains(m.Head, []byte("hamlet")) {
			t.Errorf("Parse(%.100q): BodyBytes = %d, want %d; Head = %.200q", c.raw, m.BodyBytes, c.want, m.Head)
		}
		checkView(t, c.raw)
	}
}

// TestSummary checks that summary keeps the counts that a model reads.
func TestSummary(t *testing.T) {
	raw := manyParts(400, func(i int) string {
		boundary := fmt.Sprint(i, strings.Repeat("x", 900))
		return "Content-Type: multipart/mixed; boundary=" + boundary + "\n\n--" + boundary +
			"\nContent-Type: text/html\n\n<p>x\n--" + boundary + "\nContent-Type: image/png\n\nPNG\n--" + boundary + "--\n"
	})
	for _, raw := range [][]byte{raw, append([]byte("Subject: many\nContent-Type: message/rfc822\n\n"), raw...)} {
		checkView(t, raw)
		reduced, err := Reduce(raw)
		if err != nil {
			t.Fatal(err)
		}
		want, got := Parse(raw), Parse(reduced)
		if !got.HTML || got.BodyBytes != want.BodyBytes || got.Parts < 3 || got.Attachments != 3 || string(got.Subject) != "many" {
			t.Errorf("HTML %v, BodyBytes %d (want %d), Parts %d, Attachments %d, Subject %q",
				got.HTML, got.BodyBytes, want.BodyBytes, got.Parts, got.Attachments, got.Subject)
		}
	}
}

// TestReduceLaw generates hostile messages: floods of fields, long fields,
// structures, padding, broken encodings.
func TestReduceLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := hostileMail{t: t}
		g.entity(0)
		if raw := g.Bytes(); len(raw) <= MaxSize {
			checkView(t, raw)
		}
	})
}

// A hostileMail draws a message.
type hostileMail struct {
	bytes.Buffer
	t *rapid.T
}

// pick draws one of the choices.
func (g *hostileMail) pick(label string, choices ...string) string {
	return rapid.SampledFrom(choices).Draw(g.t, label)
}

// times draws a count: few, or now and then enough to pass a limit.
func (g *hostileMail) times(label string, few, many int) int {
	if rapid.IntRange(0, 5).Draw(g.t, label) == 0 {
		return rapid.IntRange(0, many).Draw(g.t, label+" many")
	}
	return rapid.IntRange(0, few).Draw(g.t, label+" few")
}

func (g *hostileMail) entity(depth int) {
	if depth == 0 {
		g.WriteString(g.pick("from", "", "", "From a@b Mon\n", "From "+strings.Repeat("x", 2000)+"\r\n"))
	}
	newline := g.pick("newline", "\n", "\r\n")
	boundary := ""
	for range g.times("fields", 6, 12) {
		switch g.pick("field", "flood", "flood", "type", "type", "multipart", "encoding", "disposition", "record", "subject", "from", "own", "stray", "long") {
		case "flood":
			field := g.pick("flooded", "a:", "X-F: some words", "Content-Disposition: inline; x="+strings.Repeat("x", 4000), bytesName+": 12", "Subject: again", "-- x: y", "From: a@b\n \n c",
				"stray line\nX: y", "X: =?utf-8?q?=00?=", "X-Hamlet: x", "X-Hamlet-Tag: word", "X-Spam-Flag: YES", "Message-ID: <1@a>")
			n := g.times("flood", 3, 12000)
			n = min(n, 200_000/len(field))
			g.WriteString(strings.Repeat(field+newline, n))
		case "long":
			g.WriteString("X-Long: " + strings.Repeat(g.pick("long value", "é", "x ", "x\n ", "x\r\n\t", "\r"), g.times("length", 20, 40000)) + newline)
		case "type":
			g.WriteString("Content-Type: " + g.pick("type", "text/plain", "text/html", "image/png", "text/html", "text", "message/rfc822", "TEXT/"+strings.Repeat("x", 400)) +
				strings.Repeat(g.pick("dummy", "; x=y", ";\n x=\"\\\"\"", " "), g.times("dummies", 3, 2000)) +
				g.pick("charset", "", "; charset=utf-8", "; charset=\"iso-8859-1\"", "; charset=gb2312", "; charset="+strings.Repeat("c", 5000)) + newline)
		case "multipart":
			boundary = fmt.Sprint(g.pick("boundary", "b", "a:", "b", strings.Repeat("l", 900), "q\\\" "), depth)
			g.WriteString("Content-Type: multipart/" + g.pick("multipart", "mixed", "digest", "alternative") +
				strings.Repeat(g.pick("dummy", "; x=y", ";\n x=\"\\\"\""), g.times("dummies", 3, 2000)) +
				"; boundary=\"" + strings.ReplaceAll(strings.ReplaceAll(boundary, `\`, `\\`), `"`, `\"`) + "\"" + newline)
		case "encoding":
			g.WriteString("Content-Transfer-Encoding:" + strings.Repeat(" \n ", g.times("folds", 2, 2000)) + g.pick("encoding", " base64", " quoted-printable", " 8bit") + newline)
		case "disposition":
			g.WriteString("Content-Disposition: attachment; filename=" + strings.Repeat("f", g.times("name", 9, 9000)) + newline)
		case "record":
			g.WriteString(bytesName + ": " + g.pick("record", "1", "70000", "26214400", "x") + newline)
		case "subject", "from":
			g.WriteString(g.pick("name", "Subject", "From", "SUBJECT ") + ": " +
				strings.Repeat(g.pick("value", "word ", "\xe9", "=?utf-8?q??=\n ", "=?iso-8859-1?q?=E9?= ", "=?utf-8?b?4pyT?=", "=?"), g.times("values", 9, 9000)) + "end" + newline)
		case "own":
			g.WriteString(g.pick("name", "X-Hamlet", "X-Hamlet-Tag", "X-Hamlet-Tag", "x-hamlet-x ", "X-Spam-Status", "Message-ID") + ":" +
				strings.Repeat(" \n ", g.times("folds", 2, 2000)) + g.pick("tag", " word", " \xe9", " =", " end", " =?utf-8", " ?", "") + strings.Repeat(" x", g.times("more", 1, 3000)) + newline)
		case "stray":
			g.WriteString(g.pick("stray", "not a field", ">From x", "\rx", "--b0", strings.Repeat("s ", 40000)) + newline)
		}
	}
	g.WriteString(g.pick("header end", newline, newline, newline, ""))
	if boundary == "" || depth > 3 {
		g.body()
		return
	}
	g.text("preamble", 200)
	repeat := g.times("repeat", 1, 40)
	for range g.times("parts", 3, 6) {
		g.WriteString(newline + "--" + boundary + newline)
		start := g.Len()
		g.entity(depth + 1)
		if part := bytes.Clone(g.Bytes()[start:]); len(part)*repeat < 2<<20 {
			for range repeat {
				g.WriteString(newline + "--" + boundary + newline)
				g.Write(part)
			}
		}
	}
	g.WriteString(g.pick("closing", newline+"--"+boundary+"--"+newline, ""))
	g.text("epilogue", 200)
}

// body writes words behind padding, in some encoding or none.
func (g *hostileMail) body() {
	var b hostileMail
	b.t = g.t
	for range g.times("pieces", 3, 8) {
		b.text("text", 15000)
	}
	switch g.pick("encoded", "identity", "base64", "broken", "quoted") {
	case "base64":
		g.Write(base64Encoding.append(nil, b.Bytes()))
	case "broken":
		g.Write(bytes.ReplaceAll(base64Encoding.append(nil, b.Bytes()), []byte("\n"), []byte(g.pick("break", "!\n", "=\n", "\r\n", " "))))
	case "quoted":
		g.Write(quotedPrintable.append(nil, b.Bytes()))
	default:
		g.Write(b.Bytes())
	}
}

func (g *hostileMail) text(label string, many int) {
	unit := g.pick(label, "word ", "line\r\n", "<!-- -->", "<p a=b>", "<style>", "</style>", "<!--", "-->", "&euro;", "é", "\xe9", "日本", "=\n", "=3D", "=C3=A9", "\n", "--b0\n", "<a href=x&y>", "\x00", "\u0085", "a: b\n", "\x1b$B", "\xb0\xa1")
	g.WriteString(strings.Repeat(unit, g.times(label+" times", 30, many)))
	g.WriteString(g.pick("end", "buy viagra", "cheap", " ", "x\n"))
}
