package mail

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// seeds are small messages, one for each way through the parser.
var seeds = []string{
	"",
	"\n",
	"From a@b Mon Jan  1 00:00:00 2001\nSubject: x\n\nbody\n",
	">From a@b\r\nSubject: =?utf-8?B?4pyT?= =?utf-8?q?=E2=9C=93?=\r\n folded\r\n\r\nbody\r\n.\r\n",
	"Subject: a\nnot a field\nTo: b\n\nbody",
	"Subject: a\nnot a field\nnor this",
	"Content-Type: text/html; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n<p>caf=E9=\n</p>",
	"Content-Type: text/plain; charset=\"iso-2022-jp\"\nContent-Transfer-Encoding: base64\n\nGyRCRnxLXBsoQg==\n-- \nfooter\n",
	"Content-Type: multipart/mixed; boundary=b\n\npreamble\n--b\n\none\n--b\nContent-Type: image/png; name=x\nContent-Transfer-Encoding: base64\n\nAAAA\n--b--\nepilogue\n",
	"Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: multipart/alternative;\n\tboundary=\"b \\\"c\"\n\n--b \"c\n\none\n--a\nX-Hamlet-Bytes: 7\n\ntwo",
	"Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: inner\n\ntext\n--b--\n",
	"Content-Type: message/rfc822\n\nSubject: inner\nContent-Type: application/x\n\nbinary",
	"Content-Type: multipart/mixed; boundary*0=a; boundary*1=b\n\n--ab\n\none\n--ab--",
	"Content-Type: image/gif\nX-Hamlet-Bytes: 12\nx-hamlet-bytes: 13\n\nGIF89a",
	"Content-Type: multipart/mixed; boundary=b\n\nno part",
	"Content-Disposition: attachment\nContent-Type: text\n\nx",
	"random \x00\xff\xfe bytes: \x80\n",
}

func addSeeds(f *testing.F) {
	for _, s := range slices.Concat(seeds, ownSeeds) {
		f.Add([]byte(s))
	}
	f.Add(nested(25))
}

func FuzzParse(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		m := Parse(raw)
		checkMessage(t, raw, m)
		if !bytes.Equal(before, raw) {
			t.Errorf("Parse changed its input from %q to %q", before, raw)
		}
		if diff := cmp.Diff(m, Parse(raw)); diff != "" {
			t.Errorf("Parse(%q) differs from call to call:\n%s", raw, diff)
		}
	})
}

// The fields of a header are its bytes, one after the other, and so are the pieces of a message. What
// Parse takes for the header begins with the same fields.
func FuzzFields(f *testing.F) {
	addSeeds(f)
	f.Add([]byte("From: a@b\r\nstray line\r\nX-Hamlet-Tag: [Win]\r\n"))
	f.Add([]byte("A: 1\r\n\tb\r\n c\n: no name\n d\nE \t: 2\n\r\r\nX: 3\r\n\r\nbody"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := SplitHeader(raw)
		if whole := slices.Concat(s.From, s.Header, s.Empty, s.Body); !bytes.Equal(whole, raw) {
			t.Errorf("SplitHeader(%q) makes %q", raw, whole)
		}
		if len(s.Empty) > 0 != isEmptyLine(s.Empty) {
			t.Errorf("SplitHeader(%q): %q is no empty line", raw, s.Empty)
		}
		var whole []byte
		for field := range Fields(s.Header) {
			whole = append(whole, field.Bytes...)
			name := field.Name()
			if (len(name) > 0) != (field.Colon > 0 && field.Colon <= maxName) || !bytes.HasPrefix(field.Bytes, name) ||
				bytes.ContainsAny(name, ": \t\r\n") {
				t.Errorf("%q has a field %q with the name %q", raw, field.Bytes, name)
			}
		}
		if !bytes.Equal(whole, s.Header) {
			t.Errorf("the fields of %q are %q", s.Header, whole)
		}
		var sc scanner
		sc.scan(raw)
		if own := sc.bytes(sc.entities[0].header); !bytes.HasPrefix(s.Header, own) {
			t.Errorf("Parse takes %q for the header of %q, SplitHeader %q", own, raw, s.Header)
		}
	})
}

func FuzzReduce(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) { checkReduce(t, raw) })
}

// checkReduce checks what holds for Reduce on every input.
func checkReduce(t *testing.T, raw []byte) {
	t.Helper()
	before := bytes.Clone(raw)
	reduced, err := Reduce(raw)
	if err != nil {
		if errors.Is(err, ErrEmpty) != isBlank(raw) || errors.Is(err, ErrTooLarge) != (len(raw) > MaxSize) {
			t.Errorf("Reduce(%.200q): %v", raw, err)
		}
		return
	}
	again, err := Reduce(reduced)
	switch {
	case !bytes.Equal(before, raw):
		t.Errorf("Reduce changed its input %.200q", before)
	case err != nil:
		t.Errorf("Reduce(%.200q) = %.200q, which it refuses: %v", raw, reduced, err)
	case !bytes.Equal(reduced, again):
		t.Errorf("Reduce(%.300q)\n     = %.300q\n then %.300q", raw, reduced, again)
	case len(reduced) > MaxReduced:
		t.Errorf("Reduce(%.200q) has %d bytes, from %d", raw, len(reduced), len(raw))
	}
	if len(raw) < maxGap { // nothing is cut, and only what is not text goes
		want, got := Parse(raw), Parse(reduced)
		if bytes.Contains(bytes.ToLower(raw), []byte("x-hamlet-bytes")) {
			// A forged record is removed, with a stray line before it.
			got.Raw, got.Reason = want.Raw, want.Reason
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Parse of %q\nand of  %q (-raw +reduced):\n%s", raw, reduced, diff)
		}
	}
}
