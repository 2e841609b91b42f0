package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestCorpusLaws(t *testing.T) {
	raws := map[string]int{}
	same, reduced, cut := 0, 0, 0
	for _, m := range corpus(t) {
		got := Parse(m.raw)
		checkMessage(t, m.raw, got)
		if got.Raw {
			raws[got.Reason]++
		}
		short, err := Reduce(m.raw)
		if err != nil {
			t.Errorf("%s: reduce: %v", m.name, err)
			continue
		}
		again, err := Reduce(short)
		if err != nil || !bytes.Equal(short, again) {
			t.Errorf("%s: reduced twice, it is another message (%v)", m.name, err)
		}
		if bytes.Equal(short, m.raw) {
			same++
			continue
		}
		reduced++
		after := Parse(short)
		if hasLongText(m.raw) {
			cut++
			after.Text = got.Text
		}
		if diff := cmp.Diff(got, after); diff != "" {
			t.Errorf("%s: parsed after Reduce (-raw +reduced):\n%s", m.name, diff)
		}
	}
	t.Logf("%d pass as they are, %d are reduced, in %d of them a text is cut; raw: %v", same, reduced, cut, raws)
	want := map[string]int{"multipart without its closing boundary": 54}
	if diff := cmp.Diff(want, raws); diff != "" {
		t.Errorf("read as raw text (-want +got):\n%s", diff)
	}
}

// Models have learnt what Parse reads, journals name messages by Identity, and brokers hold what Reduce keeps. So none
// of it changes without a reason and a new digest, which a failure prints. It is that of the parser at 5458f543, of
// November 2026, before it read by words.
func TestCorpusDigest(t *testing.T) {
	sum := sha256.New()
	for _, sample := range corpus(t) {
		for _, raw := range [][]byte{sample.raw, bytes.ReplaceAll(sample.raw, []byte("\n"), []byte("\r\n"))} {
			m := Parse(raw)
			fmt.Fprintf(sum, "%q %q %q %q %d %t %d %d %q %s\n", m.Head, m.Subject, m.MessageID, m.Text, m.BodyBytes, m.HTML,
				m.Parts, m.Attachments, m.Reason, Identity("", &m))
			short, err := Reduce(raw)
			fmt.Fprintf(sum, "%q %v\n", short, err)
		}
	}
	const want = "2efe6024755cffb6c6439a6ccc4af6b088101524bea8e8fd8177878961a4ee89"
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
}

// hasLongText reports whether Reduce will cut a text of raw.
func hasLongText(raw []byte) bool {
	var s scanner
	s.scan(raw)
	for _, e := range s.entities {
		if e.kind == textPart && e.body.len() > MaxText {
			return true
		}
	}
	return false
}

// checkMessage checks what holds for every message.
func checkMessage(t *testing.T, raw []byte, m Message) {
	t.Helper()
	switch {
	case m.Subject == nil:
		t.Errorf("Subject is nil for %.200q", raw)
	case !utf8.Valid(m.Head) || !utf8.Valid(m.Subject) || !utf8.Valid(m.Text):
		t.Errorf("not UTF-8: head %v, subject %v, text %v, for %.200q", utf8.Valid(m.Head), utf8.Valid(m.Subject), utf8.Valid(m.Text), raw)
	case len(m.Head) > MaxHead:
		t.Errorf("Head has %d bytes for %.200q", len(m.Head), raw)
	case m.Raw != (m.Reason != ""):
		t.Errorf("Raw is %v, Reason %q for %.200q", m.Raw, m.Reason, raw)
	case len(m.Text) > maxGrowth*len(raw):
		t.Errorf("%d bytes of text from %d", len(m.Text), len(raw))
	case m.Attachments > m.Parts || m.Parts > MaxParts || m.BodyBytes < 0:
		t.Errorf("Parts %d, Attachments %d, BodyBytes %d for %.200q", m.Parts, m.Attachments, m.BodyBytes, raw)
	}
}

func BenchmarkParse(b *testing.B) {
	samples := corpus(b)
	var total int64
	for _, m := range samples {
		total += int64(len(m.raw))
	}
	b.SetBytes(total / int64(len(samples)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		Parse(samples[i%len(samples)].raw)
		i++
	}
}

func BenchmarkReduce(b *testing.B) {
	samples := corpus(b)
	var total int64
	for _, m := range samples {
		total += int64(len(m.raw))
	}
	b.SetBytes(total / int64(len(samples)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := Reduce(samples[i%len(samples)].raw); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// TestParseConcurrently checks that scratch is never shared: four goroutines
// read the same mail in different order and find the same.
func TestParseConcurrently(t *testing.T) {
	samples := corpus(t)[:400]
	want := make([]Message, len(samples))
	for i, m := range samples {
		want[i] = Parse(m.raw)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range samples {
				i = (i*7 + g*50) % len(samples)
				if got := Parse(samples[i].raw); !reflect.DeepEqual(got, want[i]) {
					t.Errorf("%s: among others it is\n%.300q,\nalone\n%.300q", samples[i].name, got.Text, want[i].Text)
				}
			}
		})
	}
	wg.Wait()
}
