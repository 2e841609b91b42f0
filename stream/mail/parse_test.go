package mail

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	gomessage "github.com/emersion/go-message"
	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		want      Message
	}{
		{
			"plain, after a From line",
			"From a@b Mon Jan  1 2001\nSUBJECT: Hi\nX-Empty:\n\nbody\nmore\n",
			Message{Head: []byte("From a@b Mon Jan  1 2001\nsubject: Hi\nx-empty: \n"), Subject: []byte("Hi"), Text: []byte("body\nmore\n"), BodyBytes: 10, Parts: 1},
		},
		{
			"CR LF, folded, no Subject",
			"To: a,\r\n\tb\r\n  c\r\n\r\nbody\r\nmore\r\n",
			Message{Head: []byte("to: a, b c\n"), Subject: []byte{}, Text: []byte("body\nmore\n"), BodyBytes: 12, Parts: 1},
		},
		{
			"Subject and From decoded, others as they are",
			"From: =?iso-8859-1?q?Andr=E9?= <a@b>\nSubject: =?utf-8?B?4pyT?=\n =?utf-8?b?4pyT?= x\nTo: =?utf-8?q?x?=\n\n",
			Message{Head: []byte("from: André <a@b>\nsubject: ✓✓ x\nto: =?utf-8?q?x?=\n"), Subject: []byte("✓✓ x"), Text: []byte{}, Parts: 1},
		},
		{
			"a character cut between two words, line ends within one",
			"Subject: =?utf-8?q?=E2=9C?= =?UTF-8?Q?=93=0Ato:_x?=\n\n",
			Message{Head: []byte("subject: ✓ to: x\n"), Subject: []byte("✓ to: x"), Text: []byte{}, Parts: 1},
		},
		{
			"words that are broken or of no known charset stay text",
			"Subject: =?x-none?q?caf=E9?= =?utf-8?z?x?= =?\n\n",
			Message{Head: []byte("subject: café =?utf-8?z?x?= =?\n"), Subject: []byte("café =?utf-8?z?x?= =?"), Text: []byte{}, Parts: 1},
		},
		{
			"eight bits that nobody declared",
			"Subject: caf\xe9\n\n\x93caf\xe9\x94 ✓",
			Message{Head: []byte("subject: café\n"), Subject: []byte("café"), Text: []byte("“café” ✓"), BodyBytes: 10, Parts: 1},
		},
		{
			"quoted-printable HTML",
			"Content-Type: text/html; charset=ISO-8859-1\nContent-Transfer-Encoding: Quoted-Printable\n\n<p>caf=E9=\n s</p>",
			Message{Head: []byte("content-type: text/html; charset=ISO-8859-1\ncontent-transfer-encoding: Quoted-Printable\n"), Subject: []byte{}, Text: []byte("café s"), BodyBytes: 17, HTML: true, Parts: 1},
		},
		{
			"base64 with a mailing list's footer",
			"Content-Transfer-Encoding: base64\nContent-Type: text/plain; charset=iso-2022-jp\n\nGyRCRnxL\nXBsoQg==\n-- \nlist\n",
			Message{Head: []byte("content-transfer-encoding: base64\ncontent-type: text/plain; charset=iso-2022-jp\n"), Subject: []byte{}, Text: []byte("日本\n-- \nlist\n"), BodyBytes: 27, Parts: 1},
		},
		{
			"quoted-printable that is none",
			"Content-Transfer-Encoding: quoted-printable\n\n100=% \x01 =\nsure=3D",
			Message{Head: []byte("content-transfer-encoding: quoted-printable\n"), Subject: []byte{}, Text: []byte("100=% \x01 sure="), BodyBytes: 17, Parts: 1},
		},
		{
			"parts",
			"Content-Type: multipart/mixed;\n boundary=\"a b\"\n\npreamble\n--a b\n\none\n\n--a b  \nContent-Type: IMAGE/png; name=x.png\nContent-Transfer-Encoding: base64\n\nAAAA\n--a b\nContent-Type: text/plain\nContent-Disposition: ATTACHMENT\n\ntwo\n--a b--\nepilogue\n",
			Message{Head: []byte("content-type: multipart/mixed; boundary=\"a b\"\n"), Subject: []byte{}, Text: []byte("one\n[[image/png]]\ntwo"), BodyBytes: 11, Parts: 3, Attachments: 2},
		},
		{
			"an inner multipart that is not closed",
			"Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\none\n--a\n\ntwo\n--a--",
			Message{Head: []byte("content-type: multipart/mixed; boundary=a\n"), Subject: []byte{}, Text: []byte("one\ntwo"), BodyBytes: 6, Parts: 2, Raw: true, Reason: "multipart without its closing boundary"},
		},
		{
			"truncated",
			"Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: text/html\n\none<b",
			Message{Head: []byte("content-type: multipart/mixed; boundary=a\n"), Subject: []byte{}, Text: []byte("one<b"), BodyBytes: 5, HTML: true, Parts: 1, Raw: true, Reason: "multipart without its closing boundary"},
		},
		{
			"multipart without a part",
			"Content-Type: multipart/mixed; boundary=a\n\n<b>one</b>\n--b\n",
			Message{Head: []byte("content-type: multipart/mixed; boundary=a\n"), Subject: []byte{}, Text: []byte("<b>one</b>\n--b\n"), BodyBytes: 15, Parts: 1, Raw: true, Reason: "multipart without its closing boundary"},
		},
		{
			"multipart without a boundary",
			"Content-Type: multipart/mixed\n\n--b\n\none",
			Message{Head: []byte("content-type: multipart/mixed\n"), Subject: []byte{}, Text: []byte("--b\n\none"), BodyBytes: 8, Parts: 1, Raw: true, Reason: "multipart without a boundary"},
		},
		{
			"an attached message",
			"Subject: fwd\nContent-Type: message/rfc822\n\nSubject: inner\nContent-Type: application/zip\n\nPK",
			Message{Head: []byte("subject: fwd\ncontent-type: message/rfc822\n"), Subject: []byte("fwd"), Text: []byte("[[application/zip]]"), BodyBytes: 2, Parts: 1, Attachments: 1},
		},
		{
			"a digest of messages",
			"Content-Type: multipart/digest; boundary=a\n\n--a\n\nSubject: inner\n\none\n--a--",
			Message{Head: []byte("content-type: multipart/digest; boundary=a\n"), Subject: []byte{}, Text: []byte("one"), BodyBytes: 3, Parts: 1},
		},
		{
			"a stray line in the header",
			"Subject: x\n>From y\nTo: z\n\nbody",
			Message{Head: []byte("subject: x\n>From y\nto: z\n"), Subject: []byte("x"), Text: []byte("body"), BodyBytes: 4, Parts: 1, Raw: true, Reason: "header line that is not a field"},
		},
		{
			"a header that runs into the body",
			"Subject: x\nDear friend,\nbuy\n\nnow",
			Message{Head: []byte("subject: x\n"), Subject: []byte("x"), Text: []byte("Dear friend,\nbuy\n\nnow"), BodyBytes: 21, Parts: 1, Raw: true, Reason: "header without an empty line after it"},
		},
		{
			"no header",
			"Dear friend,\nSubject: x\n",
			Message{Head: []byte{}, Subject: []byte{}, Text: []byte("Dear friend,\nSubject: x\n"), BodyBytes: 24, Parts: 1, Raw: true, Reason: "no header"},
		},
		{
			"nothing",
			"",
			Message{Head: []byte{}, Subject: []byte{}, Text: []byte{}, Parts: 1, Raw: true, Reason: "no header"},
		},
		{
			"a content type that is none",
			"Content-Type: text\n\n<b>",
			Message{Head: []byte("content-type: text\n"), Subject: []byte{}, Text: []byte("<b>"), BodyBytes: 3, Parts: 1},
		},
		{
			"what Reduce took out",
			"Content-Type: image/gif\nX-Hamlet-Bytes: 1234\n\n",
			Message{Head: []byte("content-type: image/gif\n"), Subject: []byte{}, Text: []byte("[[image/gif]]"), BodyBytes: 1234, Parts: 1, Attachments: 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Parse([]byte(c.raw))); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", c.raw, diff)
			}
			checkReduce(t, []byte(c.raw))
		})
	}
}

