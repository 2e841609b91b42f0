package mail

import (
	"bytes"
	"strings"
	"testing"
)

// ownSeeds are messages with fields of ours.
var ownSeeds = []string{
	"X-Hamlet: ham\nSubject: x\nX-Spam-Flag: NO\n\nbody",
	"Subject: [SPAM] =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nX-Hamlet-Tag: [SPAM]\n\nbody",
	"X-Hamlet-Tag: =?\nSubject: =?x\n\nbody",
	"X-Hamlet-Tag:\n a b\nSubject: a\n b c\nMessage-ID: <1@a>\nx-hamlet-score : 1\n\nbody",
	"Subject: =?utf-8?b?W1NQQU1dIHg=?=\nx-hamlet-tag: [SPAM]\nX-Hamlet-Tag: x\n\nbody",
}

func TestValidTag(t *testing.T) {
	for _, tag := range []string{"[SPAM]", "[SPAM] ", " x", "*", strings.Repeat("x", 32), "a = b?", "=", "?="} {
		if err := ValidTag(tag); err != nil {
			t.Errorf("%q: %v", tag, err)
		}
	}
	for _, tag := range []string{"", " ", "   ", strings.Repeat("x", 33), "[SPÄM]", "a\tb", "a\nb", "a\x7f", "\x00", "=?", "a=?b", "\xff"} {
		if err := ValidTag(tag); err == nil {
			t.Errorf("%q is valid", tag)
		}
	}
}

// The fields that we wrote are in no head, wherever they stand and however they are
// written. Those of other filters are left out only beside ours.
func TestOwnFieldsAreNoEvidence(t *testing.T) {
	for _, c := range []struct{ name, raw, head string }{
		{"no field of ours", "X-Spam-Flag: YES\nX-Hamletic: x\nX-Spam-Score: 9\n\nx", "x-spam-flag: YES\nx-hamletic: x\nx-spam-score: 9\n"},
		{"a verdict", "From: a\nX-Hamlet: spam;\n\tp=.99\nTo: b\n\nx", "from: a\nto: b\n"},
		{"in any case, with blanks", "X-HAMLET : spam\nTo: b\nx-hamlet-Reasons:\n x\n\nx", "to: b\n"},
		{"without a verdict", "X-Hamlet-Score: 1\nX-Spam-Level: ***\n\nx", "x-spam-level: ***\n"},
		{"a verdict behind another filter's", "X-Spam-Flag: YES\nx-spam-status:\n Yes\nX-Spam-Level: *\nX-SPAM-SCORE : 1\nX-Spam-Report: r\nX-Spam-Levels: x\nX-Hamlet:\n\nx", "x-spam-report: r\nx-spam-levels: x\n"},
		{"two verdicts", "X-Hamlet: ham\nX-Hamlet: spam\nTo: b\n\nx", "to: b\n"},
		{"in an attached message", "Content-Type: message/rfc822\nX-Spam-Flag: YES\n\nX-Hamlet: spam\n\nx", "content-type: message/rfc822\nx-spam-flag: YES\n"},
	} {
		for _, raw := range [][]byte{[]byte(c.raw), reduced(t, []byte(c.raw))} {
			if m := Parse(raw); string(m.Head) != c.head {
				t.Errorf("%s: the head of %q is %q, want %q", c.name, raw, m.Head, c.head)
			}
		}
	}
}

