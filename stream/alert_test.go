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
		Incident: 6102, Transition: 2,
		Kind: AlertLabelNoise, State: AlertRaised, Event: 6250, Level: -4.109375, Reference: -3.84375, Threshold: 0.2,
		Labels: &LabelReport{
			Epsilon: 0.03125, SNR: 8.25, NoiseGrade: -0.4375,
			HamCalledSpam: FlipRate{Known: true, Rate: 0.1875, Low: 0.125, High: 0.25}, SpamCalledHam: FlipRate{Low: 0, High: 0.75},
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
		Incident: 1, Transition: 3,
		Kind: AlertConcept, State: AlertCleared, Event: 4, Level: 3.5, Reference: 0.25, Threshold: 24,
		Body: AlertVector, Reading: "nothing", Model: "newsletters", Partition: 3, Time: noise.Time,
	}
	covariate := concept
	covariate.Transition = 1
	covariate.Kind, covariate.State, covariate.Level, covariate.Reading = AlertCovariate, AlertRaised, -1e-300, "the mail changed"
	suspected := covariate
	suspected.Kind, suspected.State, suspected.Event, suspected.Reading = AlertUnknown, AlertSuspected, 1, "something changed, not yet known what"
	withdrawn := suspected
	withdrawn.State, withdrawn.Event, withdrawn.Transition = AlertWithdrawn, 401, 2
	source := noise
	source.Kind, source.Accused, source.Partition = AlertSource, "user-reports", 1
	bare := source
	bare.Labels, bare.State, bare.Transition = nil, AlertCleared, 3
	return []Alert{noise, eval, concept, covariate, suspected, withdrawn, source, bare}
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
	if got, want := a.MessageID(), "default.0.6102/2"; got != want || a.IncidentID() != "default.0.6102" {
		t.Errorf("message id %q, want %q; incident %q", got, want, a.IncidentID())
	}
	if eval := alerts()[1]; eval.MessageID() != a.MessageID() {
		t.Errorf("eval's alert has the id %q, a learner's %q", eval.MessageID(), a.MessageID())
	}
	later := a
	later.Time = later.Time.Add(time.Hour)
	if later.MessageID() != a.MessageID() {
		t.Error("a copy that is published later has another id")
	}
	for name, change := range map[string]func(*Alert){
		"model":      func(a *Alert) { a.Model = "other" },
		"partition":  func(a *Alert) { a.Partition = 1 },
		"incident":   func(a *Alert) { a.Incident++ },
		"transition": func(a *Alert) { a.Transition++ },
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
		{"ham_called_spam: 1.5", func(a *Alert) { a.Labels.HamCalledSpam.Rate = 1.5 }},
		{"spam_called_ham: -1", func(a *Alert) { a.Labels.SpamCalledHam.Rate = -1 }},
		{"spam_called_ham: 0.5 from 0 to 0.75, known: false", func(a *Alert) { a.Labels.SpamCalledHam.Rate = .5 }},
		{"ham_called_spam[1]: NaN", func(a *Alert) { a.Labels.HamCalledSpam.High = math.NaN() }},
		{"ham_called_spam: 0.1875 from 0.5 to 0.25", func(a *Alert) { a.Labels.HamCalledSpam.Low = .5 }},
		{"suspects: 21", func(a *Alert) { a.Labels.Suspects = make([]Suspect, 21) }},
		{"suspects[1].phi: NaN", func(a *Alert) { a.Labels.Suspects[1].Phi = math.NaN() }},
		{"sources[0].hi: +Inf", func(a *Alert) { a.Labels.Sources[0].High = math.Inf(1) }},
		{"sources[1]: 370 events, from 0.5 to 0.03125", func(a *Alert) { a.Labels.Sources[1].Low = 0.5 }},
		{`kind: "drift" is not one of label-noise, covariate, concept, source, unknown`, func(a *Alert) { a.Kind = "drift" }},
		{"of kind label-noise has them", func(a *Alert) { a.Kind = AlertCovariate }},
		{"of kind label-noise has them", func(a *Alert) { a.Labels = nil }},
		{"accused: an alert of kind source", func(a *Alert) { a.Labels, a.Kind, a.Accused = nil, AlertConcept, "desk" }},
		{"accused: an alert of kind source", func(a *Alert) { a.Kind = AlertSource }},
		{`"suspected" of kind "label-noise"`, func(a *Alert) { a.State = AlertSuspected }},
		{`"raised" of kind "unknown"`, func(a *Alert) { a.Kind = AlertUnknown }},
		{"incident: opened at event 0", func(a *Alert) { a.Incident = 0 }},
		{"incident: opened at event 6251", func(a *Alert) { a.Incident = 6251 }},
		{"incident: opened at event 0", func(a *Alert) { a.Incident, a.Transition, a.Kind, a.Accused = 0, 0, AlertSource, "desk" }},
		{"transition: 0", func(a *Alert) { a.Transition = 0 }},
		{"transition: 1 is cleared", func(a *Alert) { a.Transition, a.State = 1, AlertCleared }},
		{"transition: 2 is suspected", func(a *Alert) { a.Labels, a.Kind, a.State = nil, AlertUnknown, AlertSuspected }},
		{`state: "up"`, func(a *Alert) { a.State = "up" }},
		{`body: "mail"`, func(a *Alert) { a.Body = "mail" }},
		{"events are counted from 1", func(a *Alert) { a.Event = 0 }},
		{"partition: -1", func(a *Alert) { a.Partition = -1 }},
		{"partition: 1 of model", func(a *Alert) { a.Model, a.Partition = "", 1 }},
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
		{`"transition":2,`, ``, "missing: transition"},
		{`"default.0.6102"`, `"default.1.6102"`, "incident: a value of 14 bytes is not default.0.EVENT"},
		{`"default.0.6102"`, `"default.0.06102"`, "is not default.0.EVENT"},
		{`"default.0.6102"`, `""`, "is not default.0.EVENT"},
		{`"default.0.6102"`, `6102`, `field "incident"`},
		{`[0.125,0.25]`, `[0.125]`, "flip_rate_intervals: an interval is two numbers"},
		{`[0.125,0.25]`, `[0.125,0.25,1]`, "flip_rate_intervals: an interval is two numbers"},
		{`[0.125,0.25]`, `[0.125,null]`, "flip_rate_intervals: an interval is two numbers"},
		{`[0.125,0.25]`, `null`, `flip_rate_intervals: field "ham_called_spam" is null`},
		{`"model":"default"`, `"model":""`, "model: empty"},
		{`"level":-4.109375`, `"level":null`, `"level" is null`},
		{`"level":-4.109375`, `"level":1e999`, `field "level"`},
		{`"phi":0.5`, `"phi":0.5,"label":"spam"`, `suspects: unknown field "label"`},
		{`"phi":0.5`, `"PHI":0.5`, `suspects: unknown field "PHI"`},
		{`,"phi":0.5`, ``, "suspects: missing: phi"},
		{`,"phi":0.5`, `,"phi":"x"`, `suspects: field "phi"`},
		{`"suspects":[`, `"suspects":[null,`, "suspects: an object is wanted"},
		{`"lo":0.1875`, `"lo":0.1875,"lo":0.1875`, `sources: field "lo" is given twice`},
		{`"spam_called_ham":null`, `"spam":null`, `flip_rates: unknown field "spam"`},
		{`,"spam_called_ham":null`, ``, "flip_rates: missing: spam_called_ham"},
		{`"spam_called_ham":null`, `"spam_called_ham":"x"`, `flip_rates: field "spam_called_ham"`},
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

// Alerts stay in their stream for 90 days. So those of programs without incidents are
// still read, and written as they were but for the intervals.
func TestDecodeAlertsWithoutIncidents(t *testing.T) {
	whole, err := os.ReadFile("testdata/alerts_1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(whole)) {
		line = strings.TrimSpace(line)
		a, err := DecodeAlert([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if a.Incident != 0 || a.IncidentID() != "" || a.Transition != 0 {
			t.Errorf("%s: incident %q, transition %d", line, a.IncidentID(), a.Transition)
		}
		if l := a.Labels; l != nil && (!l.HamCalledSpam.Known || l.HamCalledSpam.Low != 0 || l.HamCalledSpam.High != 1) {
			t.Errorf("%s: flip rate %+v, want one from 0 to 1", line, l.HamCalledSpam)
		}
		b, err := a.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Replace(string(b), `"flip_rate_intervals":{"ham_called_spam":[0,1],"spam_called_ham":[0,1]},`, "", 1); got != line {
			t.Errorf("%s came back as %s", line, got)
		}
	}
	concept, _, _ := strings.Cut(string(whole)[strings.Index(string(whole), `{"kind":"concept"`):], "\n")
	for _, c := range []struct{ old, new, want string }{
		{`"kind":"concept","state":"cleared"`, `"kind":"unknown","state":"suspected"`, "incident: opened at event 0"},
		{`"level"`, `"flip_rate_intervals":{"ham_called_spam":[0,1],"spam_called_ham":[0,1]},"level"`, "given without flip_rates"},
	} {
		if a, err := DecodeAlert([]byte(strings.Replace(concept, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: got %+v, error %v, want one with %q", c.new, c.old, a, err, c.want)
		}
	}
}

func FuzzDecodeAlert(f *testing.F) {
	whole, err := os.ReadFile("testdata/alerts_1.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(whole)) {
		f.Add([]byte(line))
	}
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
