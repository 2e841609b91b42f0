package stream

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// alerts are one of each form: published and not, with a report and without.
func alerts() []Alert {
	noise := Alert{
		Kind: AlertLabelNoise, State: AlertRaised, Event: 6250, Level: -4.109375, Reference: -3.84375, Threshold: 0.2,
		Labels: &LabelReport{
			Epsilon: 0.03125, SNR: 8.25, NoiseGrade: -0.4375, FlipRates: FlipRates{HamCalledSpam: 0.1875, SpamCalledHam: 0.015625},
			Suspects: []Suspect{{ID: "a1", Source: "user-reports", Phi: 0.0078125}, {ID: "<b2>", Source: "default", Phi: 0.5}},
			Sources: []SourceRate{
				{Source: "user-reports", Events: 130, FlipRate: 0.25, Low: 0.1875, High: 0.3125},
				{Source: "default", Events: 370, FlipRate: 0.015625, Low: 0.0078125, High: 0.03125},
			},
		},
		Body: AlertText, Reading: "labels went bad",
		Model: "default", Partition: 0, Time: time.Date(2026, 11, 20, 10, 0, 0, 5_000_000, time.UTC),
	}
	eval := noise
	eval.Model, eval.Time = "", time.Time{}
	eval.Labels = &LabelReport{SNR: 60.5}
	concept := Alert{
		Kind: AlertConcept, State: AlertCleared, Event: 1, Level: 3.5, Reference: 0.25, Threshold: 24,
		Body: AlertVector, Reading: "nothing", Model: "newsletters", Partition: 3, Time: noise.Time,
	}
	covariate := concept
	covariate.Kind, covariate.State, covariate.Level, covariate.Reading = AlertCovariate, AlertRaised, -1e-300, "the mail changed"
	return []Alert{noise, eval, concept, covariate}
}

// Subscribers parse the golden file's format. To rewrite it:
//
//	UPDATE=1 go test -run TestAlertGolden ./stream
func TestAlertGolden(t *testing.T) {
	const golden = "testdata/alerts.jsonl"
	var lines []byte
	for _, a := range alerts() {
		var err error
		if lines, err = a.AppendJSON(lines); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, '\n')
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, lines, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(lines)); d != "" {
		t.Errorf("alerts in JSON (-want +got):\n%s", d)
	}
	var got []Alert
	for line := range strings.Lines(string(want)) {
		a, err := DecodeAlert([]byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got = append(got, a)
	}
	expected := alerts()
	expected[1].Labels.Suspects, expected[1].Labels.Sources = []Suspect{}, []SourceRate{} // [] in JSON
	if d := cmp.Diff(expected, got); d != "" {
		t.Errorf("what came back differs (-want +got):\n%s", d)
	}
}

func TestMessageIDsOfAlerts(t *testing.T) {
	a := alerts()[0]
	if got, want := a.MessageID(), "default.0.label-noise.6250"; got != want {
		t.Errorf("message id %q, want %q", got, want)
	}
	later := a
	later.Time = later.Time.Add(time.Hour)
	if later.MessageID() != a.MessageID() {
		t.Error("a copy that is published later has another id")
	}
	for name, change := range map[string]func(*Alert){
		"model":     func(a *Alert) { a.Model = "other" },
		"partition": func(a *Alert) { a.Partition = 1 },
		"kind":      func(a *Alert) { a.Kind = AlertConcept },
		"event":     func(a *Alert) { a.Event++ },
	} {
		other := a
		change(&other)
		if other.MessageID() == a.MessageID() {
			t.Errorf("another %s has the same id %s", name, a.MessageID())
		}
	}
}

