package mail

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func identityOf(raw []byte) string {
	m := Parse(raw)
	return Identity("example.org", &m)
}

// splitFrom cuts a message behind its mbox "From " line.
func splitFrom(raw []byte) (from, message []byte) {
	if bytes.HasPrefix(raw, []byte("From ")) || bytes.HasPrefix(raw, []byte(">From ")) {
		n := lineEnd(raw, 0)
		return raw[:n], raw[n:]
	}
	return nil, raw
}

// prepended returns raw with fields before all others.
func prepended(raw []byte, fields string) []byte {
	if len(raw) == 0 {
		return nil
	}
	from, message := splitFrom(raw)
	return bytes.Join([][]byte{from, []byte(fields), message}, nil)
}

// scoredFields are what a gateway of ours adds.
const scoredFields = "X-Hamlet: spam; p=0.9987; lo=0.9921; hi=0.9998;\n\tmodel=default/0123456789ab; id=0123\n" +
	"X-Spam-Flag: YES\nX-Spam-Status: Yes, score=9.1 required=5.0\nX-Spam-Level: *********\nX-Spam-Score: 9.1\n"

const hopFields = "Return-Path: <a@b.example>\nReceived: from a.example\n\tby b.example; Mon, 1 Jan 2001 00:00:00 +0000\n" +
	"DKIM-Signature: v=1; h=message-id\nX-Spam-Checker: other\n"

// tagged returns raw with a tag before its first subject, or without a subject nothing.
func tagged(raw []byte, tag string) []byte {
	var s scanner
	s.scan(raw)
	for _, f := range s.fields[:s.entities[0].fields.end] {
		if f.known == subjectField {
			value := bytes.TrimLeft(raw[f.colon+1:f.end], " \t")
			raw = bytes.Join([][]byte{raw[:f.colon+1], []byte(" " + tag), value, raw[f.end:]}, nil)
			return prepended(raw, scoredFields+"X-Hamlet-Tag: "+tag+"\n")
		}
	}
	return nil
}

// reduced is Reduce of a message that it accepts.
func reduced(t testing.TB, raw []byte) []byte {
	t.Helper()
	if len(raw) == 0 {
		return nil
	}
	short, err := Reduce(raw)
	if err != nil {
		t.Fatal(err)
	}
	return short
}

func toCRLF(raw []byte) []byte {
	return bytes.ReplaceAll(toLF(raw), []byte("\n"), []byte("\r\n"))
}

