package example_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/example/exampletest"
	"hamlet/stream"
)

func record(t *testing.T, e *stream.Event) ([]stream.Header, []byte) {
	t.Helper()
	value, headers, err := e.EncodeRecord()
	if err != nil {
		t.Fatal(err)
	}
	return headers, value
}

func mailOfText(text string) *stream.Event {
	return &stream.Event{ID: "m1", Source: "desk", Tenant: "example.org", Label: stream.Spam,
		Body: stream.Body{Kind: stream.Mail, Mail: []byte("Subject: one\r\n\r\n" + text + "\r\n")}}
}

// A record is read as its event is.
func TestReadIsOf(t *testing.T) {
	e := mailOfText("hello")
	in, err := example.Read(record(t, e))
	if err != nil || in.Standing != nil || in.Event.ID != "m1" || in.Parsing.Mail == nil {
		t.Fatalf("%+v, %v", in, err)
	}
	want, _, err := example.Of(e)
	if err != nil || in.Example.Key() != want.Key() || in.Example.Identity != want.Identity {
		t.Errorf("%+v, %v; want %+v", in.Example, err, want)
	}
	if _, err := example.Read(nil, []byte("?")); err == nil {
		t.Error("a record without headers was read")
	}
	s := stream.Standing{ID: "s1", Source: "desk", Role: stream.Muted, Time: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)}
	value, headers, err := s.EncodeRecord()
	if err != nil {
		t.Fatal(err)
	}
	if in, err := example.Read(headers, value); err != nil || in.Standing == nil || in.Standing.Source != "desk" {
		t.Errorf("a standing: %+v, %v", in, err)
	}
}

// A panic of the parser is the reason of a dead letter, the same for all who read the record.
// The event is known, and the stack is logged once.
func TestAPanicOfTheParser(t *testing.T) {
	exampletest.PlantParser(t, "poison")
	const want = "a defect of hamlet: parse this body: a panic that a test has planted in the parser of mail"
	var log bytes.Buffer
	var defects example.Defects
	for range 3 {
		e := mailOfText("hello poison")
		in, err := example.Read(record(t, e))
		var defect *model.Defect
		if !errors.As(err, &defect) || err.Error() != want || !model.IsRefused(err) || in.Event.ID != "m1" {
			t.Fatalf("%+v, %v; want %s", in, err, want)
		}
		defects.Note(slog.New(slog.NewTextHandler(&log, nil)), err, "offset", 7)
		if _, _, err := example.Of(e); err == nil || err.Error() != want {
			t.Errorf("Of: %v, want %s", err, want)
		}
		if _, _, err := example.Body("", &e.Body); err == nil || err.Error() != want {
			t.Errorf("Body: %v, want %s", err, want)
		}
	}
	if text := log.String(); strings.Count(text, "please report it") != 1 || !strings.Contains(text, "planted.go") || !strings.Contains(text, "offset=7") {
		t.Errorf("logged:\n%s", text)
	}
	if _, err := example.Read(record(t, mailOfText("hello"))); err != nil {
		t.Errorf("another mail: %v", err)
	}
	defects.Note(slog.New(slog.NewTextHandler(&log, nil)), errors.New("none"))
}

// Nobody whose record panics in a decoder is read either: here nil memory stands for that.
func TestAPanicOfADecoder(t *testing.T) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("a panic came out: %v", p)
		}
	}()
	if _, _, err := example.Of(nil); err == nil || !strings.HasPrefix(err.Error(), "a defect of hamlet: read this event: runtime error: ") {
		t.Errorf("%v", err)
	}
}