func TestLimits(t *testing.T) {
	parts := []byte("Content-Type: multipart/mixed; boundary=b\n\n")
	for i := range 1200 {
		parts = fmt.Appendf(parts, "--b\n\npart %d\n", i)
	}
	for _, c := range []struct {
		name, reason string
		raw          []byte
		text         string // what must be found in Text
	}{
		{"depth 20", "", nested(20), "innermost"},
		{"depth 21", "nested deeper than 20 levels", nested(21), "--b20\nContent-Type: text/plain\n\ninnermost"},
		{"depth 50", "nested deeper than 20 levels", nested(50), "innermost"},
		{"1,200 parts", "more than 1000 parts", parts, "--b\n\npart 1199"},
		{"20,000 fields", "more than 10000 header fields", append(bytes.Repeat([]byte("a: b\n"), 20000), "\nlast"...), "last"},
		{"25 MiB and more", "larger than 25 MiB: the rest is missing", append([]byte("A: b\n\nfirst"), make([]byte, MaxSize)...), "first"},
		{"too much broken base64", "too much broken base64", append([]byte("Content-Transfer-Encoding: base64\n\n"), bytes.Repeat([]byte("!"), maxLenient+1)...), "!!!!"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := Parse(c.raw)
			checkMessage(t, c.raw, m)
			if m.Reason != c.reason {
				t.Errorf("Reason = %q, want %q", m.Reason, c.reason)
			}
			if !bytes.Contains(m.Text, []byte(c.text)) {
				t.Errorf("%q is not in the text", c.text)
			}
			checkReduce(t, c.raw)
		})
	}
}

