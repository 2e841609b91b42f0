package httpdoor

import (
	"net/http"
	"reflect"
	"testing"

	"hamlet/cmd/internal/process/tokens"
	"hamlet/stream"
)

// No JSON makes decode panic. What it takes can be scored, is of a tenant that the caller
// may speak for, and comes back from the pieces as it was, in order.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"text":"x"}`, `[{"id":"1","text":"x"},{"vector":{"a":1,"b":-0}}]`, `{"mail":"U3ViamVjdDogeAoKeQo=","tenant":"a"}`, `[]`, ` [ {"text":"<&>"} ] `,
		`{"text":"x","tenant":"b"}`, `{"text":"x","label":"spam"}`, `[{}]`, `{`, ``, `[{"text":"x"}] x`, `{"text":"x","time":"2026-11-20T10:00:00.5+02:00"}`,
	} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, operator bool) {
		from := caller{tenant: "a"}
		if operator {
			from.rights = tokens.Everything(tokens.ByOperator)
		}
		q, err := decode(from, data)
		if err != nil {
			switch code := refusalOf(err).code; code {
			case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge:
			default:
				t.Fatalf("%d: %v", code, err)
			}
			return
		}
		if len(q.events) > maxBatch || !q.batch && len(q.events) != 1 {
			t.Fatalf("%d events, batch %v", len(q.events), q.batch)
		}
		for i := range q.events {
			if e := &q.events[i]; e.ValidateRequest() != nil || !operator && e.Tenant != "a" {
				t.Fatalf("event %d: %+v", i, e)
			}
		}
		var back []stream.Event
		for p, err := range q.pieces(maxPieceEvents) {
			if err != nil {
				t.Fatal(err)
			}
			if p.first != len(back) || p.events > maxPieceEvents || p.events > 1 && len(p.body) > maxPiece+1 {
				t.Fatalf("piece of %d events and %d bytes at %d of %d", p.events, len(p.body), p.first, len(back))
			}
			again, err := decode(caller{rights: tokens.Everything(tokens.ByOperator), tenant: "other"}, p.body)
			if err != nil || again.batch != q.batch || len(again.events) != p.events {
				t.Fatalf("%s: %d events, batch %v, %v", p.body, len(again.events), again.batch, err)
			}
			back = append(back, again.events...)
		}
		if len(back) != len(q.events) || len(back) > 0 && !reflect.DeepEqual(back, q.events) {
			t.Fatalf("%+v became %+v", q.events, back)
		}
	})
}
