package questions

import (
	"testing"

	"hamlet/stream"
)

// FuzzDecode: no input makes the decoder panic. All events that it accepts are
// valid, at most maxBatch. An error has a documented code and a text that fits in a
// header.
func FuzzDecode(f *testing.F) {
	for _, seed := range []struct{ contentType, data string }{
		{"message/rfc822", "From: a@example.org\r\nSubject: hello\r\n\r\nHow are you?\r\n"},
		{"message/rfc822", "From x Mon Jan  1 00:00:00 2001\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nhi\n--b--\n"},
		{"message/rfc822", ""},
		{"text/plain", "hello"},
		{"text/plain; charset=utf-8", "gr\xc3\xbc\xc3\x9fe"},
		{"text/plain; charset=\"koi8-r\"", "\xc1"},
		{"application/json", `{"id": "a", "text": "x"}`},
		{"application/json", `[{"mail": "RnJvbTogYUBiCgp4"}, {"vector": {"a": 1e308, "b": -0}}]`},
		{"application/json", ` [ {"text":"x"},{"text":"x"},{"text":"x"},{"text":"x"},{"text":"x"} ]`},
		{"application/json", `{"vector": {"a": 1e999}}`},
		{"application/json", `[[[[`},
		{"image/png", "\x89PNG"},
		{"", ""},
		{"text/", "x"},
	} {
		f.Add(seed.contentType, []byte(seed.data))
	}
	const maxBatch = 4
	f.Fuzz(func(t *testing.T, contentType string, data []byte) {
		r, err := Decode(contentType, "", data, maxBatch)
		if err != nil {
			if err.Code != BadRequest && err.Code != TooLarge {
				t.Errorf("code %d", err.Code)
			}
			if err.Text == "" || len(err.Text) > 2*maxErrorText {
				t.Errorf("text of %d bytes: %q", len(err.Text), err.Text)
			}
			return
		}
		if len(r.Events) > maxBatch || !r.Batch && len(r.Events) != 1 {
			t.Errorf("%d events, batch %v", len(r.Events), r.Batch)
		}
		for i, e := range r.Events {
			if err := e.ValidateRequest(); err != nil {
				t.Errorf("event %d is taken but not valid: %v", i, err)
			}
			if e.Label != stream.Unlabelled {
				t.Errorf("event %d has the label %v", i, e.Label)
			}
		}
	})
}
