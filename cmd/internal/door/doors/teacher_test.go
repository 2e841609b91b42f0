package doors

import (
	"context"
	"fmt"
	"testing"
	"time"

	"hamlet/cmd/internal/service/ingest"
	"hamlet/stream"
)

// The label of a mail that chance has chosen says so.
func TestTeacherAsks(t *testing.T) {
	asked := 0
	const ask = ingest.Asking(0.5)
	to := Teacher{Ask: ask, Events: appender(func(records []stream.Record) error {
		for _, r := range records {
			if e, err := stream.DecodeRecord(r.Headers, r.Value); err != nil || (e.Sampled != stream.Sampled{}) != ask.Asks(e.Of) {
				t.Errorf("%s was asked for as %+v, %v", e.Of, e.Sampled, err)
			} else if (e.Sampled != stream.Sampled{}) {
				asked++
			}
		}
		return nil
	})}
	for i := range 40 {
		err := to.Publish(t.Context(), stream.Event{
			ID: fmt.Sprint(i), Source: "spamd", Tenant: "default", Action: stream.Correct, Of: fmt.Sprintf("%032x", i), Label: stream.Ham,
			Body: stream.Body{Kind: stream.Mail, Mail: []byte("Subject: x\n\ny\n")},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if asked < 8 || asked > 32 {
		t.Errorf("%d of 40 labels were asked for", asked)
	}
}

type appender func(records []stream.Record) error

func (a appender) Append(_ context.Context, records ...stream.Record) error { return a(records) }

// A label's record carries the trace of who asks, and none where nobody has one.
func TestTeacherTrace(t *testing.T) {
	const trace stream.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	event := stream.Event{
		ID: "1", Time: time.Unix(1, 0).UTC(), Source: "spamd", Tenant: "default", Label: stream.Spam,
		Body: stream.Body{Kind: stream.Text, Text: "words"},
	}
	for _, want := range []stream.Trace{trace, ""} {
		var got []stream.Trace
		to := Teacher{Events: appender(func(records []stream.Record) error {
			for _, r := range records {
				got = append(got, stream.RecordTrace(r.Headers))
			}
			return nil
		})}
		if err := to.Publish(stream.WithTrace(t.Context(), want), event, event); err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got[0] != want || got[1] != want {
			t.Errorf("%q, want %q for both records", got, want)
		}
	}
}
