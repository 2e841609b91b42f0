package embedded

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"hamlet/stream/kafka"
)

// garbage is what an open port may receive: other protocols, and broken requests of
// Kafka's.
var garbage = map[string]string{
	"HTTP":            "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"TLS":             "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"an unknown kind": "\x00\x00\x00\x08\x27\x0f\x00\x00\x00\x00\x00\x01",
	"a negative kind": "\x00\x00\x00\x08\xff\xff\x00\x00\x00\x00\x00\x01",
	"no size":         "\x00\x00\x00\x00\x00\x12\x00\x00",
	"too large":       "\x06\x40\x00\x01\x00\x12\x00\x00",
}

// request asks for the broker's versions (kind 18, version 0, correlation 7, no
// client's name).
const request = "\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x07\xff\xff"

func TestKafkaClosesConnectionsThatSpeakNoKafka(t *testing.T) {
	t.Parallel()
	k, cfg := startTestKafka(t, KafkaOptions{})
	for name, sent := range garbage {
		c, err := net.Dial("tcp", k.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// A request before it is answered, so that the connection is known to work.
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 8)
		if _, err := io.ReadFull(c, answer); err != nil || !bytes.Equal(answer[4:], []byte{0, 0, 0, 7}) {
			t.Fatalf("%s: the request before was answered with %x, %v", name, answer, err)
		}
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil && isTimeout(err) {
			t.Errorf("%s: the connection stays open", name)
		}
	}
	if err := kafka.Ping(t.Context(), cfg); err != nil {
		t.Errorf("after the garbage: %v", err)
	}
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

// FuzzRequests: the accepted bytes do not depend on how they were cut, and good
// requests pass.
func FuzzRequests(f *testing.F) {
	f.Add([]byte(request+request), uint8(3))
	for _, sent := range garbage {
		f.Add([]byte(request+sent), uint8(1))
	}
	f.Fuzz(func(t *testing.T, sent []byte, cut uint8) {
		sameForEveryCut(t, request, sent, int(cut), (*requestChecker).check)
	})
}

// sameForEveryCut fails t if follow's results for a new C, or the C itself afterwards,
// depend on how the bytes were cut, or on a good message before them.
func sameForEveryCut[C comparable](t *testing.T, good string, sent []byte, cut int, follow func(*C, []byte) error) {
	t.Helper()
	var whole, pieces, behind C
	want := follow(&whole, sent)
	var got error
	for p := sent; len(p) > 0 && got == nil; {
		n := min(len(p), 1+cut)
		got = follow(&pieces, p[:n])
		p = p[n:]
	}
	if (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
		t.Fatalf("in pieces of %d: %v, in one: %v", 1+cut, got, want)
	}
	if want == nil && whole != pieces {
		t.Fatalf("in pieces of %d: %+v, in one: %+v", 1+cut, pieces, whole)
	}
	if err := follow(&behind, append([]byte(good), sent...)); (err == nil) != (want == nil) {
		t.Fatalf("behind a good one: %v, alone: %v", err, want)
	}
}