// A number that is not finite or not from 0 to 1 is never published.
func TestAlertsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*Alert)
	}{
		{"level: NaN", func(a *Alert) { a.Level = math.NaN() }},
		{"reference: +Inf", func(a *Alert) { a.Reference = math.Inf(1) }},
		{"threshold: -Inf", func(a *Alert) { a.Threshold = math.Inf(-1) }},
		{"snr: +Inf", func(a *Alert) { a.Labels.SNR = math.Inf(1) }},
		{"noise_grade: NaN", func(a *Alert) { a.Labels.NoiseGrade = math.NaN() }},
		{"epsilon: NaN", func(a *Alert) { a.Labels.Epsilon = math.NaN() }},
		{"ham_called_spam: 1.5", func(a *Alert) { a.Labels.FlipRates.HamCalledSpam = 1.5 }},
		{"spam_called_ham: -1", func(a *Alert) { a.Labels.FlipRates.SpamCalledHam = -1 }},
		{"suspects: 21", func(a *Alert) { a.Labels.Suspects = make([]Suspect, 21) }},
		{"suspects[1].phi: NaN", func(a *Alert) { a.Labels.Suspects[1].Phi = math.NaN() }},
		{"sources[0].hi: +Inf", func(a *Alert) { a.Labels.Sources[0].High = math.Inf(1) }},
		{"sources[1]: 370 events, from 0.5 to 0.03125", func(a *Alert) { a.Labels.Sources[1].Low = 0.5 }},
		{`kind: "drift" is not one of label-noise, covariate, concept, source, unknown`, func(a *Alert) { a.Kind = "drift" }},
		{"of kind label-noise has them, and no other", func(a *Alert) { a.Kind = AlertCovariate }},
		{"of kind label-noise has them, and no other", func(a *Alert) { a.Labels = nil }},
		{`state: "up"`, func(a *Alert) { a.State = "up" }},
		{`body: "mail"`, func(a *Alert) { a.Body = "mail" }},
		{"events are counted from 1", func(a *Alert) { a.Event = 0 }},
		{"partition: -1", func(a *Alert) { a.Partition = -1 }},
		{"outside years", func(a *Alert) { a.Time = time.Unix(1<<40, 0) }},
	} {
		a := alerts()[0]
		c.change(&a)
		b, err := a.AppendJSON([]byte("x"))
		if err == nil || !strings.Contains(err.Error(), c.want) || string(b) != "x" {
			t.Errorf("%q, %v; want an error with %q and nothing written", b, err, c.want)
		}
	}
}

func TestDecodeAlertIsStrict(t *testing.T) {
	whole, err := os.ReadFile("testdata/alerts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	noise, _, _ := strings.Cut(string(whole), "\n")
	for _, c := range []struct{ old, new, want string }{
		{`"kind"`, `"colour":1,"kind"`, `unknown field "colour"`},
		{`"kind"`, `"Kind"`, `unknown field "Kind"`},
		{`"event":6250`, `"event":6250,"event":6250`, `"event" is given twice`},
		{`"event":6250`, `"event":-1`, `field "event"`},
		{`"event":6250`, `"event":"6250"`, `field "event"`},
		{`"level":-4.109375,`, ``, "missing: level"},
		{`"body":"text",`, ``, "missing: body"},
		{`"snr":8.25,`, ``, "missing: snr"},
		{`"partition":0,`, ``, "missing: partition"},
		{`"model":"default"`, `"model":""`, "model: empty"},
		{`"level":-4.109375`, `"level":null`, `"level" is null`},
		{`"level":-4.109375`, `"level":1e999`, `field "level"`},
		{`"phi":0.5`, `"phi":0.5,"label":"spam"`, `suspects: unknown field "label"`},
		{`"phi":0.5`, `"PHI":0.5`, `suspects: unknown field "PHI"`},
		{`,"phi":0.5`, ``, "suspects: missing: phi"},
		{`,"phi":0.5`, `,"phi":"x"`, `suspects: field "phi"`},
		{`"suspects":[`, `"suspects":[null,`, "suspects: an object is wanted"},
		{`"lo":0.1875`, `"lo":0.1875,"lo":0.1875`, `sources: field "lo" is given twice`},
		{`"spam_called_ham"`, `"spam"`, `flip_rates: unknown field "spam"`},
		{`"2026-11-20T10:00:00.005Z"`, `"yesterday"`, `"time": not a time`},
		{`"phi":0.5`, `"phi":2`, "suspects[1].phi: 2"},
	} {
		in := strings.Replace(noise, c.old, c.new, 1)
		if in == noise {
			t.Fatalf("%s does not stand in %s", c.old, noise)
		}
		if a, err := DecodeAlert([]byte(in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: got %+v, error %v, want one with %q", c.new, c.old, a, err, c.want)
		}
	}
}

func FuzzDecodeAlert(f *testing.F) {
	for _, a := range alerts() {
		b, err := a.AppendJSON(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := DecodeAlert(b)
		if err != nil {
			return
		}
		again, err := a.AppendJSON(nil)
		if err != nil {
			t.Fatalf("%s was read and cannot be written: %v", b, err)
		}
		back, err := DecodeAlert(again)
		if err != nil {
			t.Fatalf("%s was written and cannot be read: %v", again, err)
		}
		if d := cmp.Diff(a, back); d != "" {
			t.Fatalf("what came back differs (-want +got):\n%s", d)
		}
	})
}
