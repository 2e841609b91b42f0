package example_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example"
	"hamlet/stream"
)

func TestBodyOfText(t *testing.T) {
	got, _, err := example.Body("", &stream.Body{Kind: stream.Text, Text: "You won"})
	if err != nil {
		t.Fatal(err)
	}
	want := model.Body{Message: &feature.Message{Body: []byte("You won"), BodyBytes: 7}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Body (-want +got):\n%s", diff)
	}
	if got.Message.Subject != nil {
		t.Error("a plain text has a subject; the model would read it as a mail")
	}
}

func TestBodyOfVector(t *testing.T) {
	got, _, err := example.Body("", &stream.Body{Kind: stream.Vector, Vector: []stream.Number{{Name: "a", Value: 1}, {Name: "b", Value: -2}}})
	if err != nil {
		t.Fatal(err)
	}
	want := model.Body{Vector: []feature.Number{{Name: "a", Value: 1}, {Name: "b", Value: -2}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Body (-want +got):\n%s", diff)
	}
	empty, _, err := example.Body("", &stream.Body{Kind: stream.Vector})
	if err != nil || empty.Vector == nil || empty.Message != nil {
		t.Errorf("empty vector: Body = %+v, %v; want a vector of no numbers", empty, err)
	}
}

func TestBodyOfMail(t *testing.T) {
	raw := "From: a@example.org\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nHello there\r\n"
	got, how, err := example.Body("", &stream.Body{Kind: stream.Mail, Mail: []byte(raw)})
	if err != nil || how.Raw {
		t.Fatalf("Read: %+v, %v", how, err)
	}
	if s := string(got.Message.Subject); s != "Grüße" {
		t.Errorf("subject %q, want Grüße", s)
	}
	if len(got.Message.Head) == 0 || len(got.Message.Body) == 0 {
		t.Errorf("head %q and body %q: one is empty", got.Message.Head, got.Message.Body)
	}
}

// A mail without a subject is still a mail: its T starts with "subject: ".
func TestMailWithoutSubjectIsNotText(t *testing.T) {
	got, _, err := example.Body("", &stream.Body{Kind: stream.Mail, Mail: []byte("From: a@example.org\r\n\r\nHello\r\n")})
	if err != nil {
		t.Fatal(err)
	}
	if got.Message.Subject == nil {
		t.Error("the subject is nil")
	}
}

func TestOf(t *testing.T) {
	e := &stream.Event{ID: "a1", Source: "abuse-desk", Tenant: "example.org", Label: stream.Spam,
		Body: stream.Body{Kind: stream.Text, Text: "x"}}
	got, _, err := example.Of(e)
	if err != nil {
		t.Fatal(err)
	}
	want := model.Example{ID: "a1", Source: "abuse-desk", Spam: true, Identity: "d70e21e63b993baee7db414c9b55c76a",
		Body: model.Body{Tenant: "example.org", Message: &feature.Message{Body: []byte("x"), BodyBytes: 1}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Of (-want +got):\n%s", diff)
	}
	e.Sampled = stream.Sampled{Probability: 0.5, Least: 0.02, Why: stream.SampledReview}
	want.SampleWeight = 0.04
	if got, _, err := example.Of(e); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("of a label that was asked for %v, %+v; want %+v", err, got, want)
	}
	e.Label = stream.Unlabelled
	if _, _, err := example.Of(e); !errors.Is(err, example.ErrUnlabelled) {
		t.Errorf("without a label: %v, want ErrUnlabelled", err)
	}
	e.Label, e.Body = stream.Ham, stream.Body{}
	if _, _, err := example.Of(e); err == nil {
		t.Error("an event without a body became an example")
	}
}
