package filter

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestMatch has the odd messages, with headers that a door may answer.
func TestMatch(t *testing.T) {
	const x = "X-Hamlet: spam\n"
	for _, c := range []struct {
		message, header string
		body            string
		wrong           bool
	}{
		{message: "a: b\n\nbody", header: x + "a: b\n\n", body: "body"},
		{message: "a: b\n\nbody", header: "a: b\n" + x + "\n", body: "body"},
		{message: "a: b\n\n", header: x + "a: b\n\n", body: ""},
		{message: "a: b\n\n\n", header: x + "a: b\n\n", body: "\n"},
		{message: "From a\na: b\n\nbody", header: "From a\n" + x + "a: b\n\n", body: "body"},
		{message: ">From a\na: b\n\nbody", header: ">From a\n" + x + "a: b\n\n", body: "body"},
		{message: "From a\na: b\n\nbody", header: x + "From a\na: b\n\n", wrong: true},
		{message: "From a\na: b\n\nbody", header: x + "a: b\n\n", wrong: true},

		// Marks from outside go, in any spelling, with the lines that continue them.
		{message: "x-HAMLET : ham\n ham\na: b\nX-Spam-Level: *\n\nbody", header: x + "a: b\n\n", body: "body"},
		{message: "X-Hamlet: ham\n ham\na: b\n\nbody", header: x + " ham\na: b\n\n", body: "body"}, // a mark's own
		{message: "a: b\nX-Hamlet: ham\n ham\n\nbody", header: x + "a: b\n ham\n\n", wrong: true},
		{message: "X-Hamlets: 3\na: b\n\nbody", header: x + "a: b\n\n", wrong: true},
		{message: "a: b\n\nX-Hamlet: in the body\n", header: x + "a: b\n\n", body: "X-Hamlet: in the body\n"},

		// The tag.
		{message: "Subject: b\n\nbody", header: "Subject: [SPAM] b\n\n", body: "body"},
		{message: "SUBJECT :b\n\nbody", header: "SUBJECT : [SPAM] b\n\n", body: "body"},
		{message: "Subject:\n b\n\nbody", header: "Subject: [SPAM] \n b\n\n", body: "body"},
		{message: "Subject: b\nSubject: c\n\nbody", header: "Subject: [SPAM] b\nSubject: c\n\n", body: "body"},
		{message: "Subject: b\nSubject: c\n\nbody", header: "Subject: [SPAM] b\nSubject: [SPAM] c\n\n", wrong: true},
		{message: "a: b\n\nbody", header: "a: b\nSubject: [SPAM]\n\n", body: "body"},
		{message: "a: b\n\nbody", header: "a: b\nSubject: [SPAM]\nSubject: [SPAM]\n\n", wrong: true},
		{message: "a: b\n\nbody", header: "a: b\nSubject: " + strings.Repeat("x", 999) + "\n\n", wrong: true},
		{message: "Subject: b\n\nbody", header: "subject: b\n\n", wrong: true},
		{message: "Subject: b\n\nbody", header: "Subject: " + strings.Repeat("x", 999) + "b\n\n", wrong: true},

		// No header, no body, no empty line, no line end.
		{message: "hello\n\nbody", header: x + "\n", body: "hello\n\nbody"},
		{message: "hello\n\nbody", header: x + "\nhello\n\n", body: "body"},
		{message: "hello\n\nbody", header: x + "\nhallo\n\n", wrong: true},
		{message: " hello\n\nbody", header: x + "\n", body: " hello\n\nbody"},
		{message: " hello\n\nbody", header: x, wrong: true}, // the text would continue the mark
		{message: "hello\n\nbody", header: x, wrong: true},
		{message: "\nbody", header: x + "\n", body: "body"},
		{message: "From a\nhello", header: "From a\n" + x + "\n", body: "hello"},
		{message: "a: b\nhello\nworld", header: x + "a: b\n", body: "hello\nworld"},
		{message: "a: b\nhello\nworld", header: x + "a: b\n\n", wrong: true},
		{message: "a: b\nX-Hamlet: ham\nhello\n", header: x + "a: b\n", body: "hello\n"},
		{message: "a: b\ngarbage\nc: d\n\nbody", header: x + "a: b\ngarbage\nc: d\n\n", body: "body"},
		{message: "a: b\nc: d\n\nbody", header: x + "a: b\n", wrong: true},
		{message: "a: b\n", header: x + "a: b\n\n", body: ""},
		{message: "a: b\n", header: x + "a: b\n", body: ""},
		{message: "a: b", header: x + "a: b\n", body: ""},
		{message: "a: b", header: x + "a: b", body: ""},
		{message: "a: b\n", header: x + "a: b", wrong: true},
		{message: "0", header: "\r", wrong: true},
		{message: "a: b", header: x + "a: b\r\n\r\n", body: ""},
		{message: "a: b", header: x + "a: b\n c\n", wrong: true},
		{message: "a: b\nX-Hamlet: ham", header: x + "a: b\n", body: ""},
		{message: "From a", header: "From a\n" + x + "\n", wrong: true},

		{message: "a: b\r\n\r\nbody", header: "X-Hamlet: spam\r\na: b\r\n\r\n", body: "body"},
		{message: "a: b\r\n\r\nbody", header: "X-Hamlet: spam\r\na: b\r\n\n", wrong: true},
		{message: "a: b\n\nbody", header: "", wrong: true},
		{message: "a: b\n\nbody", header: "X-Hamlet: no line end", wrong: true},
		{message: "a: b\n\nbody", header: "\n", wrong: true},
	} {
		body, err := match([]byte(c.message), []byte(c.header))
		if (err != nil) != c.wrong || string(body) != c.body {
			t.Errorf("message %q, header %q: body %q (%v), want %q, wrong: %v", c.message, c.header, body, err, c.body, c.wrong)
		}
	}
}