func toLF(raw []byte) []byte { return bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n")) }

// The identity of real mail stays on its way. Messages of another Message-ID, subject or
// text have another one.
func TestIdentitiesOfTheCorpus(t *testing.T) {
	seen := map[string]string{}
	for i, m := range corpus(t) {
		parsed := Parse(m.raw)
		want := Identity("example.org", &parsed)
		content := fmt.Sprintf("%q %q %q", parsed.MessageID, parsed.Subject, appendSqueezed(nil, parsed.Text, identityText))
		if other, found := seen[want]; found && other != content {
			t.Errorf("%s has the identity of another message:\n%s\n%s", m.name, content, other)
		}
		seen[want] = content
		if i%6 != 0 {
			continue
		}
		for how, raw := range map[string][]byte{
			"reduced":                       reduced(t, m.raw),
			"after other hops":              prepended(m.raw, hopFields),
			"scored":                        prepended(m.raw, scoredFields),
			"tagged":                        tagged(m.raw, "[SPAM] "),
			"tagged, relayed and reduced":   reduced(t, prepended(tagged(m.raw, "{ham?}"), hopFields)),
			"with line ends as on the wire": toCRLF(m.raw),
			"with bare line feeds":          toLF(m.raw),
			"with other blanks":             otherBlanks(m.raw),
			"in another transfer encoding":  reencoded(m.raw, encoding(1+i%2)),
		} {
			if got := identityOf(raw); len(raw) > 0 && got != want {
				after := Parse(raw)
				t.Errorf("%s has the identity %s, and %s %s: Message-ID %q and %q, subject %q and %q",
					m.name, want, how, got, parsed.MessageID, after.MessageID, parsed.Subject, after.Subject)
			}
		}
		// A model reads nothing of what we wrote.
		if raw := tagged(m.raw, "[SPAM] "); len(raw) > 0 && !bytes.Contains(bytes.ToLower(m.raw), []byte("\nx-spam-")) {
			if after := Parse(raw); !reflect.DeepEqual(after, parsed) {
				t.Errorf("%s: scored and tagged it is\n%.3000q\nand before\n%.3000q", m.name, after.Head, parsed.Head)
			}
		}
	}
	if len(seen) != len(corpus(t)) {
		t.Errorf("%d messages have %d identities", len(corpus(t)), len(seen))
	}
}

// otherBlanks returns a plain text with blanks at the ends of lines and of the message.
func otherBlanks(raw []byte) []byte {
	head, body, plain := plainText(raw)
	if !plain {
		return nil
	}
	return slices.Concat(head, bytes.ReplaceAll(body, []byte("\n"), []byte("  \n")), []byte("\n\n \n"))
}

// reencoded returns a plain text in a transfer encoding.
func reencoded(raw []byte, enc encoding) []byte {
	head, body, plain := plainText(raw)
	if !plain {
		return nil
	}
	field := "Content-Transfer-Encoding: " + enc.name() + "\n"
	return slices.Concat(prepended(head, field), enc.append(nil, body))
}

// plainText splits a message that is one text without HTML and without a transfer encoding.
func plainText(raw []byte) (head, body []byte, plain bool) {
	var s scanner
	s.scan(raw)
	e := &s.entities[0]
	plain = len(s.entities) == 1 && e.kind == textPart && !e.html && e.encoding == identity && s.reason == "" &&
		!bytes.Contains(raw, []byte("\r"))
	return raw[:e.body.start], raw[e.body.start:], plain
}

func TestIdentity(t *testing.T) {
	const base = "Message-ID: <1@a>\nSubject: Lunch today\n\nAt noon?\n"
	long := "Subject: x\n\n" + strings.Repeat("word  ", 1000)
	for _, c := range []struct {
		why, a, b string
		same      bool
	}{
		{"a folded Message-ID", base, "MESSAGE-Id : \r\n <1@a> \nSubject: Lunch today\n\nAt noon?\n", true},
		{"the first Message-ID counts", base, strings.Replace(base, "\n", "\nMessage-ID: <2@a>\n", 1), true},
		{"a Message-ID behind 64 KiB of fields", base, strings.Repeat("X-Filler: "+strings.Repeat("x", 60)+"\n", 2000) + base, true},
		{"a folded subject", base, strings.Replace(base, "Lunch ", "Lunch\n  \t", 1), true},
		{"an encoded subject", base, strings.Replace(base, "Lunch today", "=?utf-8?q?Lunch_today?=", 1), true},
		{"an mbox line", base, "From a@b Mon Jan  1 00:00:00 2001\n" + base, true},
		{"a text beyond what is read", long, long + "end", true},
		{"the same in HTML", base, strings.Replace(base, "\n\nAt noon", "\nContent-Type: text/html\n\n<p>At <b>noon</b>", 1), true},
		{"another Message-ID", base, strings.Replace(base, "<1@a>", "<2@a>", 1), false},
		{"no Message-ID", base, strings.TrimPrefix(base, "Message-ID: <1@a>\n"), false},
		{"another subject", base, strings.Replace(base, "Lunch", "Dinner", 1), false},
		{"another text", base, strings.Replace(base, "noon", "one", 1), false},
		{"an attachment", base, "Content-Type: multipart/mixed; boundary=b\n" + strings.Replace(base, "\n\n", "\n\n--b\n\n", 1) + "--b\nContent-Type: image/png\n\nx\n--b--\n", false},
		{"words that moved from the subject", base, "Message-ID: <1@a>\nSubject: Lunch\n\ntoday At noon?\n", false},
		{"words that moved to the Message-ID", base, "Message-ID: <1@a>Lunch\nSubject: today\n\nAt noon?\n", false},
		{"a word that became two", base, strings.Replace(base, "today", "to day", 1), false},
	} {
		if a, b := identityOf([]byte(c.a)), identityOf([]byte(c.b)); (a == b) != c.same {
			t.Errorf("%s: identities %s and %s, the same is wanted: %v", c.why, a, b, c.same)
		}
	}
	m := Parse([]byte(base))
	if a, b := Identity("a", &m), Identity("b", &m); a == b {
		t.Error("two tenants' copies have one identity")
	}
	if a, b := Identity("", &m), Identity("default", &m); a != b {
		t.Error("no tenant is not the default tenant")
	}
	// Corrections and journals store identities, so they must never change.
	if got, want := Identity("example.org", &m), "a42de958cc74322f5f37b028c4551b63"; got != want {
		t.Errorf("identity %s, want %s", got, want)
	}
}

func TestAppendSqueezed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := make([]byte, r.IntN(40))
		for i := range text {
			text[i] = " \t\n\v\f\rab\xc3\x00\x1f\x0e\xa0"[r.IntN(13)]
		}
		words := bytes.FieldsFunc(text, func(r rune) bool { return r == ' ' || '\t' <= r && r <= '\r' })
		want := append([]byte("x "), bytes.Join(words, []byte(" "))...)
		if got := appendSqueezed([]byte("x "), text, len(text)); !bytes.Equal(got, want) {
			t.Fatalf("%q is squeezed to %q, want %q", text, got, want)
		}
		limit := r.IntN(40)
		want = bytes.TrimRight(want[2:min(len(want), 2+limit)], " ")
		if got := appendSqueezed(nil, text, limit); !bytes.Equal(got, want) {
			t.Fatalf("%q is squeezed to %q of %d bytes, want %q", text, got, limit, want)
		}
	}
}