func TestDecodedSize(t *testing.T) {
	raw := append([]byte("A: b\n\n"), bytes.Repeat([]byte{0x80}, 100)...) // three bytes each as UTF-8
	m := parse(raw, 2)
	if want := "decoded text is more than 2 times the message"; m.Reason != want || !m.Raw {
		t.Errorf("Reason = %q, want %q", m.Reason, want)
	}
	if len(m.Text) > 2*len(raw) || !bytes.HasPrefix(m.Text, []byte("€€€")) {
		t.Errorf("Text = %q, from %d bytes", m.Text, len(raw))
	}
	if m := Parse(raw); m.Raw || len(m.Text) != 300 {
		t.Errorf("under the real limit: %q, %d bytes", m.Reason, len(m.Text))
	}
}

// An outline is the structure of a message as a plain parser sees it.
type outline struct {
	Types []string // of the parts that are not multiparts
	Texts []string // of those that are plain text, without charset
}

// outlineByLibrary walks a message with go-message alone.
func outlineByLibrary(raw []byte) (outline, error) {
	if bytes.HasPrefix(raw, fromPrefix) {
		raw = raw[lineEnd(raw, 0):]
	}
	var o outline
	entity, err := gomessage.Read(bytes.NewReader(raw))
	if err != nil && !gomessage.IsUnknownCharset(err) {
		return o, err
	}
	err = entity.Walk(func(_ []int, e *gomessage.Entity, err error) error {
		if err != nil && !gomessage.IsUnknownCharset(err) {
			return err
		}
		mediaType, parameters, err := e.Header.ContentType()
		if err != nil {
			return err
		}
		if strings.HasPrefix(mediaType, "multipart/") {
			return nil
		}
		o.Types = append(o.Types, mediaType)
		body, err := io.ReadAll(e.Body)
		if mediaType == "text/plain" && isUTF8Charset([]byte(parameters["charset"])) && isASCII(body) {
			o.Texts = append(o.Texts, strings.ReplaceAll(string(body), "\r\n", "\n"))
		}
		return err
	})
	return o, err
}

// TestCorpusAgainstLibrary compares structure and plain texts with go-message, for all
// messages that go-message can read.
func TestCorpusAgainstLibrary(t *testing.T) {
	compared, refused := 0, 0
	for _, m := range corpus(t) {
		if bytes.Contains(bytes.ToLower(m.raw), []byte("message/rfc822")) {
			continue // the library does not look inside
		}
		want, err := outlineByLibrary(m.raw)
		if err != nil {
			refused++
			continue
		}
		var got outline
		var s scanner
		s.scan(m.raw)
		for i := range s.entities {
			e := &s.entities[i]
			mediaType := strings.ToLower(string(e.mediaType))
			switch {
			case e.kind == multiPart:
				continue
			case mediaType == "":
				mediaType = "text/plain"
			}
			got.Types = append(got.Types, mediaType)
			if mediaType == "text/plain" && isUTF8Charset(e.charset) {
				if text := string(s.appendText(nil, e, s.raw[e.body.start:e.body.end])); isASCII([]byte(text)) {
					got.Texts = append(got.Texts, text)
				}
			}
		}
		compared++
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-go-message +scanner):\n%s", m.name, diff)
		}
	}
	t.Logf("%d messages compared, go-message refuses %d", compared, refused)
	if compared < 5900 {
		t.Errorf("only %d messages were compared", compared)
	}
}

func ExampleParse() {
	m := Parse([]byte("From: shop@example.com\r\nSubject: =?utf-8?q?Caf=C3=A9?=\r\nContent-Type: text/html\r\n\r\nMo<!-- x -->rtgage <a href=http://a.example>now</a>"))
	fmt.Printf("%s%s\nHTML: %v, %d bytes\n", m.Head, m.Text, m.HTML, m.BodyBytes)
	// Output:
	// from: shop@example.com
	// subject: Café
	// content-type: text/html
	// Mortgage http://a.example now
	// HTML: true, 51 bytes
}
