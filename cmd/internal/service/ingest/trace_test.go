package ingest

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hamlet/stream"
)

// The trace of a request is in each record that it makes. A malformed one is passed over.
func TestTraceOfRequests(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for sent, want := range map[string]string{trace: trace, "00-mallory": "", "": ""} {
		var kept published
		h := NewHTTP(HTTPConfig{Events: &kept, Token: "operator", Log: slog.New(slog.DiscardHandler)})
		server := httptest.NewServer(h)
		defer server.Close()
		const events = `{"id":"1","label":"spam","text":"x"}` + "\n" + `{"id":"2","label":"ham","text":"y"}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(events))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer operator")
		r.Header.Set("Content-Type", contentTypeNDJSON)
		if sent != "" {
			r.Header.Set(stream.HeaderTrace, sent)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusAccepted || len(kept.records) != 2 {
			t.Fatalf("%s, %d records", answer.Status, len(kept.records))
		}
		for i := range kept.records {
			if got, _ := stream.FindHeader(kept.records[i].Headers, stream.HeaderTrace); got != want {
				t.Errorf("%q became %q, want %q", sent, got, want)
			}
		}
	}
}

// A copy of a feed's record carries its trace on.
func TestTraceOfCopies(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	c := copier{cfg: &CopyConfig{Source: "desk", Tenants: []string{"t"}}}
	e := stream.Event{ID: "1", Tenant: "t", Label: stream.Spam, Body: stream.Body{Kind: stream.Text, Text: "x"}}
	r, err := Record(&e)
	if err != nil {
		t.Fatal(err)
	}
	r.Headers = stream.Trace(trace).AppendHeader(r.Headers)
	out, err := c.copy(&r)
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.RecordTrace(out.Headers); got != trace {
		t.Errorf("the copy has the trace %q", got)
	}
}