func TestTags(t *testing.T) {
	for _, c := range []struct{ name, fields, want string }{
		{"in clear", "X-Hamlet-Tag: [SPAM]\nSubject: [SPAM] Hello", "Hello"},
		{"behind the subject", "Subject: [SPAM] Hello\nX-Hamlet-Tag: [SPAM]", "Hello"},
		{"without a blank", "X-Hamlet-Tag: [SPAM]\nSubject: [SPAM]Hello", "Hello"},
		{"with blanks inside", "X-Hamlet-Tag: ** it  may be\nSubject: ** it  may be spam", "spam"},
		{"folded", "X-Hamlet-Tag:\n\t[SPAM]\nSubject:\n [SPAM]\n Hello", "Hello"},
		{"before an encoded word", "X-Hamlet-Tag: [SPAM]\nSubject: [SPAM] =?utf-8?q?Gr=C3=BC=C3=9Fe?=", "Grüße"},
		{"touching an encoded word", "X-Hamlet-Tag: [SPAM]\nSubject: [SPAM]=?utf-8?q?Gr=C3=BC=C3=9Fe?= =?utf-8?q?_an_alle?=", "Grüße an alle"},
		{"before an encoded word that starts with a blank", "X-Hamlet-Tag: [SPAM]\nSubject: [SPAM] =?utf-8?q?_x?=", " x"},
		{"with the end of an encoded word", "X-Hamlet-Tag: ?=\nSubject: ?==?utf-8?q?x?=", "x"},
		{"encoded with the rest", "X-Hamlet-Tag: [SPAM]\nSubject: =?utf-8?q?=5BSPAM=5D_Gr=C3=BC=C3=9Fe?=", "Grüße"},
		{"twice", "X-Hamlet-Tag: [SPAM]\nSubject: [SPAM] [SPAM] x", "[SPAM] x"},
		{"in clear and encoded", "X-Hamlet-Tag: [SPAM]\nSubject: [SPAM] =?utf-8?q?[SPAM]_x?=", "[SPAM] x"},
		{"alone", "X-Hamlet-Tag: [SPAM]\nSubject: [SPAM]", ""},
		{"not there", "X-Hamlet-Tag: [SPAM]\nSubject: Re: [SPAM] x", "Re: [SPAM] x"},
		{"in other letters", "X-Hamlet-Tag: [SPAM]\nSubject: [spam] x", "[spam] x"},
		{"not declared", "X-Hamlet: spam\nSubject: [SPAM] x", "[SPAM] x"},
		{"of 33 bytes", "X-Hamlet-Tag: " + strings.Repeat("x", 33) + "\nSubject: " + strings.Repeat("x", 33), strings.Repeat("x", 33)},
		{"empty", "X-Hamlet-Tag:\nSubject: x", "x"},
		{"not ASCII", "X-Hamlet-Tag: é\nSubject: é x", "é x"},
		{"the first of two", "X-Hamlet-Tag: a\nX-Hamlet-Tag: b\nSubject: b x", "b x"},
		{"the first subject's only", "X-Hamlet-Tag: [SPAM]\nSubject: x\nSubject: [SPAM] y", "x"},
		{"behind 5,000 bytes of folds", "X-Hamlet-Tag:" + strings.Repeat(" \n ", 2000) + "[SPAM]\nSubject: [SPAM] x", "x"},
		{"before a subject of 20,000 bytes", "X-Hamlet-Tag: [SPAM]\nSubject: [SPAM] " + strings.Repeat("wörd ", 3333), strings.Repeat("wörd ", 1365) + "w"},
		{"before 20,000 bytes of encoded words", "X-Hamlet-Tag: [SPAM]\nSubject: [SPAM] " + strings.Repeat("=?utf-8?q?_w=C3=B6rd?=\n ", 1000), strings.Repeat(" wörd", 1000)},
	} {
		const filler = 2000
		fill := strings.Repeat("X-Filler: "+strings.Repeat("x", 60)+"\n", filler)
		for where, raw := range map[string]string{
			"":                               c.fields + "\n\nbody",
			" (behind 140 KB of fields)":     fill + c.fields + "\n\nbody",
			" (between 140 KB of fields)":    strings.Replace(c.fields, "\nSubject", "\n"+fill+"Subject", 1) + "\n\nbody",
			" (before 140 KB of fields)":     c.fields + "\n" + fill + "\nbody",
			" (behind 20,000 other fields)":  strings.Repeat("a:\n", 2*MaxFields) + c.fields + "\n\nbody",
			" (of an image)":                 c.fields + "\nContent-Type: image/png\n\nbody",
			" (with line ends of the wire)":  string(toCRLF([]byte(c.fields + "\n\nbody"))),
			" (with a long text in base64)":  c.fields + "\nContent-Transfer-Encoding: base64\n\n" + strings.Repeat("YWJj\n", 20000),
			" (and a Message-ID of 3,000 B)": c.fields + "\nMessage-ID: <" + strings.Repeat("x", 3000) + ">\n\nbody",
		} {
			checkView(t, []byte(raw))
			for _, raw := range [][]byte{[]byte(raw), reduced(t, []byte(raw))} {
				m := Parse(raw)
				if string(m.Subject) != c.want {
					t.Errorf("%s%s: the subject is %.100q, want %.100q", c.name, where, m.Subject, c.want)
				}
				if !bytes.Contains(m.Head, []byte("subject: "+c.want+"\n")) || bytes.Contains(m.Head, []byte("x-hamlet")) {
					t.Errorf("%s%s: the head is %.300q", c.name, where, m.Head)
				}
			}
		}
	}
}

// A tagged subject loses the tag and nothing else, however it is encoded.
func TestTagsOfEncodedSubjects(t *testing.T) {
	for _, subject := range []string{
		"plain", "=?utf-8?q?Gr=C3=BC=C3=9Fe?=", "=?utf-8?q?_x_?= y", "=?koi8-r?b?8NLJ18XU?=\n =?koi8-r?b?8NLJ18XU?=", "=?utf-8?q?a?= b =?utf-8?q?c?=",
		"=?utf-8?b?4pyT?=", "?= =?", "\n folded", "\xe9t\xe9", "", "=?utf-8?q?broken",
	} {
		want := Parse([]byte("Subject: " + subject + "\n\nx"))
		for _, tag := range []string{"[SPAM]", "[SPAM] ", "=", "=?="[:1] + " ", "?=", "?", "*** a  b ***", "x:"} {
			raw := []byte("X-Hamlet-Tag: " + tag + "\nSubject: " + tag + subject + "\n\nx")
			if got := Parse(raw); !bytes.Equal(got.Subject, want.Subject) || !bytes.Equal(got.Head, want.Head) {
				t.Errorf("with the tag %q the subject %q is %q, without it %q", tag, subject, got.Subject, want.Subject)
			}
			checkView(t, raw)
		}
	}
}