// FuzzIdentity: Reduce, other hops, and being scored and tagged change no identity, and
// nothing that we write is in the head.
func FuzzIdentity(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if isBlank(raw) || len(raw) > MaxText/2 { // Reduce cuts more, where padding may hide text
			return
		}
		want := identityOf(raw)
		if got := identityOf(reduced(t, raw)); got != want {
			t.Errorf("the identity of %q is %s, and reduced %s", raw, want, got)
		}
		if _, message := splitFrom(raw); fieldColon(message[:lineEnd(message, 0)]) < 0 {
			return // a field would make a header of what is none
		}
		for _, fields := range []string{hopFields, scoredFields} {
			if got := identityOf(prepended(raw, fields)); got != want {
				t.Errorf("the identity of %q is %s, and behind other fields %s", raw, want, got)
			}
		}
		if bytes.Contains(bytes.ToLower(raw), []byte("x-hamlet-tag")) {
			return // it has a tag already
		}
		if raw := tagged(raw, "[SPAM]"); len(raw) > 0 && identityOf(raw) != want {
			t.Errorf("the identity of %q, which is tagged, is not %s", raw, want)
		}
	})
}

func BenchmarkIdentity(b *testing.B) {
	samples := corpus(b)[:1000]
	parsed := make([]Message, len(samples))
	for i, m := range samples {
		parsed[i] = Parse(m.raw)
	}
	b.Run("corpus", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			Identity("example.org", &parsed[i%len(parsed)])
		}
	})
	b.Run("20MB", func(b *testing.B) {
		m := Parse(append([]byte("Subject: x\n\n"), bytes.Repeat([]byte("a line of words\n"), 20<<20/16)...))
		for b.Loop() {
			Identity("example.org", &m)
		}
	})
}

// IdentityOf reads less than Parse, and names the same.
func FuzzIdentityOf(f *testing.F) {
	addSeeds(f)
	long := strings.Repeat("word ", openingBytes/5)
	f.Add([]byte("Message-ID: <a@b>\nSubject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n" + long + "\n--b\n\nmore\n--b--\n"))
	blank := strings.Repeat("w"+strings.Repeat(" ", 60), 80) // little that is compared in much text
	f.Add([]byte("Content-Type: multipart/mixed; boundary=b\n\n--b\n\n" + blank + "\n--b\n\nmore\n--b--\n"))
	f.Add([]byte("Content-Type: text/html\n\n<p>" + strings.Repeat("&#x1F600;", 20)))
	f.Fuzz(func(t *testing.T, raw []byte) { checkIdentityOf(t, raw) })
}

func TestIdentityOfNamesTheCorpus(t *testing.T) {
	for _, s := range corpus(t) {
		checkIdentityOf(t, s.raw)
	}
}

func checkIdentityOf(t *testing.T, raw []byte) {
	t.Helper()
	m := Parse(raw)
	if got, want := IdentityOf("t", raw), Identity("t", &m); got != want {
		t.Errorf("IdentityOf(%.200q) is %s, the identity of what is parsed %s", raw, got, want)
	}
}

// BenchmarkIdentityOf names the corpus with and without parsing all of it.
func BenchmarkIdentityOf(b *testing.B) {
	all := corpus(b)
	b.Run("parsed", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			m := Parse(all[i%len(all)].raw)
			Identity("t", &m)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			IdentityOf("t", all[i%len(all)].raw)
		}
	})
}
