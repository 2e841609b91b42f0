package gateway

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"hamlet/stream"
	"hamlet/stream/mail"
)

func verdict(d stream.Decision) *stream.Verdict {
	v := &stream.Verdict{
		P: 0.99873, Interval: [2]float64{0.9921, 0.99981}, Decision: d, Margin: 2.1, Identity: "0123456789abcdef0123456789abcdef",
		Model: stream.ModelRef{Name: "default", SHA256: "89abcdef0123456789abcdef"},
	}
	if d != stream.DecideSpam {
		v.P, v.Interval, v.Margin = 0.1, [2]float64{0.00001, 0.2}, -4.03
	}
	return v
}

func TestRewrite(t *testing.T) {
	const field = "X-Hamlet: spam; p=0.9987; lo=0.9921; hi=0.9998; model=default/89abcdef0123; id=0123456789abcdef0123456789abcdef"
	all := Marks{SpamFields: true, Tag: "[SPAM] "}
	for _, c := range []struct {
		name         string
		marks        Marks
		message      string
		header, body string
	}{
		{"plain", Marks{}, "A: 1\nSubject: hi\n\nbody: 1\n", field + "\nA: 1\nSubject: hi\n\n", "body: 1\n"},
		{"CRLF", Marks{}, "A: 1\r\n\r\nx\r\n", field + "\r\nA: 1\r\n\r\n", "x\r\n"},
		{"mbox", Marks{}, "From a@b Mon\nA: 1\n\nx", "From a@b Mon\n" + field + "\nA: 1\n\n", "x"},
		{"forged", Marks{}, "x-hamlet : ham\n folded\nA: 1\n b\nX-Hamlet-Tag: [S]\nX-Spam-Flag: NO\n\nX-Hamlet: ham\n",
			field + "\nA: 1\n b\nX-Spam-Flag: NO\n\n", "X-Hamlet: ham\n"},
		{"all", all, "X-Spam-Flag: NO\nX-Spam-Status: No\nX-Spam-Level: *\nSubject:  hi\n there\nSubject: two\n\nx",
			field + "\nX-Hamlet-Tag: [SPAM]\nX-Spam-Flag: YES\nX-Spam-Status: Yes, score=7.1 required=5.0\n" +
				"X-Spam-Level: *\nSubject: [SPAM] hi\n there\nSubject: two\n\n", "x"},
		{"no subject", Marks{Tag: "[SPAM] "}, "A: 1\n\nx", field + "\nA: 1\n\n", "x"},
		{"tagged before", Marks{Tag: "[SPAM] "}, "Subject: [SPAM] hi\n\nx", field + "\nSubject: [SPAM] hi\n\n", "x"},
		{"stray line", Marks{}, "A: 1\nstray\nX-Hamlet: ham\n\nx", field + "\nA: 1\nstray\n\n", "x"},
		{"stray lines", Marks{}, "A: 1\nstray\nstray\nX-Hamlet: ham\n b\n\nx", field + "\nA: 1\nstray\nstray\n\n", "x"},
		{"no empty line", Marks{}, "A: 1\nstray\nX-Hamlet: ham\n", field + "\nA: 1\nstray\n", ""},
		{"no empty line, text", Marks{}, "A: 1\nstray\nstray\nB: 2\n", field + "\nA: 1\n", "stray\nstray\nB: 2\n"},
		{"no body", Marks{}, "A: 1\n", field + "\nA: 1\n", ""},
		{"no header", Marks{}, "hello world\n", field + "\n\n", "hello world\n"},
		{"empty header", Marks{}, "\nhello\n", field + "\n\n", "hello\n"},
		{"no line end", Marks{}, "A: 1", field + "\nA: 1", ""},
	} {
		got := c.marks.Rewrite([]byte(c.message), verdict(stream.DecideSpam))
		if string(got.Header) != c.header || string(got.Body) != c.body {
			t.Errorf("%s: header\n%q\nwant\n%q\nbody %q, want %q", c.name, got.Header, c.header, got.Body, c.body)
		}
	}
	ham := all.Rewrite([]byte("Subject: hi\n\nx"), verdict(stream.DecideHam))
	want := "X-Hamlet: ham; p=0.1000; lo=1.0e-05; hi=0.2000; model=default/89abcdef0123; id=0123456789abcdef0123456789abcdef\n" +
		"X-Spam-Status: No, score=1.0 required=5.0\nSubject: hi\n\n"
	if string(ham.Header) != want {
		t.Errorf("ham: %q\nwant %q", ham.Header, want)
	}
}

