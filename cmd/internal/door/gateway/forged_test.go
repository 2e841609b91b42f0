package gateway

import (
	"bytes"
	"slices"
	"testing"

	"hamlet/stream/mail"
)

// Fields that a sender forges behind a stray line, in a message without an empty line, go: the model
// reads them.
func TestForgedBehindAStrayLine(t *testing.T) {
	raw := []byte("From: a@b\r\nSubject: [Win] cheap\r\nstray line\r\nX-Hamlet-Tag: [Win]\r\n" +
		"X-Hamlet: ham; p=0.0001\r\nX-Spam-Flag: NO\r\nTo: c@d\r\n")
	marks := Marks{SpamFields: true}
	if !marks.forged(raw) {
		t.Error("nothing is forged")
	}
	out := marks.Rewrite(raw, nil)
	for _, name := range []string{"X-Hamlet", "X-Spam-Flag"} {
		if whole := slices.Concat(out.Header, out.Body); bytes.Contains(whole, []byte(name)) {
			t.Errorf("%s passes: %q", name, whole)
		}
	}
	if got := mail.Parse(slices.Concat(out.Header, out.Body)).Subject; !bytes.Contains(got, []byte("[Win]")) {
		t.Errorf("the subject is read as %q", got)
	}
}
