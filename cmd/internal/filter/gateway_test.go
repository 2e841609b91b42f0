package filter_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/filter"
	"hamlet/cmd/internal/gateway"
	"hamlet/cmd/internal/gateway/spamd"
	"hamlet/stream"
)

// A scorer calls everything spam.
type scorer struct{}

var spamVerdict = stream.Verdict{Decision: stream.DecideSpam, P: .999, Interval: [2]float64{.99, .9999},
	Model: stream.ModelRef{Name: "default", SHA256: strings.Repeat("0123456789abcdef", 4)}}

func (scorer) Score(context.Context, string, string, []byte, string, bool) ([]stream.Verdict, error) {
	return []stream.Verdict{spamVerdict}, nil
}

func (scorer) Info(context.Context) (stream.Info, error) { return stream.Info{}, nil }

// openDoor opens the gateway's spamd door until the test ends, and returns its address.
func openDoor(t *testing.T, marks gateway.Marks) string {
	t.Helper()
	g, err := gateway.New(gateway.Config{Client: scorer{}, Marks: marks, Deadline: patient})
	if err != nil {
		t.Fatal(err)
	}
	door := g.Door("spamd")
	server, err := spamd.New(door, spamd.Config{})
	if err != nil {
		t.Fatal(err)
	}
	addr := "unix:" + filepath.Join(t.TempDir(), "spamd.sock")
	l, err := gateway.Listen(addr, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- door.Serve(ctx, l, server.Handle) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return addr
}

// The filter takes every header that the gateway's door answers: of real mail, of mail
// that is hardly mail, and with each kind of mark. What comes out is what the gateway
// meant.
func TestGatewayMarks(t *testing.T) {
	t.Parallel()
	messages := append(corpus(t, 20), odd()...)
	for _, marks := range []gateway.Marks{{}, {SpamFields: true}, {SpamFields: true, Tag: "[SPAM] "}} {
		addr := openDoor(t, marks)
		for _, message := range messages {
			var out bytes.Buffer
			unmarked, err := filter.Run(config(addr), strings.NewReader(message), &out)
			if err != nil {
				t.Fatal(err)
			}
			if unmarked != nil {
				t.Errorf("tag %q, message %.300q: %v", marks.Tag, message, unmarked)
				continue
			}
			verdict := spamVerdict
			if _, after, ok := strings.Cut(out.String(), "; id="); ok {
				verdict.Identity = strings.TrimSpace(strings.SplitN(after, "\n", 2)[0])
			}
			want := marks.Rewrite([]byte(message), &verdict)
			if whole := string(want.Header) + string(want.Body); out.String() != whole {
				t.Errorf("tag %q, message %.300q:\ngot  %.300q\nwant %.300q", marks.Tag, message, out.String(), whole)
			}
		}
	}
}

// odd returns messages with headers that are broken, cut or absent.
func odd() (messages []string) {
	for _, m := range []string{
		plain, mbox, "x", "a: b", "a: b\n", "a: b\n\n", "\nbody", "\n\nbody", "hello\nworld\n", "hello\na: b\n\nbody", " folded\na: b\n\nbody",
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