// Whatever is rewritten, its body is the end of the message, the marks are there once,
// and the message is read as before.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte("A: 1\nSubject: hi\n\nbody\n"))
	f.Add([]byte("From x\r\nX-Hamlet: a\r\n b\r\nstray\r\nSubject: =?utf-8?q?a?=\r\n\r\n"))
	f.Add([]byte("no header"))
	f.Fuzz(func(t *testing.T, message []byte) {
		marks := Marks{SpamFields: true, Tag: "[SPAM] "}
		v := verdict(stream.DecideSpam)
		got := marks.Rewrite(message, v)
		if !bytes.HasSuffix(message, got.Body) {
			t.Fatalf("the body changed: %q", got.Body)
		}
		if n := strings.Count(strings.ToLower(string(got.Header)), "\nx-hamlet:") + strings.Count(strings.ToLower(string(got.Header[:min(9, len(got.Header))])), "x-hamlet:"); n != 1 {
			t.Fatalf("%d marks in %q", n, got.Header)
		}
		again := marks.Rewrite(append(bytes.Clone(got.Header), got.Body...), v)
		plain := func(b []byte) string { // ends of lines may be mixed, and a tag is not put twice
			return strings.ReplaceAll(strings.ReplaceAll(string(b), "\r", ""), "X-Hamlet-Tag: [SPAM]\n", "")
		}
		if plain(again.Header) != plain(got.Header) || !bytes.Equal(again.Body, got.Body) {
			t.Fatalf("rewritten twice: %q\nonce: %q", again.Header, got.Header)
		}
	})
}

// Words of any script stay on one short line of ASCII.
func TestWords(t *testing.T) {
	v := verdict(stream.DecideSpam)
	v.Words = []stream.Word{{Text: "prize", Where: "subject", Contribution: 2.314}, {Text: "grüße \"", Where: "text", Contribution: -1}}
	if got, want := (Marks{Words: 5}).words(v), `"prize" +2.31 subject; "gr\u00fc\u00dfe \"" -1.00 text`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for range stream.MaxWords {
		v.Words = append(v.Words, stream.Word{Text: strings.Repeat("字", stream.MaxWordLength/3), Where: "text"})
	}
	if got := (Marks{Words: maxWords}).words(v); len(got) > maxWordsValue || len(got) < maxWordsValue/2 {
		t.Errorf("%d bytes", len(got))
	}
	if got := (Marks{}).words(v); got != "" {
		t.Errorf("no words are wanted, got %s", got)
	}
}

// A message that passes unmarked loses what could be taken for ours, and nothing else.
func TestRewriteUnmarked(t *testing.T) {
	all := Marks{SpamFields: true, Tag: "[SPAM] "}
	for message, want := range map[string]string{
		"A: 1\nX-Hamlet: ham\n folded\nSubject: hi\n\nX-Hamlet: body\n": "A: 1\nSubject: hi\n\nX-Hamlet: body\n",
		"From x\r\nX-Spam-Flag: NO\r\n\r\nx":                            "From x\r\n\r\nx",
		"From x":                                                        "From x", "no header": "no header", "\nhello": "\nhello", "A: 1": "A: 1", "": "",
	} {
		got := all.Rewrite([]byte(message), nil)
		if whole := string(got.Header) + string(got.Body); whole != want {
			t.Errorf("%q: got %q, want %q", message, whole, want)
		}
	}
}

// The identity of a message is the same after it was marked.
func TestMarksKeepTheIdentity(t *testing.T) {
	marks := Marks{SpamFields: true, Tag: "[SPAM] "}
	for _, message := range []string{
		"Message-ID: <a@b>\nSubject: hi\n there\n\nbody\n", "Subject: [SPAM] news\n\nx\n", "Subject: [SPAM]news\n\nx\n",
		"Subject: [SPAM] [SPAM] news\nSubject: two\n\nx\n", "Subject: =?utf-8?q?gr=C3=BC=C3=9Fe?=\n\nx\n", "A: 1\n\nx\n",
	} {
		got := marks.Rewrite([]byte(message), verdict(stream.DecideSpam))
		before, after := mail.Parse([]byte(message)), mail.Parse(append(bytes.Clone(got.Header), got.Body...))
		if mail.Identity("t", &before) != mail.Identity("t", &after) {
			t.Errorf("%q: another identity", message)
		}
		if string(before.Text) != string(after.Text) || strings.TrimSpace(string(before.Subject)) != string(after.Subject) {
			t.Errorf("%q is read as %q, %q", message, after.Subject, after.Text)
		}
	}
}

func TestFormatScore(t *testing.T) {
	for _, c := range []struct {
		score float64
		want  string
	}{{5, "5.0"}, {4.99, "4.9"}, {5.01, "5.0"}, {-95, "-95.0"}, {math.Nextafter(5, 0), "4.9"}, {7.06, "7.1"}, {0.04, "0.0"}} {
		if got := FormatScore(c.score, 5, 1); got != c.want {
			t.Errorf("FormatScore(%v) = %s, want %s", c.score, got, c.want)
		}
	}
}

func TestProbability(t *testing.T) {
	for p, want := range map[float64]string{0: "0.0000", 1: "1.0000", 0.5: "0.5000", 0.99999: "0.99999", 1 - 0x1p-53: "0.9999999999999999", 0.00001: "1.0e-05"} {
		if got := Probability(p); got != want {
			t.Errorf("Probability(%v) = %s, want %s", p, got, want)
		}
	}
}
