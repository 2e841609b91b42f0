package state

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestPromotionBytes(t *testing.T) {
	p := Promotion{Model: "cand-2", Since: time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC), By: "root@host"}
	b, err := p.AppendBinary([]byte("x"))
	const want = `x{"version":1,"model":"cand-2","since":"2026-11-23T20:00:00Z","by":"root@host"}`
	if err != nil || string(b) != want {
		t.Fatalf("%s, %v; want %s", b, err, want)
	}
	var got Promotion
	if err := got.UnmarshalBinary(b[1:]); err != nil || got != p {
		t.Errorf("read %+v, %v", got, err)
	}
	for _, bad := range []Promotion{{}, {Model: "A"}, {Model: strings.Repeat("a", 65)}, {Model: "a", By: strings.Repeat("b", 257)}} {
		if b, err := bad.AppendBinary(nil); err == nil || len(b) > 0 {
			t.Errorf("%+v was written: %s", bad, b)
		}
	}
	for _, text := range []string{
		``, `{}`, `cand`, `{"version":1}`, `{"version":2,"model":"cand"}`, `{"version":1,"model":"cand","more":1}`,
		`{"version":1,"model":"c}d"}`, `{"version":1,"model":"cand"}{}`, `{"version":1,"model":"cand"}}}`, `{"version":1,"model":"cand"}]`, `{"version":1,"model":"cand","by":"` + strings.Repeat("b", 1000) + `"}`,
	} {
		before := got
		if err := got.UnmarshalBinary([]byte(text)); !errors.Is(err, ErrCorrupt) || got != before {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

func FuzzPromotion(f *testing.F) {
	f.Add([]byte(`{"version":1,"model":"cand","since":"2026-11-23T20:00:00Z","by":"root@host"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p, again Promotion
		if p.UnmarshalBinary(b) != nil {
			return
		}
		written, err := p.AppendBinary(nil)
		if err != nil { // what JSON escapes is longer
			return
		}
		if err := again.UnmarshalBinary(written); err != nil || again != p {
			t.Errorf("%q: %+v, then %+v, %v", b, p, again, err)
		}
	})
}
