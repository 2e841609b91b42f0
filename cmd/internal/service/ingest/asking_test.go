package ingest

import (
	"fmt"
	"testing"

	"hamlet/stream"
	"hamlet/stream/mail"
)

// Chance chooses the share, by the identity alone, and more of a larger share.
func TestAskingChooses(t *testing.T) {
	const n = 20_000
	for _, a := range []Asking{0, 0.02, 0.5} {
		asked := 0
		for i := range n {
			identity := fmt.Sprintf("%032x", i)
			if a.Asks(identity) {
				asked++
				if !Asking(MostAsked).Asks(identity) {
					t.Fatalf("%s is in a share of %v, and in none of %v", identity, a, MostAsked)
				}
			}
		}
		// Four standard deviations of a binomial distribution are less than 300.
		if want := float64(a) * n; float64(asked) < want-300 || float64(asked) > want+300 || (a == 0) != (asked == 0) {
			t.Errorf("%d of %d are chosen, want some %v", asked, n, want)
		}
	}
	if Asking(0.5).Asks("") {
		t.Error("a message without an identity is chosen")
	}
}

// The label of a chosen mail was asked for, by whichever action it comes; nothing else was.
func TestAskingMarksLabels(t *testing.T) {
	const share = Asking(0.5)
	body := func(asked bool) ([]byte, string) {
		for i := 0; ; i++ {
			b := fmt.Appendf(nil, "Message-ID: <%d@example.org>\nSubject: x\n\ny\n", i)
			m := mail.Parse(b)
			if identity := mail.Identity("t", &m); share.Asks(identity) == asked {
				return b, identity
			}
		}
	}
	chosen, identity := body(true)
	other, _ := body(false)
	own := stream.SampledShare(1, stream.SampledAll)
	review := stream.SampledShare(0.5, stream.SampledReview)
	event := func(action stream.Action, of string, label stream.Label, mail []byte) stream.Event {
		return stream.Event{ID: "1", Source: "s", Tenant: "t", Action: action, Of: of, Label: label,
			Body: stream.Body{Kind: stream.Mail, Mail: mail}}
	}
	for what, c := range map[string]struct {
		asking Asking
		event  stream.Event
		want   stream.Sampled
	}{
		"learn":              {share, event(stream.Learn, "", stream.Ham, chosen), review},
		"spam":               {share, event(stream.Learn, "", stream.Spam, chosen), review},
		"correct, by name":   {share, event(stream.Correct, identity, stream.Ham, other), review},
		"correct, by body":   {share, event(stream.Correct, "", stream.Ham, chosen), review},
		"relearn":            {share, event(stream.Relearn, "0", stream.Ham, chosen), review},
		"one not chosen":     {share, event(stream.Learn, "", stream.Ham, other), stream.Sampled{}},
		"unlearn":            {share, event(stream.Unlearn, "", stream.Unlabelled, chosen), stream.Sampled{}},
		"assume":             {share, event(stream.Assume, identity, stream.Ham, chosen), stream.Sampled{}},
		"where nobody asks":  {0, event(stream.Learn, "", stream.Ham, chosen), stream.Sampled{}},
		"in a smaller share": {1e-9, event(stream.Learn, "", stream.Ham, chosen), stream.Sampled{}},
	} {
		record, err := c.asking.Record(&c.event)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := stream.DecodeRecord(record.Headers, record.Value); err != nil || e.Sampled != c.want {
			t.Errorf("%s: asked for as %+v, %v; want %+v", what, e.Sampled, err, c.want)
		}
		if (c.event.Sampled != stream.Sampled{}) {
			t.Errorf("%s: the caller's event was changed", what)
		}
	}
	e := event(stream.Learn, "", stream.Ham, chosen)
	e.Sampled = own
	record, err := share.Record(&e)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := stream.DecodeRecord(record.Headers, record.Value); err != nil || e.Sampled != own {
		t.Errorf("what an event says itself became %+v, %v", e.Sampled, err)
	}
	text := stream.Event{ID: "1", Source: "s", Tenant: "t", Label: stream.Ham, Body: stream.Body{Kind: stream.Text, Text: "x"}}
	if record, err = Asking(MostAsked).Record(&text); err != nil {
		t.Fatal(err)
	}
	if e, err := stream.DecodeRecord(record.Headers, record.Value); err != nil || e.Sampled != (stream.Sampled{}) {
		t.Errorf("a text was asked for as %+v, %v", e.Sampled, err)
	}
}
