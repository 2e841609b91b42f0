package filter_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"hamlet/cmd/internal/filter"
	"hamlet/cmd/internal/filter/filtertest"
	"hamlet/cmd/internal/gateway"
	"hamlet/stream"
)

// The filter takes every header that the gateway makes: of real mail, of mail that is
// hardly mail, and with each kind of mark. What comes out is what the gateway meant.
func TestGatewayMarks(t *testing.T) {
	t.Parallel()
	verdict := &stream.Verdict{Decision: stream.DecideSpam, P: .999, Interval: [2]float64{.99, .9999}}
	kinds := []gateway.Marks{{}, {SpamFields: true}, {SpamFields: true, Tag: "[SPAM] "}}
	messages := append(corpus(t, 20), odd()...)
	for _, marks := range kinds {
		addr := filtertest.Start(t, func(conn net.Conn) {
			request, err := filtertest.Read(conn)
			if err != nil {
				return
			}
			filtertest.Answer(conn, marks.Rewrite(request.Message, verdict).Header)
		})
		for _, message := range messages {
			var out bytes.Buffer
			unmarked, err := filter.Run(config(addr), strings.NewReader(message), &out)
			if err != nil {
				t.Fatal(err)
			}
			want := marks.Rewrite([]byte(message), verdict)
			if whole := string(want.Header) + string(want.Body); unmarked != nil || out.String() != whole {
				t.Errorf("tag %q, message %.300q: %v\ngot  %.300q\nwant %.300q", marks.Tag, message, unmarked, out.String(), whole)
			}
		}
	}
}

// odd returns messages with headers that are broken, cut or absent.
func odd() (messages []string) {
	for _, m := range []string{
		plain, mbox, "x", "a: b", "a: b\n", "a: b\n\n", "\n", "\n\n", "hello\nworld\n", "hello\na: b\n\nbody", " folded\na: b\n\nbody",
		"a: b\nhello\nworld\n", "a: b\nhello\nc: d\n\nbody", "a: b\n hello\nworld\n", "From a\n", "From a\nhello\n", "From a\n\nbody",
		"From a\n folded\na: b\n\nbody", "X-Hamlet: ham\n\nbody", "X-Hamlet: ham\n ham\nhello\nworld\n", "a: b\nX-Spam-Flag: YES\n\tyes\n\nbody",
		"Subject:\n\nbody", "subject : x\n\nbody", "Subject: [SPAM] x\n\nbody", "Subject:\n folded\nSubject: y\n\nbody", "a: b\nSubject: x",
		"a: \x00\xff\x1b\n\nbody", "a: b\n \n\nbody", "a: b\n\t\nc: d\n\nbody", "a: b\n\r\nbody", "a: b\r\n\nbody", "a: b\r\r\n\r\nbody",
		": b\n\nbody", "a b: c\n\nbody", "a: b\na b: c\nd: e\n\nbody", "http://example.org/\n\nbody", strings.Repeat("a: b\n", 20000) + "\nbody",
	} {
		messages = append(messages, m, strings.ReplaceAll(m, "\n", "\r\n"))
	}
	return messages
}

// corpus returns each nth message of the SpamAssassin corpus, or none if it is absent.
func corpus(t *testing.T, nth int) (messages []string) {
	file, err := os.Open("../../../../shared/data/spamassassin/spamassassin.tar.gz")
	if err != nil {
		t.Logf("without real mail: %v", err)
		return nil
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(unzipped)
	for i := 0; ; i++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return messages
		}
		if err != nil {
			t.Fatal(err)
		}
		if i%nth != 0 || header.Typeflag != tar.TypeReg {
			continue
		}
		b, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, string(b))
	}
}