// FuzzAnswer checks that no answer makes the filter write anything but the message and
// marks. The oracle knows nothing of headers: it compares lines.
func FuzzAnswer(f *testing.F) {
	add := func(message, header string) {
		f.Add([]byte(fmt.Sprintf("SPAMD/1.1 0 EX_OK\r\nContent-length: %d\r\n\r\n%s", len(header), header)), []byte(message))
	}
	add("a: b\nSubject: c\n d\n\nbody\n", "X-Hamlet: spam\na: b\nSubject: [SPAM] c\n d\n\n")
	add("From a\r\nX-Spam-Flag: YES\r\nfoo\r\na: b\r\n", "From a\r\nfoo\r\nX-Hamlet: ham\r\na: b\r\n\r\n")
	add("hello\n\nbody", "X-Hamlet: spam\n\n")
	add("a: b\nhello\nworld", "X-Hamlet: ham\na: b\n")
	f.Add([]byte("SPAMD/1.0 0 x\n\nX-Hamlet: spam\na: b\n\n"), []byte("a: b\n\nbody"))
	f.Fuzz(func(t *testing.T, answer, message []byte) {
		header, err := readAnswer(bytes.NewReader(answer), len(message)+maxAdded)
		if err != nil {
			return
		}
		body, err := match(message, header)
		if err != nil {
			return
		}
		got, want := unmarked(string(header)+string(body)), unmarked(string(message))
		if !equalMail(got, want) {
			t.Errorf("message %q, header %q, body %q:\n%q is not\n%q", message, header, body, got, want)
		}
	})
}

// unmarked returns the lines of a text without marks and what continues them.
func unmarked(text string) (lines []string) {
	inMark := false
	for l := range strings.Lines(text) {
		before, _, colon := strings.Cut(strings.ToLower(l), ":")
		before = strings.TrimRight(before, " \t")
		folded := l[0] == ' ' || l[0] == '\t'
		inMark = inMark && folded || colon && !strings.ContainsAny(before, " \t") &&
			(before == "x-hamlet" || strings.HasPrefix(before, "x-hamlet-") || strings.HasPrefix(before, "x-spam-"))
		if !inMark {
			lines = append(lines, l)
		}
	}
	return lines
}

// equalMail reports whether got is want but for one tag, or one subject more, one empty
// line more, and a line end at the end.
func equalMail(got, want []string) bool {
	tag, empty := 1, 1
	for len(got) > 0 {
		if len(want) > 0 && got[0] == want[0] {
			got, want = got[1:], want[1:]
			continue
		}
		isSubject := strings.HasPrefix(strings.ToLower(got[0]), "subject")
		switch {
		case len(want) == 1 && strings.TrimRight(got[0], "\r\n") == strings.TrimRight(want[0], "\r\n") && !strings.HasSuffix(want[0], "\n"):
			got, want = got[1:], want[1:]
		case empty > 0 && strings.Trim(got[0], "\r\n") == "":
			got, empty = got[1:], 0
		case tag > 0 && isSubject && len(want) > 0 && strings.HasPrefix(strings.ToLower(want[0]), "subject") &&
			strings.HasSuffix(got[0], strings.TrimLeft(want[0][strings.IndexByte(want[0], ':')+1:], " \t")):
			got, want, tag = got[1:], want[1:], 0
		case tag > 0 && isSubject:
			got, tag = got[1:], 0
			for len(got) > 0 && (got[0][0] == ' ' || got[0][0] == '\t') && !slices.Contains(want[:min(1, len(want))], got[0]) {
				got = got[1:]
			}
		default:
			return false
		}
	}
	return len(want) == 0
}
